"""Two and three levels of subagents: budgets, deadlines, cancel, rights, permissions, ids and events hold."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from support.engine import Record, assert_at_rest, in_thread, profiles, tree_of
from support.stress import run_threads, wait_for
from support.subagents import Hold, Stage, answers_in, calling, last_answer, spawning, staged, task_of
from support.tools import Lab

from shared import tool
from shared.definitions.source import Source
from shared.events import AgentCompleted, AgentCreated, PermissionAsked
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.subagents import SubagentManager
from shared.subagents.agent import Subagent
from shared.subagents.result import Status

LEVELS = [2, 3]
DEEP = SubagentProfile("deep", plugins=["subagent", "lab"])
ASK = {"version": "1.0", "defaultPolicy": "ask", "channel": {"type": "queue"}, "whitelist": {"tools": ["*_subagent*"]}}


def level(request: ModelRequest) -> int:
    """How deep the agent is that asks: its task begins with that."""
    return int(task_of(request).split()[0])


def chain(deepest: int, at_the_bottom: Any, *, profile: str = "deep", background: bool = False) -> Any:
    """Each agent spawns one below it, down to the last one, which does something else."""

    def child(request: ModelRequest) -> Step:
        here = level(request)
        if here == deepest:
            step: Step = at_the_bottom(request) if callable(at_the_bottom) else at_the_bottom
            return step
        if not answers_in(request):
            more = {"background": True} if background else {}
            return spawning(f"{here + 1}", profile=profile, **more)
        return f"{here}: {last_answer(request).get('response') or last_answer(request)}"

    return child


def settings(depth: int, *given: SubagentProfile, **more: Any) -> dict[str, Any]:
    return {"max_depth": depth, **profiles(*(given or (DEEP,))), **more}


def family(stage: Stage) -> list[Subagent]:
    return tree_of(stage).below("main")


# -- budgets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", LEVELS)
def test_the_bottom_draws_on_the_budget_of_the_top(depth: int) -> None:
    """The one at the top may make four tool calls, with all below it: spawns take some, the bottom gets the rest."""
    top = SubagentProfile("top", plugins=["subagent", "lab"], budget={"tool_calls": 4})
    ran: list[int] = []

    class Counting(Lab):
        @tool
        def count(self, number: int) -> int:
            """Note a call."""
            ran.append(number)
            return number

    def bottom(request: ModelRequest) -> Step:
        return calling(("count", {"number": len(answers_in(request))}))

    with staged(chain(depth, bottom), Counting(), config=settings(depth, top, DEEP)) as stage:
        stage.spawn("1", profile="top")
        last = family(stage)[-1].run.result
        assert last is not None
        assert (last.status, last.reason) == (Status.PARTIAL, "budget")
        assert len(ran) == 4 - (depth - 1)
        assert_at_rest(stage)


@pytest.mark.parametrize("depth", LEVELS)
def test_usage_adds_up_through_all_levels(depth: int) -> None:
    with staged(chain(depth, "bottom"), Lab(), config=settings(depth)) as stage:
        result = stage.spawn("1", profile="deep")
        agents = family(stage)
        assert len(agents) == depth
        own = [agent.run.result.token_usage.total_tokens for agent in agents if agent.run.result is not None]
        assert result["subtree_usage"]["total_tokens"] == sum(own)
        assert stage.client.get_session().account.subtree.usage.total_tokens == sum(own)


# -- deadlines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", LEVELS)
def test_the_deadline_of_the_top_ends_the_bottom(depth: int) -> None:
    """Nobody below has a limit of its own, and all of them end when the time of the first is up."""
    hold = Hold()
    top = SubagentProfile("top", plugins=["subagent"], timeout_seconds=0.3)
    with staged(chain(depth, hold), Lab(), config=settings(depth, top, DEEP)) as stage:
        result = stage.spawn("1", profile="top")
        assert result["status"] == "timed_out"
        agents = family(stage)
        wait_for(lambda: all(agent.run.done.is_open for agent in agents))
        assert {agent.run.status for agent in agents} <= {Status.TIMED_OUT, Status.CANCELLED}
        hold.release()
        assert_at_rest(stage)


@pytest.mark.parametrize("depth", LEVELS)
def test_no_deadline_below_lies_after_the_one_above(depth: int) -> None:
    hold = Hold()
    patient = SubagentProfile("deep", plugins=["subagent"], timeout_seconds=5000)
    top = SubagentProfile("top", plugins=["subagent"], timeout_seconds=500)
    with staged(chain(depth, hold), Lab(), config=settings(depth, top, patient)) as stage:
        run_id = stage.launch("1", profile="top")
        hold.wait_entered()
        deadlines = [agent.run.deadline for agent in family(stage)]
        assert len(deadlines) == depth
        assert all(each is not None and each == deadlines[0] for each in deadlines)
        hold.release()
        assert stage.result(run_id)["success"]


# -- cancel ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("depth", LEVELS)
def test_cancel_at_the_top_reaches_the_bottom(depth: int, background: bool) -> None:
    hold = Hold()
    with staged(chain(depth, hold, background=background), Lab(), config=settings(depth)) as stage:
        run_id = stage.launch("1", profile="deep")
        hold.wait_entered()
        stage.call("cancel_subagent", agent_id=run_id)
        bottom = family(stage)[-1]
        assert bottom.depth == depth
        wait_for(lambda: bottom.run.done.is_open)
        assert bottom.run.status is Status.CANCELLED
        hold.release()
        assert_at_rest(stage)


def test_cancel_in_the_middle_leaves_the_others_alone() -> None:
    """The second level is cancelled with the third; the first goes on and tells of it."""
    hold = Hold()
    with staged(chain(3, hold), Lab(), config=settings(3)) as stage:
        run_id = stage.launch("1", profile="deep")
        hold.wait_entered()
        _, middle, bottom = family(stage)
        answer = stage.call("cancel_subagent", agent_id=middle.agent_id)
        assert {each["agent_id"] for each in answer["cancelled"]} == {middle.agent_id, bottom.agent_id}
        result = stage.result(run_id)
        assert result["status"] == "completed"
        assert "cancelled" in result["response"]
        hold.release()
        assert_at_rest(stage)


@pytest.mark.parametrize("depth", LEVELS)
def test_a_handles_cancel_reaches_the_bottom(depth: int) -> None:
    hold = Hold()
    with staged(chain(depth, hold), Lab(), config=settings(depth)) as stage:
        handle = SubagentManager(stage.client).spawn("deep", "1")
        hold.wait_entered()
        agents = family(stage)
        assert handle.cancel()
        assert handle.wait(20).status is Status.CANCELLED
        wait_for(lambda: all(agent.run.done.is_open for agent in agents))
        assert [agent.run.status for agent in agents] == [Status.CANCELLED] * depth
        hold.release()
        wait_for(lambda: all(agent.closed for agent in agents))


# -- rights and permissions --------------------------------------------------------------------------


def offered(request: ModelRequest) -> list[str]:
    return [schema.name for schema in request.tools.schemas]


def test_rights_narrow_from_level_to_level_and_never_grow() -> None:
    """An untrusted middle cannot reach through a trusted bottom what it lacks itself."""
    poor = SubagentProfile("poor", plugins=["subagent", "lab"], disallowed_tools=["crash"])
    poor = replace(poor, source=Source("project", "poor.json", trusted=False))
    rich = SubagentProfile("rich", plugins=["subagent", "lab"])
    seen: dict[int, list[str]] = {}

    def child(request: ModelRequest) -> Step:
        here = level(request)
        seen[here] = offered(request)
        if here == 3 or answers_in(request):
            return "done"
        return spawning(f"{here + 1}", profile="poor" if here == 1 else "rich")

    with staged(child, Lab(), config=settings(3, poor, rich)) as stage:
        assert stage.spawn("1", profile="rich")["success"]
        assert "crash" in seen[1]
        assert "crash" not in seen[2]
        assert "crash" not in seen[3]
        assert {"spawn_subagent" in seen[n] for n in (1, 2)} == {True}
        assert "spawn_subagent" not in seen[3], "the last level has nobody below it"


@pytest.mark.parametrize("depth", LEVELS)
def test_a_tool_that_is_switched_off_is_off_at_every_level(depth: int) -> None:
    seen: list[list[str]] = []

    def bottom(request: ModelRequest) -> Step:
        seen.append(offered(request))
        return "done"

    with staged(chain(depth, bottom), Lab(), config=settings(depth)) as stage:
        registry = stage.client.get_runtime().registry
        assert registry is not None
        registry.disable_tool("add")
        assert stage.spawn("1", profile="deep")["success"]
        assert "add" not in seen[0]
        assert "essay" in seen[0]


@pytest.mark.parametrize("depth", LEVELS)
def test_the_question_of_the_bottom_shows_its_whole_path(depth: int) -> None:
    """It reaches the one queue of the tree; the answer goes to the one that asked."""
    asked, noted = threading.Event(), list[PermissionAsked]()

    def bottom(request: ModelRequest) -> Step:
        return f"got {last_answer(request)}" if answers_in(request) else calling(("add", {"a": 41}))

    def note(event: Any) -> None:
        noted.append(event)
        asked.set()

    with staged(chain(depth, bottom), Lab(), config=settings(depth), permissions=ASK) as stage:
        runtime = stage.client.get_runtime()
        assert runtime.broker is not None
        runtime.bus.subscribe(note, interest=frozenset({PermissionAsked}))
        waiting = in_thread(lambda: stage.spawn("1", profile="deep"))
        assert asked.wait(20)
        agents = family(stage)
        assert noted[0].agent_id == agents[-1].agent_id
        request = runtime.broker.pending()[0]
        assert request.agent_path.count("\u203a") == depth
        assert [agent.run.phase for agent in agents] == ["awaiting_child"] * (depth - 1) + ["awaiting_permission"]
        runtime.broker.answer(request.id, "yes")
        assert "got 42" in waiting()["response"]
        assert_at_rest(stage)


@pytest.mark.parametrize("depth", LEVELS)
def test_a_denial_at_the_bottom_is_told_there_and_harms_nobody_above(depth: int) -> None:
    policy = {"version": "1.0", "defaultPolicy": "allow", "blacklist": {"tools": ["add"]}}

    def bottom(request: ModelRequest) -> Step:
        return "I was not allowed to" if answers_in(request) else calling(("add", {"a": 1}))

    with staged(chain(depth, bottom), Lab(), config=settings(depth), permissions=policy) as stage:
        result = stage.spawn("1", profile="deep")
        assert result["status"] == "completed"
        assert family(stage)[-1].run.status is Status.DENIED


# -- ids and events ----------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", LEVELS)
def test_ids_and_events_through_all_levels(depth: int) -> None:
    """Every agent has its own id, knows its parent, is created before it ends, and ends once."""
    with staged(chain(depth, "bottom"), Lab(), config=settings(depth, max_children=40, max_concurrent=4)) as stage:
        record = Record(stage)
        run_threads(5, lambda n: stage.spawn(f"1 number {n}", profile="deep"))
        agents = family(stage)
        assert len({agent.agent_id for agent in agents}) == 5 * depth
        parents = {e.agent_id: e.parent_id for e in record.events if isinstance(e, AgentCreated)}
        assert parents == {agent.agent_id: agent.parent_id for agent in agents}
        assert sorted(agent.depth for agent in agents) == sorted(list(range(1, depth + 1)) * 5)
        assert set(record.completions().values()) == {1}
        ended = [e.agent_id for e in record.events if isinstance(e, AgentCompleted)]
        for agent in agents:
            if agent.depth > 1:
                assert ended.index(agent.agent_id) < ended.index(agent.parent_id), "a parent that waits ends later"
        assert_at_rest(stage)


@pytest.mark.parametrize("depth", LEVELS)
def test_nobody_sees_or_touches_the_subagents_of_another_branch(depth: int) -> None:
    """An agent finds those below it, at any level, and no others; the main session finds all."""
    hold, tried = Hold(), dict[str, Any]()

    def bottom(request: ModelRequest) -> Step:
        return hold(request)

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "1 stranger":
            if not answers_in(request):
                hold_ids = [agent.agent_id for agent in family(stage) if agent.depth == depth]
                return calling(("cancel_subagent", {"agent_id": hold_ids[0]}), ("list_active_subagents", {}))
            tried["cancel"], tried["list"] = answers_in(request)
            return "done"
        return chain(depth, bottom)(request)  # type: ignore[no-any-return]

    with staged(child, Lab(), config=settings(depth)) as stage:
        run_id = stage.launch("1", profile="deep")
        hold.wait_entered()
        assert stage.spawn("1 stranger", profile="deep")["success"]
        assert tried["cancel"]["success"] is False
        assert "no subagent" in tried["cancel"]["error"]
        assert tried["list"]["count"] == 0
        assert stage.call("list_active_subagents")["count"] >= depth
        hold.release()
        assert stage.result(run_id)["success"]


# -- limits of profiles ------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_max_depth_is_exact(depth: int) -> None:
    """The chain goes down as far as the setting says and no further."""
    seen: list[int] = []

    def child(request: ModelRequest) -> Step:
        here = level(request)
        if not answers_in(request):
            seen.append(here)
            return spawning(f"{here + 1}", profile="deep") if "spawn_subagent" in offered(request) else "cannot spawn"
        return "done"

    with staged(child, Lab(), config=settings(depth)) as stage:
        assert stage.spawn("1", profile="deep")["success"]
        assert seen == list(range(1, depth + 1))


def test_allow_agents_holds_at_each_level_for_itself() -> None:
    """The first may spawn only seconds, a second only thirds; nobody inherits another's list."""
    first = SubagentProfile("first", plugins=["subagent"], allow_agents=["second"])
    second = SubagentProfile("second", plugins=["subagent"], allow_agents=["third-*"])
    third = SubagentProfile("third-one")
    found: dict[int, list[Any]] = {}

    def child(request: ModelRequest) -> Step:
        here, answers = level(request), answers_in(request)
        if here == 3:
            return "third"
        if not answers:
            wanted = ("second", "third-one", "first", None)
            each = ({"task": f"{here + 1} {name}", **({"profile": name} if name else {})} for name in wanted)
            return calling(*(("spawn_subagent", order) for order in each))
        found[here] = answers
        return "done"

    with staged(child, config=settings(3, first, second, third)) as stage:
        assert stage.spawn("1", profile="first")["success"]
        assert [answer["success"] for answer in found[1]] == [True, False, False, False]
        assert [answer["success"] for answer in found[2]] == [False, True, False, False]
        assert "may not spawn 'third-one'; it may spawn: second" in found[1][1]["error"]
        assert len(family(stage)) == 3


@pytest.mark.parametrize("depth", LEVELS)
def test_max_children_of_a_profile_at_every_level(depth: int) -> None:
    """Each agent may have two live ones below it, whatever the settings allow; a refusal starts nothing."""
    pair = SubagentProfile("pair", plugins=["subagent"], max_children=2)
    hold, refused = Hold(), list[str]()

    def child(request: ModelRequest) -> Step:
        here, answers = level(request), answers_in(request)
        if here == depth:
            return hold(request)
        if not answers:
            more = {"profile": "pair", "background": True}
            return calling(
                *(("spawn_subagent", {"task": f"{here + 1} {task_of(request)} {n}", **more}) for n in range(3))
            )
        if len(answers) == 3:
            refused.extend(answer["error"] for answer in answers if not answer["success"])
            return calling(("wait_for_subagents", {}))
        return "spawned"

    with staged(child, config=settings(depth, pair, max_concurrent=50)) as stage:
        run_id = stage.launch("1", profile="pair")
        hold.wait_entered(2 ** (depth - 1))
        wait_for(lambda: len(refused) == 2 ** (depth - 1) - 1)
        assert all("max_children is 2" in text for text in refused)
        assert len(family(stage)) == 2**depth - 1
        hold.release()
        stage.result(run_id)
        assert_at_rest(stage)
