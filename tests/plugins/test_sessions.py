"""Plugin `sessions`: the five tools, their statuses and limits, label lookup, replies, history and cleanup."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.engine import in_thread
from support.stress import run_threads, wait_for
from support.subagents import PATIENCE, Errands, Hold, Play, answers_in, calling, last_answer, user_texts

from shared import JaatoClient, PluginRegistry
from shared.plugins.sessions import SessionsPlugin
from shared.plugins.sessions.answers import HISTORY_CHARS
from shared.plugins.subagent import SubagentPlugin, SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import ScriptProvider, Step
from shared.subagents.seat import Seat
from shared.subagents.tree import Tree

TOOLS = ["sessions_spawn", "sessions_send", "sessions_list", "sessions_history", "sessions_kill"]
ANALYST = SubagentProfile("analyst", plugins=["sessions"], allow_agents=["researcher", "operations"], max_children=3)
RESEARCHER = SubagentProfile("researcher", description="Looks things up.")


def echo(request: ModelRequest) -> Step:
    return f"said: {user_texts(request)[-1]}"


class Desk:
    """A client with the plugin, and its tools as host code calls them."""

    def __init__(self, client: JaatoClient, play: Play, plugin: SessionsPlugin) -> None:
        self.client, self.play, self.plugin = client, play, plugin
        self._executors = plugin.get_executors()

    @property
    def tree(self) -> Tree:
        return Seat.of(self.client.get_session(), digest_tokens=1000).tree

    def call(self, tool: str, /, **args: Any) -> Any:
        return self._executors[f"sessions_{tool}"](args)

    def spawn(self, task: str = "a task", agent_id: str = "researcher", /, **args: Any) -> str:
        answer = self.call("spawn", agent_id=agent_id, task=task, **args)
        assert answer["success"], answer
        return str(answer["run_id"])

    def entry(self, run_id: str) -> dict[str, Any]:
        return next(each for each in self.call("list")["sessions"] if each["run_id"] == run_id)

    def ended(self, run_id: str) -> dict[str, Any]:
        agent = self.tree.get(run_id)
        assert agent is not None
        assert agent.run.done.wait(PATIENCE)
        return self.entry(run_id)


@contextmanager
def desk(
    child: Any = echo,
    *profiles: SubagentProfile,
    parent: Any = None,
    config: dict[str, Any] | None = None,
    permissions: Any = "allow",
    subagent: dict[str, Any] | None = None,
    store: Path | None = None,
) -> Iterator[Desk]:
    play = Play(parent or Errands(), child)
    registry = PluginRegistry()
    registry.discover()
    if subagent is not None:
        registry.expose_tool("subagent", {"auto_discover_profiles": False, **subagent})
    registry.expose_tool("sessions", config)
    client = JaatoClient("script", subagents=[*(profiles or (RESEARCHER,))], store=store)
    client.register_provider("script", ScriptProvider(play))
    client.connect(model="script-model")
    client.configure_tools(registry, permissions=permissions)
    plugin = registry.get_plugin("sessions")
    assert isinstance(plugin, SessionsPlugin)
    try:
        yield Desk(client, play, plugin)
    finally:
        client.close()


def test_five_tools() -> None:
    with desk() as here:
        assert here.client.get_session().tool_names == TOOLS
        assert here.plugin.get_auto_approved_tools() == ["sessions_list"]


def test_sessions_spawn_returns_immediately() -> None:
    """`"Spawned: {run_id} (agent: {agent_id}, label: {label})"`"""
    hold = Hold()
    with desk(hold) as here:
        answer = here.call("spawn", agent_id="researcher", task="dig", label="digging")
        run_id = answer["run_id"]
        assert answer["status"] == "running"
        assert answer["message"] == f"Spawned: {run_id} (agent: researcher, label: digging)"
        hold.wait_entered()
        listed = here.entry(run_id)
        assert (listed["status"], listed["label"], listed["agent_id"], listed["depth"], listed["parent"]) == (
            "running",
            "digging",
            "researcher",
            1,
            "main",
        )
        assert listed["runtime_seconds"] >= 0
        hold.release()
        assert here.ended(run_id)["status"] == "done"


@pytest.mark.parametrize(
    ("child", "word", "detail"),
    [
        ("fine", "done", "completed"),
        (RuntimeError("broken"), "error", "failed"),
        (calling(("sessions_list", {}), text="so far"), "error", "partial (max_turns)"),
    ],
)
def test_statuses(child: Any, word: str, detail: str) -> None:
    profile = SubagentProfile("analyst", plugins=["sessions"], max_turns=2)
    with desk(child, profile) as here:
        ended = here.ended(here.spawn("go", "analyst"))
        assert (ended["status"], ended["detail"]) == (word, detail)


def test_status_timeout() -> None:
    hold = Hold()
    with desk(hold) as here:
        ended = here.ended(here.spawn("slow", timeout=0.05))
        assert (ended["status"], ended["detail"]) == ("timeout", "timed_out")
        hold.release()


def test_default_timeout_of_300_seconds() -> None:
    """Unless the call, the agent itself or the host says something else; a longer one is never given."""
    own = SubagentProfile("own", timeout_seconds=900)
    short = SubagentProfile("short", timeout_seconds=60)
    with desk(echo, RESEARCHER, own, short) as here:
        cases = {("researcher", None): 300, ("researcher", 20): 20, ("own", None): 900, ("short", 700): 60}
        for (agent, timeout), expected in cases.items():
            given = {} if timeout is None else {"timeout": timeout}
            found = here.tree.get(here.spawn(f"{agent} {timeout}", agent, **given))
            assert found is not None
            assert found.plan.profile.timeout_seconds == expected
    with desk(config={"default_timeout": 7}) as here:
        found = here.tree.get(here.spawn())
        assert found is not None
        assert found.plan.profile.timeout_seconds == 7


def test_model_override() -> None:
    with desk() as here:
        here.ended(here.spawn("go", model="another-model"))
        assert here.play.child_requests[-1].model == "another-model"


def test_label_lookup() -> None:
    with desk() as here:
        run_id = here.spawn("go", label="my label")
        here.ended(run_id)
        for name in (run_id, "my label"):
            assert here.call("history", run_id=name)["run_id"] == run_id
            assert here.call("send", run_id_or_label=name, message="hi")["reply"] == "said: hi"
        unknown = here.call("send", run_id_or_label="your label", message="hi")
        assert unknown["success"] is False
        assert run_id in unknown["error"]


def test_a_label_of_two_sessions_is_refused_with_both_ids() -> None:
    with desk() as here:
        ids = [here.spawn(task, label="twin") for task in ("one", "two")]
        answer = here.call("kill", run_id="twin")
        assert all(each in answer["error"] for each in ids)


def test_sessions_send_returns_the_reply_synchronously() -> None:
    with desk() as here:
        run_id = here.spawn("first")
        here.ended(run_id)
        answer = here.call("send", run_id_or_label=run_id, message="second")
        assert (answer["reply"], answer["status"], answer["success"]) == ("said: second", "done", True)
        assert user_texts(here.play.child_requests[-1]) == ["first", "second"]


def test_sessions_send_to_a_running_session() -> None:
    """The message reaches it in its work; the reply is the answer that follows."""
    hold = Hold(calling(("sessions_list", {})))

    def child(request: ModelRequest) -> Step:
        return f"heard: {user_texts(request)[-1]}" if answers_in(request) else hold(request)

    with desk(child, SubagentProfile("analyst", plugins=["sessions"])) as here:
        run_id = here.spawn("go", "analyst")
        hold.wait_entered()
        sent = in_thread(lambda: here.call("send", run_id_or_label=run_id, message="look left"))
        agent = here.tree.get(run_id)
        assert agent is not None
        wait_for(lambda: agent.has_mail)
        hold.release()
        answer = sent()
        assert "look left" in answer["reply"]
        assert answer["status"] == "done"


def test_sessions_send_gives_up_in_time_and_the_session_goes_on() -> None:
    hold = Hold()
    with desk(hold) as here:
        run_id = here.spawn("slow")
        hold.wait_entered()
        answer = here.call("send", run_id_or_label=run_id, message="hurry", timeout=0.05)
        assert (answer["success"], answer["status"]) == (False, "running")
        assert "no reply in time" in answer["error"]
        hold.release()
        assert here.ended(run_id)["status"] == "done"


def test_sessions_send_to_one_that_is_killed_meanwhile_does_not_revive_it() -> None:
    hold = Hold()
    with desk(hold) as here:
        run_id = here.spawn("slow")
        hold.wait_entered()
        sent = in_thread(lambda: here.call("send", run_id_or_label=run_id, message="hello?"))
        agent = here.tree.get(run_id)
        assert agent is not None
        wait_for(lambda: agent.has_mail)
        here.call("kill", run_id=run_id)
        answer = sent()
        assert answer["success"] is False
        assert "before it read the message" in answer["error"]
        assert not agent.is_live
        hold.release()


def test_sessions_list_filters() -> None:
    hold = Hold()

    def child(request: ModelRequest) -> Step:
        task = user_texts(request)[0]
        return hold(request) if task == "slow" else RuntimeError("bad") if task == "bad" else "fine"

    with desk(child) as here:
        ids = {task: here.spawn(task) for task in ("slow", "bad", "good")}
        here.ended(ids["bad"])
        here.ended(ids["good"])
        hold.wait_entered()
        for task, word in {"slow": "running", "bad": "error", "good": "done"}.items():
            answer = here.call("list", status_filter=word)
            assert [each["run_id"] for each in answer["sessions"]] == [ids[task]]
            assert answer["count"] == 1
        assert here.call("list")["count"] == 3
        assert here.call("list", status_filter="timeout")["sessions"] == []
        assert "status_filter" in here.call("list", status_filter="waiting")["error"]
        hold.release()


def test_sessions_history_is_capped_at_10k_chars() -> None:
    with desk(lambda request: "y" * 30_000) as here:
        run_id = here.spawn("begin " + "x" * 30_000)
        here.ended(run_id)
        history = here.call("history", run_id=run_id)["history"]
        assert len(history) <= HISTORY_CHARS == 10_000
        assert history.startswith("[user] begin x")
        assert history.endswith("y")
        assert "left out" in history


def test_sessions_history_shows_calls_and_results() -> None:
    def child(request: ModelRequest) -> Step:
        return (
            "all seen" if answers_in(request) else calling(("sessions_list", {"status_filter": "done"}), text="I look")
        )

    with desk(child, SubagentProfile("analyst", plugins=["sessions"])) as here:
        run_id = here.spawn("go", "analyst")
        here.ended(run_id)
        lines = here.call("history", run_id=run_id)["history"].splitlines()
        assert lines[0] == "[user] go"
        assert lines[1] == "[model] I look"
        assert lines[2] == '[call] sessions_list {"status_filter": "done"}'
        assert lines[3].startswith("[result of sessions_list] ")
        assert lines[-1] == "[model] all seen"


def test_sessions_kill() -> None:
    hold = Hold()
    with desk(hold) as here:
        run_id = here.spawn("slow", label="doomed")
        hold.wait_entered()
        answer = here.call("kill", run_id="doomed")
        assert (answer["killed"], answer["status"], answer["detail"]) == ([run_id], "error", "cancelled")
        again = here.call("kill", run_id="doomed")
        assert (again["success"], again["killed"]) == (True, [])
        assert "nothing changed" in again["message"]
        hold.release()


def test_cleanup_delete() -> None:
    """Gone when it has ended, after its end was announced; `keep` stays to be talked to."""
    with desk(echo, parent="noted") as here:
        gone, kept = here.spawn("one", label="gone", cleanup="delete"), here.spawn("two", label="kept")
        agent = here.tree.get(gone)
        assert agent is not None
        wait_for(lambda: agent.closed)
        here.ended(kept)
        assert [each["run_id"] for each in here.call("list")["sessions"]] == [kept]
        for tool, args in {"history": {"run_id": gone}, "send": {"run_id_or_label": "gone", "message": "x"}}.items():
            assert "was deleted" in here.call(tool, **args)["error"]
        here.client.send_message("go on")
        told = "\n".join(user_texts(here.play.parent_requests[-1]))
        assert gone in told
        assert "said: one" in told


def test_cleanup_delete_waits_for_grandchildren() -> None:
    hold = Hold()

    def child(request: ModelRequest) -> Step:
        if user_texts(request)[0] == "below":
            return hold(request)
        order = {"agent_id": "researcher", "task": "below"}
        return "spawned" if answers_in(request) else calling(("sessions_spawn", order))

    with desk(child, ANALYST, RESEARCHER) as here:
        top = here.tree.get(here.spawn("above", "analyst", cleanup="delete"))
        assert top is not None
        hold.wait_entered()
        assert top.run.done.wait(PATIENCE)
        assert not top.closed
        hold.release()
        wait_for(lambda: top.closed)
        below = here.tree.children(top.agent_id)[0]
        assert below.run.status == "completed"


def test_recursive_spawning() -> None:
    """At depth 1 with max_spawn_depth=2 a subagent can spawn, at depth 2 it cannot; the result comes up."""

    def child(request: ModelRequest) -> Step:
        names = [schema.name for schema in request.tools.schemas]
        if user_texts(request)[0] == "below":
            return "has sessions_spawn" if "sessions_spawn" in names else "has no sessions_spawn"
        found = answers_in(request)
        if not found:
            return calling(("sessions_spawn", {"agent_id": "researcher", "task": "below", "label": "b"}))
        return (
            calling(("sessions_send", {"run_id_or_label": "b", "message": "well?"}))
            if len(found) == 1
            else (str(last_answer(request)["reply"]))
        )

    deep = SubagentProfile("researcher", plugins=["sessions"])
    with desk(child, ANALYST, deep) as here:
        run_id = here.spawn("above", "analyst")
        here.ended(run_id)
        history = here.call("history", run_id=run_id)["history"]
        assert history.endswith("[model] has no sessions_spawn")
        assert [agent.depth for agent in here.tree.below("main")] == [1, 2]


def test_depth_check() -> None:
    def child(request: ModelRequest) -> Step:
        return "tools: " + ", ".join(schema.name for schema in request.tools.schemas)

    with desk(child, ANALYST, config={"max_spawn_depth": 1}) as here:
        run_id = here.spawn("go", "analyst")
        here.ended(run_id)
        assert "sessions_spawn" not in here.call("history", run_id=run_id)["history"]
    with desk(child, ANALYST, config={"max_spawn_depth": 0}) as here:
        answer = here.call("spawn", agent_id="analyst", task="go")
        assert "max_depth is 0" in answer["error"]


def test_children_limit() -> None:
    hold = Hold()
    with desk(hold) as here:
        for number in range(5):
            here.spawn(f"task {number}")
        answer = here.call("spawn", agent_id="researcher", task="one too many")
        assert answer["success"] is False
        assert "max_children is 5" in answer["error"]
        hold.release()


def test_children_limit_holds_under_any_fan_out() -> None:
    hold = Hold()
    with desk(hold, config={"max_children": 4}) as here:
        answers: list[Any] = []
        run_threads(20, lambda n: answers.append(here.call("spawn", agent_id="researcher", task=f"{n}")))
        assert sum(answer["success"] for answer in answers) == 4
        hold.release()


def test_allowlist() -> None:
    """A per-agent override: analyst may spawn researcher and operations, three at most."""
    hold = Hold()
    seen: list[Any] = []

    def child(request: ModelRequest) -> Step:
        if user_texts(request)[0].startswith("below"):
            return hold(request)
        found = answers_in(request)
        if not found:
            orders = [("outsider", "x"), *(("researcher", f"below {n}") for n in range(4))]
            return calling(*(("sessions_spawn", {"agent_id": agent, "task": task}) for agent, task in orders))
        seen.extend(found)
        return "done"

    with desk(child, ANALYST, RESEARCHER, SubagentProfile("outsider")) as here:
        here.ended(here.spawn("above", "analyst"))
        assert "may not spawn 'outsider'" in seen[0]["error"]
        assert sorted(answer["success"] for answer in seen[1:]) == [False, True, True, True]
        assert "max_children is 3" in next(answer["error"] for answer in seen[1:] if not answer["success"])
        hold.release()


def test_announcement_is_deferred_until_all_descendants_complete() -> None:
    hold = Hold("the grandchild's word")

    def child(request: ModelRequest) -> Step:
        if user_texts(request)[0] == "below":
            return hold(request)
        order = {"agent_id": "researcher", "task": "below"}
        return "the child's word" if answers_in(request) else calling(("sessions_spawn", order))

    with desk(child, ANALYST, RESEARCHER, parent="noted") as here:
        top = here.tree.get(here.spawn("above", "analyst"))
        assert top is not None
        hold.wait_entered()
        assert top.run.done.wait(PATIENCE)
        here.client.send_message("first")
        assert user_texts(here.play.parent_requests[-1]) == ["first"]
        hold.release()
        assert here.tree.children(top.agent_id)[0].run.done.wait(PATIENCE)
        here.client.send_message("second")
        told = "\n".join(user_texts(here.play.parent_requests[-1]))
        assert told.count("the child's word") == 1


def test_a_reply_that_was_given_is_not_announced_again() -> None:
    with desk(echo, parent="noted") as here:
        run_id = here.spawn("go")
        here.ended(run_id)
        here.call("send", run_id_or_label=run_id, message="and?")
        here.client.send_message("news?")
        told = "\n".join(user_texts(here.play.parent_requests[-1]))
        assert told.count("said: go") == 1
        assert "said: and?" not in told


def test_spawning_asks_unless_a_trusted_agent_spares_it() -> None:
    policy = {"version": "1.0", "defaultPolicy": "deny"}
    free = SubagentProfile("free", auto_approved=True)
    orders = [
        ("sessions_spawn", {"agent_id": "researcher", "task": "a"}),
        ("sessions_spawn", {"agent_id": "free", "task": "b"}),
        ("sessions_spawn", {"agent_id": "free", "task": "c", "model": "dear-model"}),
        ("sessions_list", {}),
    ]
    with desk(echo, RESEARCHER, free, parent=[calling(*orders), "done"], permissions=policy) as here:
        here.client.send_message("go")
        refused, started, dearer, listed = answers_in(here.play.parent_requests[-1])
        assert "denied" in str(refused).lower()
        assert started["success"] is True
        assert "denied" in str(dearer).lower(), "what the agent's author did not choose is asked for"
        assert listed["success"] is True


def test_settings_of_the_subagent_plugin_count_where_it_is_exposed() -> None:
    hold = Hold()
    with desk(hold, subagent={"max_children": 1}, config={"max_children": 9}) as here:
        here.spawn("one")
        assert "max_children is 1" in here.call("spawn", agent_id="researcher", task="two")["error"]
        hold.release()


def test_a_profile_cannot_change_the_limits_of_the_host() -> None:
    bold = SubagentProfile("bold", plugins=["sessions"], plugin_configs={"sessions": {"max_spawn_depth": 9}})
    with desk(echo, bold) as here:
        answer = here.call("spawn", agent_id="bold", task="go")
        assert "only the host sets up 'sessions'" in answer["error"]


def test_no_child_inherits_the_tools_without_a_profile() -> None:
    with desk(echo) as here:
        here.client.delegate_sync(None, "bare")
        names = [schema.name for schema in here.play.child_requests[-1].tools.schemas]
        assert not set(names) & set(TOOLS)


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        ("spawn", {"task": "x"}, "agent_id"),
        ("spawn", {"agent_id": "researcher"}, "task"),
        ("spawn", {"agent_id": "researcher", "task": " "}, "task"),
        ("spawn", {"agent_id": "resercher", "task": "x"}, "Did you mean 'researcher'"),
        ("spawn", {"agent_id": "researcher", "task": "x", "timeout": 0}, "timeout"),
        ("spawn", {"agent_id": "researcher", "task": "x", "cleanup": "burn"}, "cleanup"),
        ("spawn", {"agent_id": "researcher", "task": "x", "label": "a\nb"}, "name"),
        ("spawn", {"agent_id": "researcher", "task": "x", "nonsense": 1}, "nonsense"),
        ("send", {"run_id_or_label": "x"}, "message"),
        ("history", {"run_id": "x"}, "none yet"),
        ("kill", {}, "run_id"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_started(tool: str, args: dict[str, Any], words: str) -> None:
    with desk() as here:
        answer = here.call(tool, **args)
        assert answer["success"] is False
        assert words in answer["error"]
        assert here.tree.spawned == 0


@pytest.mark.parametrize("config", [{"max_spawn_depth": -1}, {"max_children": 0}, {"default_timeout": "5m"}, {"x": 1}])
def test_wrong_settings_are_refused(config: dict[str, Any]) -> None:
    registry = PluginRegistry()
    registry.discover()
    with pytest.raises(Exception, match=f"sessions.*{next(iter(config))}"):
        registry.expose_tool("sessions", config)


def test_many_sends_to_one_session_each_get_a_reply() -> None:
    with desk() as here:
        run_id = here.spawn("go")
        here.ended(run_id)
        replies: list[Any] = []
        run_threads(8, lambda n: replies.append(here.call("send", run_id_or_label=run_id, message=f"m{n}")))
        assert [reply["status"] for reply in replies] == ["done"] * 8, replies
        heard = user_texts(here.play.child_requests[-1])
        assert all(any(f"m{n}" in text for text in heard) for n in range(8))


def test_the_same_engine_as_the_subagent_plugin() -> None:
    """What one dialect starts, the other can read."""
    with desk(subagent={}) as here:
        run_id = here.spawn("go", label="mine")
        registry = here.client.get_runtime().registry
        assert registry is not None
        plugin = registry.get_plugin("subagent")
        assert isinstance(plugin, SubagentPlugin)
        found = plugin.get_executors()["get_subagent_result"]({"agent_id": run_id, "wait": True})
        assert found["response"] == "said: go"


def test_settings_files_beat_the_defaults_and_the_host_beats_both(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / ".jaato").mkdir()
    (tmp_path / ".jaato/config.yaml").write_text("max_children: 2\n", encoding="utf-8")
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / ".jaato"))
    for config, most in ((None, 2), ({"max_children": 3}, 3)):
        hold = Hold()
        with desk(hold, config=config) as here:
            started = [here.call("spawn", agent_id="researcher", task=f"{n}")["success"] for n in range(4)]
            assert sum(started) == most
            hold.release()


def test_a_session_that_rests_is_read_from_the_store(tmp_path: Path) -> None:
    """After `session_ttl_minutes` it leaves memory; its history stays readable, and it can be talked to again."""
    with desk(config={"session_ttl_minutes": 0.001}, store=tmp_path / "runs.db") as here:
        run_id = here.spawn("first", label="old")
        here.ended(run_id)
        here.client.send_message("take note of it")
        wait_for(lambda: here.tree.get(run_id) is None)
        assert here.call("history", run_id=run_id)["history"] == "[user] first\n[model] said: first"
        assert here.call("send", run_id_or_label=run_id, message="second")["reply"] == "said: second"
