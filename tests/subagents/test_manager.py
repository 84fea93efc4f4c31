"""SubagentManager in plain code: registering, delegating, what a subagent knows, limits and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.engine import assert_at_rest, profiles, tree_of
from support.stress import run_threads, wait_for
from support.subagents import Hold, Play, Stage, answers_in, calling, last_answer, staged, user_texts
from support.tools import Lab

from shared import CancelToken, JaatoRuntime
from shared.errors import (
    CancelledException,
    SkillNotFoundError,
    SubagentConfigError,
    SubagentError,
    SubagentNestingError,
    SubagentNotFoundError,
    SubagentTimeoutError,
)
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.skills import Skill, SkillInfo, SkillManager
from shared.subagents import DelegationHandle, SubagentManager, SubagentResult
from shared.subagents.result import Status
from shared.types import Message, Role, TokenUsage

SAMPLE = {
    "name": "test-subagent",
    "description": "Test subagent for delegation",
    "model": None,
    "tools": ["read_file"],
    "max_turns": 5,
}
PLAIN = SubagentProfile("plain", description="Answers.")


def echo(request: ModelRequest) -> Step:
    return f"said: {user_texts(request)[-1]}"


def offered(request: ModelRequest) -> list[str]:
    """The tools that a model was offered, but for those of the shared state that every child has."""
    return [schema.name for schema in request.tools.schemas if not schema.name.endswith("_shared_state")]


def manager_of(stage: Stage, *configs: Any) -> SubagentManager:
    return SubagentManager(stage.client, configs)


# -- which there are ---------------------------------------------------------------------------------


def test_sample_subagent_config() -> None:
    """A definition that names tools and no plugins gets the plugins those tools are from."""
    with staged(echo) as stage:
        manager = manager_of(stage, SAMPLE)
        found = manager.get("test-subagent")
        assert found is not None
        assert (found.tools, found.plugins, found.max_turns) == (("read_file",), ("file_edit",), 5)
        assert manager.delegate_sync("test-subagent", "look").output == "said: look"
        assert offered(stage.play.child_requests[-1]) == ["read_file"]


def test_register_get_list_deregister() -> None:
    with staged(echo, config=profiles(PLAIN)) as stage:
        manager = manager_of(stage)
        assert [each.name for each in manager.list()] == ["plain"]
        manager.register({"name": "second", "description": "Another.", "system_prompt": "Be brief."})
        assert [each.name for each in manager.list()] == ["plain", "second"]
        second = manager.get("second")
        assert second is not None
        assert second.system_instructions == "Be brief."
        assert manager.get("third") is None
        manager.deregister("second")
        assert manager.get("second") is None
        with pytest.raises(SubagentNotFoundError, match="registered subagent 'second'"):
            manager.deregister("second")


def test_what_is_registered_can_be_spawned_by_the_model_too() -> None:
    with staged(echo) as stage:
        manager_of(stage).register(PLAIN)
        assert stage.by_model(("spawn_subagent", {"task": "hello", "profile": "plain"}))[0]["response"] == "said: hello"


def test_missing_name() -> None:
    with staged(echo) as stage, pytest.raises(SubagentConfigError, match="needs a name"):
        manager_of(stage).register({"description": "nameless"})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"name": "x", "max_turns": 0}, "max_turns"),
        ({"name": "x", "sytem_prompt": "s"}, "system_instructions"),
        ({"name": "x", "tools": [3]}, "tools"),
        ("x", "a dict of its fields"),
    ],
)
def test_a_wrong_definition_is_refused_with_what_is_wrong(config: Any, words: str) -> None:
    with staged(echo) as stage:
        manager = manager_of(stage)
        with pytest.raises(SubagentConfigError, match=words):
            manager.register(config)
        assert manager.list() == []


def test_invalid_model() -> None:
    """It is no error to register it: the delegation fails, and says so."""

    def child(request: ModelRequest) -> Step:
        return RuntimeError(f"no model {request.model}")

    with staged(child) as stage:
        manager = manager_of(stage, {"name": "x", "model": "nonexistent-model"})
        result = manager.delegate_sync("x", "try")
        assert (result.success, result.status) == (False, Status.FAILED)
        assert "nonexistent-model" in str(result.error)


def test_empty_tools_list() -> None:
    with staged(echo, Lab(), config={"max_depth": 3}) as stage:
        manager = manager_of(stage, {"name": "reader", "tools": []})
        assert manager.delegate_sync("reader", "think").success
        assert offered(stage.play.child_requests[-1]) == []


def test_an_unknown_tool_is_refused_before_anything_starts() -> None:
    with staged(echo) as stage:
        with pytest.raises(SubagentConfigError, match="no_such_tool"):
            manager_of(stage, {"name": "x", "tools": ["no_such_tool"]}).delegate_sync("x", "go")
        assert tree_of(stage).spawned == 0


def test_functions_are_tools_too() -> None:
    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number

    def child(request: ModelRequest) -> Step:
        return str(last_answer(request)) if answers_in(request) else calling(("double", {"number": 21}))

    with staged(child, Lab()) as stage:
        manager = manager_of(stage, {"name": "calculator", "tools": [double]})
        assert manager.delegate_sync("calculator", "21 twice").output == "42"
        assert "double" not in stage.client.get_session().tool_names
        assert offered(stage.play.child_requests[-1]) == ["double"]


def test_tool_restriction() -> None:
    with staged(echo, Lab()) as stage:
        manager = manager_of(stage, {"name": "narrow", "plugins": ["lab"], "disallowed_tools": ["add"]})
        manager.delegate_sync("narrow", "go")
        names = offered(stage.play.child_requests[-1])
        assert "add" not in names
        assert "essay" in names


# -- delegating --------------------------------------------------------------------------------------


def test_delegate_task_synchronously() -> None:
    with staged(echo) as stage:
        manager = manager_of(stage, PLAIN)
        result = manager.delegate_sync("plain", "the task")
        assert isinstance(result, SubagentResult)
        assert (result.output, result.subagent_name, result.success, result.error) == (
            "said: the task",
            "plain",
            True,
            None,
        )
        assert result.usage == result.token_usage
        assert result.usage.total_tokens > 0
        assert result.duration == result.duration_seconds > 0
        assert result.agent_result["response"] == result.response == result.output
        assert_at_rest(stage)


def test_check_parent_usage_tracker() -> None:
    """Usage is counted apart, and is part of the parent's."""
    with staged(echo) as stage:
        manager = manager_of(stage, PLAIN, {"name": "other"})
        before = stage.client.get_session().account.subtree.usage
        results = [manager.delegate_sync(name, "task") for name in ("plain", "plain", "other")]
        used = manager.get_usage_breakdown()
        assert used["plain"] == results[0].usage + results[1].usage
        assert used["other"] == results[2].usage
        account = stage.client.get_session().account
        assert account.subtree.usage == before + used["plain"] + used["other"]
        assert account.own.usage == before


def test_spawn_from_unknown_config() -> None:
    with staged(echo, config=profiles(PLAIN)) as stage:
        with pytest.raises(SubagentNotFoundError, match=r"unknown subagent 'plane'. Did you mean 'plain'"):
            manager_of(stage).spawn("plane", "go")
        assert tree_of(stage).spawned == 0


@pytest.mark.parametrize("task", ["", "  \n"])
def test_empty_task(task: str) -> None:
    with staged(echo, config=profiles(PLAIN)) as stage:
        with pytest.raises(SubagentError, match="task"):
            manager_of(stage).spawn("plain", task)
        assert tree_of(stage).spawned == 0


def test_concurrent_spawns() -> None:
    """Equal tasks, far more than ten at once, and yet each has an agent of its own."""
    hold = Hold()
    with staged(hold, config={"max_children": 40, "max_concurrent": 40, **profiles(PLAIN)}) as stage:
        manager = manager_of(stage)
        handles: list[DelegationHandle] = []
        run_threads(30, lambda index: handles.append(manager.spawn("plain", "the same")))
        hold.wait_entered(30)
        assert len({handle.agent_id for handle in handles}) == 30
        assert not any(handle.is_complete for handle in handles)
        assert len(manager.get_active_delegations()) == 30
        hold.release()
        assert {handle.result().output for handle in handles} == {"held, then answered"}
        assert manager.get_active_delegations() == []
        assert manager.get_usage_breakdown()["plain"] == sum((h.usage for h in handles), TokenUsage())
        assert_at_rest(stage)


def test_a_limit_is_told_as_a_nesting_error() -> None:
    hold = Hold()
    with staged(hold, config={"max_children": 2, **profiles(PLAIN)}) as stage:
        manager = manager_of(stage)
        handles = [manager.spawn("plain", "go") for _ in range(2)]
        with pytest.raises(SubagentNestingError, match="max_children is 2"):
            manager.spawn("plain", "go")
        hold.release()
        assert all(handle.wait(20).success for handle in handles)


def test_nesting_attempt() -> None:
    """A subagent cannot spawn sub-subagents, in code no more than by its tools."""
    errors: list[BaseException] = []

    def child(request: ModelRequest) -> Step:
        agent = next(each for each in tree_of(stage).below("main") if each.session is not None)
        try:
            SubagentManager(agent.session).spawn("plain", "below")  # type: ignore[arg-type]
        except SubagentNestingError as error:
            errors.append(error)
        return "tried"

    with staged(child, config=profiles(PLAIN)) as stage:
        assert manager_of(stage).delegate_sync("plain", "nest").output == "tried"
        assert "max_depth is 1" in str(errors[0])
        assert tree_of(stage).spawned == 1


def test_a_nested_delegation_waits_without_a_slot() -> None:
    """Code in a tool of a subagent delegates and waits, and there is one slot for all."""

    inside: list[Callable[[], str]] = []

    def ask(question: str) -> str:
        """Ask somebody below."""
        return inside[0]()

    def child(request: ModelRequest) -> Step:
        if "below" in user_texts(request)[0]:
            return "from the leaf"
        return str(last_answer(request)) if answers_in(request) else calling(("ask", {"question": "?"}))

    leaf = SubagentProfile("leaf")
    with staged(child, config={"max_depth": 2, "max_concurrent": 1, **profiles(leaf)}) as stage:
        manager = manager_of(stage, {"name": "asker", "plugins": ["subagent"], "tools": [ask, "spawn_subagent"]})

        def below() -> str:
            asker = next(each for each in tree_of(stage).below("main") if each.plan.label == "asker")
            assert asker.session is not None
            return SubagentManager(asker.session).delegate_sync("leaf", "below", timeout=20).output

        inside.append(below)
        assert manager.delegate_sync("asker", "go", timeout=20).output == "from the leaf"
        assert_at_rest(stage)


def test_subagent_timeout() -> None:
    """Cut off by max_turns: no success, and the seeds' own words for why."""
    with staged(lambda request: calling(("add", {"a": 1}), text="so far"), Lab()) as stage:
        manager = manager_of(stage, {"name": "endless", "plugins": ["lab"], "max_turns": 2})
        result = manager.delegate_sync("endless", "never ends")
        assert (result.success, result.error, result.status) == (False, "Max turns exceeded", Status.PARTIAL)
        assert "so far" in result.output


def test_model_api_error() -> None:
    with staged(RuntimeError("the model is gone")) as stage:
        result = manager_of(stage, PLAIN).delegate_sync("plain", "go")
        assert result.success is False
        assert "the model is gone" in str(result.error)


def test_a_wait_that_takes_too_long_raises_and_the_work_goes_on() -> None:
    hold = Hold()
    with staged(hold, config=profiles(PLAIN)) as stage:
        handle = manager_of(stage).spawn("plain", "slow")
        hold.wait_entered()
        with pytest.raises(SubagentTimeoutError, match="it goes on"):
            handle.wait(0.01)
        assert handle.status is Status.RUNNING
        hold.release()
        assert handle.wait(20).success


def test_a_delegation_that_is_given_up_is_cancelled() -> None:
    hold = Hold()
    with staged(hold, config=profiles(PLAIN)) as stage:
        manager = manager_of(stage)
        with pytest.raises(SubagentTimeoutError):
            manager.delegate_sync("plain", "slow", timeout=0.05)
        wait_for(lambda: manager.get_active_delegations() == [])
        assert [agent.run.status for agent in tree_of(stage).below("main")] == [Status.CANCELLED]
        hold.release()


def test_cancel_after_completion() -> None:
    with staged(echo, config=profiles(PLAIN)) as stage:
        handle = manager_of(stage).spawn("plain", "quick")
        result = handle.result()
        assert handle.cancel() is False
        assert handle.is_complete
        assert handle.result() == result
        assert result.success


def test_cancel_stops_a_running_subagent() -> None:
    hold = Hold()
    with staged(hold, config=profiles(PLAIN)) as stage:
        handle = manager_of(stage).spawn("plain", "slow")
        hold.wait_entered()
        assert handle.cancel("no longer needed") is True
        result = handle.wait(20)
        assert (result.status, result.success, result.error) == (Status.CANCELLED, False, "no longer needed")
        assert handle.cancel() is False
        hold.release()
        assert_at_rest(stage)


def test_the_hosts_own_token_stops_it() -> None:
    hold, token = Hold(), CancelToken()
    with staged(hold, config=profiles(PLAIN)) as stage:
        handle = manager_of(stage).spawn("plain", "slow", cancel=token)
        hold.wait_entered()
        token.cancel("the host said so")
        assert handle.wait(20).error == "the host said so"
        with pytest.raises(CancelledException):
            manager_of(stage).spawn("plain", "more", cancel=token)
        hold.release()


def test_closing_the_client_ends_what_it_delegated() -> None:
    hold = Hold()
    with staged(hold, config=profiles(PLAIN)) as stage:
        handle = manager_of(stage).spawn("plain", "slow")
        hold.wait_entered()
        stage.client.close()
        assert handle.wait(20).status is Status.CANCELLED
        hold.release()


def test_cancel_and_the_end_at_the_same_moment_leave_one_result() -> None:
    with staged(echo, config={"max_total_spawns": 10_000, "max_children": 500, **profiles(PLAIN)}) as stage:
        manager = manager_of(stage)
        for _ in range(150):
            handle = manager.spawn("plain", "quick")
            stopped = handle.cancel()
            result = handle.wait(20)
            assert result.status in (Status.COMPLETED, Status.CANCELLED)
            assert stopped or result.success
            assert handle.wait(20) == result
        assert_at_rest(stage)


def test_garbage_collected_after_the_result_is_returned() -> None:
    """Nothing of a conversation is kept, and no delegation waits to be continued."""
    with staged(echo, config={"max_total_spawns": 1000, **profiles(PLAIN)}) as stage:
        manager = manager_of(stage)
        for _ in range(50):
            manager.delegate_sync("plain", "one of many")
        agents = tree_of(stage).below("main")
        wait_for(lambda: all(agent.closed and agent.session is None for agent in agents))
        assert stage.call("list_active_subagents")["count"] == 0
        assert manager.get_active_delegations() == []


def test_results_for_code_are_not_announced_to_the_model() -> None:
    with staged(Play("noted", echo), config=profiles(PLAIN)) as stage:
        manager_of(stage).delegate_sync("plain", "for the host only")
        stage.ask("anything new?")
        assert user_texts(stage.play.parent_requests[-1]) == ["anything new?"]


def test_a_pooled_profile_goes_on_with_its_history() -> None:
    """`reuse: true`: one after the other share an agent; at the same time, equal tasks included, each has its own."""
    hold = Hold()
    turns = SubagentProfile("pooled", reuse=True)

    def child(request: ModelRequest) -> Step:
        return hold(request) if user_texts(request)[-1] == "slow" else str(len(user_texts(request)))

    with staged(child, config=profiles(turns)) as stage:
        manager = manager_of(stage)
        results = [manager.delegate_sync("pooled", f"task {n}") for n in range(3)]
        assert [result.output for result in results] == ["1", "2", "3"]
        assert len({result.agent_id for result in results}) == 1
        used = sum((result.usage for result in results), TokenUsage())
        assert manager.get_usage_breakdown()["pooled"] == used
        handles = [manager.spawn("pooled", "slow") for _ in range(3)]
        assert len({handle.agent_id for handle in handles}) == 3
        hold.wait_entered(3)
        assert len(manager.get_active_delegations()) == 3
        hold.release()
        assert all(handle.wait(20).success for handle in handles)
        assert manager.get_active_delegations() == []


# -- what it knows -----------------------------------------------------------------------------------


def test_default_fresh_context() -> None:
    with staged(Play("the parent's words", echo), config=profiles(PLAIN)) as stage:
        stage.ask("the user's secret question")
        manager_of(stage).delegate_sync("plain", "only this")
        request = stage.play.child_requests[-1]
        assert user_texts(request) == ["only this"]
        assert len(request.messages) == 1


def test_context_string() -> None:
    with staged(echo, config=profiles(PLAIN)) as stage:
        manager_of(stage).delegate_sync("plain", "judge it", context="It is blue.")
        text = user_texts(stage.play.child_requests[-1])[0]
        assert text.index("It is blue.") < text.index("judge it")
        manager_of(stage).delegate_sync("plain", "judge it", context={"files": ["a.py"], "notes": "small"})
        assert "a.py" in user_texts(stage.play.child_requests[-1])[0]


def test_parent_context_injection() -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": [{"type": "text", "text": "Hello Ada."}]},
    ]
    with staged(echo, config=profiles(PLAIN)) as stage:
        manager_of(stage).delegate_sync("plain", "what is my name?", context_messages=said)
        messages = stage.play.child_requests[-1].messages
        assert [(each.role, each.text) for each in messages] == [
            (Role.USER, "My name is Ada."),
            (Role.MODEL, "Hello Ada."),
            (Role.USER, "what is my name?"),
        ]


def test_the_parents_own_history_can_be_handed_on_even_in_mid_turn() -> None:
    """A call that is still open is answered in the copy, so that every provider takes it."""
    found: list[SubagentResult] = []

    def look(question: str) -> str:
        """Ask a subagent that has read everything so far."""
        history = stage.client.get_history()
        found.append(manager_of(stage).delegate_sync("plain", question, context_messages=history))
        return found[-1].output

    class Looking(Lab):
        name = "looking"

        def tools(self) -> list[Any]:
            from shared.tools import Tool

            return [Tool.from_function(look, plugin=self.name)]

    def parent(request: ModelRequest) -> Step:
        return "done" if answers_in(request) else calling(("look", {"question": "seen it?"}))

    with staged(Play(parent, echo), Looking(), config=profiles(PLAIN)) as stage:
        assert stage.ask("a long story") == "done"
        assert found[0].output == "said: seen it?"
        roles = [message.role for message in stage.play.child_requests[-1].messages]
        assert roles == [Role.USER, Role.MODEL, Role.TOOL, Role.USER]


def test_a_history_that_begins_with_the_model_is_completed() -> None:
    with staged(echo, config=profiles(PLAIN)) as stage:
        given = [Message.from_text(Role.MODEL, "As I said.")]
        manager_of(stage).delegate_sync("plain", "go on", context_messages=given)
        assert [each.role for each in stage.play.child_requests[-1].messages] == [Role.USER, Role.MODEL, Role.USER]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "system", "content": "Obey."}], "belong in the profile"),
        ([{"role": "wizard", "content": "x"}], "role"),
        ([{"role": "user", "content": ""}], "content"),
        ([{"role": "user", "content": [{"type": "image", "data": "…"}]}], "content"),
        ([{"role": "user"}], "content"),
        (["hello"], "message 0"),
        ("hello", "a list of messages"),
        ({"role": "user", "content": "x"}, "a list of messages"),
    ],
)
def test_messages_that_cannot_be_used_are_named(messages: Any, words: str) -> None:
    with staged(echo, config=profiles(PLAIN)) as stage:
        with pytest.raises(SubagentConfigError, match=words):
            manager_of(stage).spawn("plain", "go", context_messages=messages)
        assert tree_of(stage).spawned == 0


def test_subagents_can_be_delegated_to_without_a_profile() -> None:
    with staged(echo, Lab()) as stage:
        manager = manager_of(stage)
        assert manager.delegate_sync(None, "with my tools").output == "said: with my tools"
        assert "add" in offered(stage.play.child_requests[-1])
        assert list(manager.get_usage_breakdown()) == ["subagent"]


# -- skills ------------------------------------------------------------------------------------------


def skill_manager(tmp_path: Path, *skills: Skill) -> SkillManager:
    from shared.skills import SkillConfig

    manager = SkillManager(SkillConfig(workspace=tmp_path, user_skills_dir=tmp_path / "none"))
    for skill in skills:
        manager.register(skill)
    return manager


def test_skill_not_found() -> None:
    with staged(echo) as stage:
        with pytest.raises(SkillNotFoundError, match="missing-skill"):
            manager_of(stage, {"name": "x", "skills": ["missing-skill"]}).spawn("x", "go")
        assert tree_of(stage).spawned == 0


def test_skill_content_is_injected_from_the_given_skill_manager(tmp_path: Path) -> None:
    def fetch(page: str) -> str:
        """Fetch a page."""
        return f"the page {page}"

    skill = Skill(SkillInfo("web-search", "Searches"), "Search the web in three steps.", (fetch,))
    with staged(echo) as stage:
        manager = SubagentManager(
            stage.client, [{"name": "x", "skills": ["web-search"]}], skill_manager(tmp_path, skill)
        )
        assert manager.delegate_sync("x", "go").success
        request = stage.play.child_requests[-1]
        assert "Search the web in three steps." in request.system
        assert offered(request) == ["web-search.fetch"]


# -- parents -----------------------------------------------------------------------------------------


def test_a_runtime_can_be_the_parent() -> None:
    with staged(echo, config=profiles(PLAIN)) as stage:
        assert SubagentManager(stage.client.get_runtime()).delegate_sync("plain", "hi").success
    with pytest.raises(SubagentConfigError, match="no main session"):
        SubagentManager(JaatoRuntime("script")).spawn(None, "hi")


def test_a_session_of_its_own_can_be_the_parent() -> None:
    with staged(echo, config=profiles(PLAIN)) as stage:
        session = stage.client.get_runtime().create_session("script-model")
        result = SubagentManager(session).delegate_sync("plain", "hi")
        assert result.success
        assert session.account.subtree.usage == result.usage
        session.close()


def test_usage_is_whole_at_every_moment() -> None:
    """While handles come to their end, nobody's tokens are counted twice or not at all."""
    with staged(echo, config={"max_total_spawns": 1000, "max_children": 200, **profiles(PLAIN)}) as stage:
        manager = manager_of(stage)
        each = manager.delegate_sync("plain", "one").usage.total_tokens
        over, seen = threading.Event(), list[int]()

        def watch() -> None:
            while not over.is_set():
                seen.append(manager.get_usage_breakdown()["plain"].total_tokens)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        for handle in [manager.spawn("plain", "one") for _ in range(60)]:
            handle.wait(20)
        over.set()
        watcher.join(20)
        assert seen == sorted(seen)
        assert manager.get_usage_breakdown()["plain"].total_tokens == 61 * each
