"""Children that ask for permission: who asks, who is answered, who waits, and what a refusal means."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.rights import by_task, desk, request_of, write_profile
from support.subagents import Hold, Play, answers_in, calling, last_answer, spawning, staged
from support.tools import Lab

from shared.permissions import PermissionBroker, PermissionRequest
from shared.permissions.host_queue import QueueChannel
from shared.permissions.policy_file import parse_policy

ADD = [calling(("add", {"a": 1})), "done"]


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_HOME", str(tmp_path_factory.mktemp("home")))


def _asking(**options: Any) -> tuple[PermissionBroker, QueueChannel]:
    """A gate that asks about everything, and the host's end of it."""
    channel = QueueChannel()
    return PermissionBroker(parse_policy("ask"), channel=channel, **options), channel


def _next(channel: QueueChannel) -> PermissionRequest:
    request = channel.next(timeout=20)
    assert request is not None, "nobody asked"
    return request


def test_two_children_ask_at_once_and_each_gets_its_own_answer() -> None:
    gate, channel = _asking()
    child = by_task({task: [calling(("add", {"a": number})), "done"] for task, number in (("one", 1), ("two", 2))})
    with staged(child, Lab(), permissions=gate, config={"profiles": {"p": {"plugins": ["lab"]}}}) as stage:
        agents = {
            "one": stage.launch("one", name="first"),
            "two": stage.launch("two", profile="p", name="second"),
        }
        asked = {request.agent_id: request for request in (_next(channel), _next(channel))}
        assert set(asked) == set(agents.values())
        first, second = asked[agents["one"]], asked[agents["two"]]
        assert (first.agent_path, first.profile, first.arguments) == ("main \u203a first", "", {"a": 1})
        assert (second.agent_path, second.profile, second.arguments) == ("main \u203a second", "p", {"a": 2})
        assert channel.answer(second.id, "no")
        assert channel.answer(first.id, "yes")
        assert stage.result(agents["one"])["status"] == "completed"
        assert stage.result(agents["two"])["status"] == "denied"
        assert last_answer(request_of(stage.play, "one")) == 2
        assert "a person denied it" in str(last_answer(request_of(stage.play, "two")))


def test_a_grandchild_asks_under_its_whole_path() -> None:
    gate, channel = _asking()
    child = by_task({"mid": [spawning("leaf", name="leaf"), "ok"], "leaf": ADD})
    profiles = {"boss": {"plugins": ["subagent", "lab"]}}
    with staged(child, Lab(), permissions=gate, config={"profiles": profiles, "max_depth": 2}) as stage:
        agent = stage.launch("mid", profile="boss", name="mid")
        spawn = _next(channel)
        assert (spawn.agent_path, spawn.tool) == ("main \u203a mid", "spawn_subagent")
        channel.answer(spawn.id, "yes")
        asked = _next(channel)
        assert asked.agent_path == "main \u203a mid \u203a leaf"
        assert asked.parents == ("main", "mid")
        channel.answer(asked.id, "yes")
        assert stage.result(agent)["status"] == "completed"


def test_a_background_child_that_waits_for_an_answer_blocks_nobody() -> None:
    gate, channel = _asking()
    child = by_task({"asks": ADD, "talks": "done"})
    with staged(child, Lab(), permissions=gate, config={"max_concurrent": 1}) as stage:
        asking = stage.launch("asks")
        request = _next(channel)
        assert stage.spawn("talks")["status"] == "completed", "the one that asks holds no place"
        (listed,) = [
            each for each in stage.call("list_active_subagents")["active_sessions"] if each["agent_id"] == asking
        ]
        assert (listed["status"], listed["phase"]) == ("running", "awaiting_permission")
        assert stage.call("get_subagent_result", agent_id=asking)["phase"] == "awaiting_permission"
        channel.answer(request.id, "yes")
        assert stage.result(asking)["status"] == "completed"


def test_a_child_cancelled_while_it_asks_takes_its_question_back() -> None:
    gate, channel = _asking()
    with staged(ADD, Lab(), permissions=gate) as stage:
        agent = stage.launch()
        request = _next(channel)
        assert stage.call("cancel_subagent", agent_id=agent)["status"] == "cancelled"
        assert gate.pending() == []
        assert not gate.answer(request.id, "yes"), "an answer that comes too late changes nothing"
        assert stage.result(agent)["status"] == "cancelled"


@pytest.mark.parametrize(
    ("child", "policy", "status"),
    [
        ([calling(("add", {"a": 1})), "I could not"], "deny", "denied"),
        ([calling(("add", {"a": 1}), ("look", {})), "found another way"], "deny", "completed"),
        (["no tool needed"], "deny", "completed"),
        (
            [calling(("add", {"a": 1})), "ok"],
            {"defaultPolicy": "allow", "blacklist": {"tools": ["crash"]}},
            "completed",
        ),
    ],
)
def test_denied_is_final_only_for_a_child_that_could_not_go_on(child: Any, policy: Any, status: str) -> None:
    with staged(child, Lab(), desk(), permissions=policy) as stage:
        result = stage.spawn("work")
        assert result["status"] == status
        assert result["success"] is (status == "completed")
        assert result["response"], "what it said is kept"


def test_a_question_that_nobody_answers_is_denied_and_the_child_is_told_why() -> None:
    gate, _ = _asking(ttl_seconds=0.05)
    with staged(ADD, Lab(), permissions=gate) as stage:
        assert stage.spawn("work")["status"] == "denied"
        assert "timed out" in str(last_answer(request_of(stage.play, "work")))
        assert gate.pending() == []


def test_an_answer_for_this_agent_does_not_reach_its_sibling_and_lasts() -> None:
    gate, channel = _asking()
    twice = [calling(("add", {"a": 1})), calling(("add", {"a": 2})), "done", calling(("add", {"a": 3})), "done"]
    child = by_task({"trusted": twice, "sibling": ADD})
    with staged(child, Lab(), permissions=gate) as stage:
        trusted = stage.launch("trusted")
        channel.answer(_next(channel).id, "agent tool")
        assert stage.result(trusted)["status"] == "completed"
        sibling = stage.launch("sibling")
        request = _next(channel)
        assert request.agent_id == sibling
        channel.answer(request.id, "no")
        assert stage.result(sibling)["status"] == "denied"
        again = stage.call("continue_subagent", agent_id=trusted, message="once more")
        assert (again["status"], again["tool_calls"]) == ("completed", 1)
        assert channel.next(timeout=0) is None


def test_an_answer_for_everybody_settles_the_questions_that_wait() -> None:
    gate, channel = _asking()
    with staged(ADD, Lab(), permissions=gate) as stage:
        agents = [stage.launch(name=f"agent {number}") for number in range(3)]
        requests = [_next(channel) for _ in agents]
        channel.answer(requests[1].id, "session tool")
        assert [stage.result(agent)["status"] for agent in agents] == ["completed"] * 3


def test_a_policy_tightened_while_a_child_runs_holds_for_its_next_call(tmp_path: Path) -> None:
    file = tmp_path / "permissions.json"
    file.write_text(json.dumps({"version": "1.0", "defaultPolicy": "allow"}))
    hold = Hold(calling(("add", {"a": 2})))
    child = [calling(("add", {"a": 1})), hold, "done", calling(("add", {"a": 3})), "gave up"]
    with staged(child, Lab(), permissions=file, workspace=tmp_path) as stage:
        agent = stage.launch("work")
        hold.wait_entered()
        file.write_text(json.dumps({"version": "1.0", "defaultPolicy": "deny"}))
        broker = stage.client.get_runtime().broker
        assert broker is not None
        broker.reload()
        hold.release()
        assert stage.result(agent)["status"] == "completed"
        first, second = answers_in(request_of(stage.play, "work"))
        assert first == 2
        assert "permission denied" in str(second)
        assert stage.call("continue_subagent", agent_id=agent, message="on")["status"] == "denied"


# -- who may spawn without a question -------------------------------------------------------------


def _spawns(given: dict[str, Any], **options: Any) -> list[str]:
    """The tools that a person was asked about when the main model makes one spawn, which is refused."""
    gate, _ = _asking()
    asked: list[str] = []
    gate.on_requested = lambda request: (asked.append(request.tool), gate.answer(request.id, "no"))
    play = Play([spawning("work", **given), "ok"], "done")
    with staged(play, Lab(), permissions=gate, **options) as stage:
        stage.ask()
        assert bool(stage.play.child_requests) is not bool(asked)
    return asked


def _profile(**fields: Any) -> dict[str, Any]:
    return {"config": {"profiles": {"p": {"plugins": ["lab"], **fields}}}}


@pytest.mark.parametrize(
    ("given", "options", "asked"),
    [
        ({}, {}, True),
        ({"profile": "p"}, _profile(), True),
        ({"profile": "p"}, _profile(auto_approved=True), False),
        ({"profile": "p", "inline_config": {"max_turns": 1}}, _profile(auto_approved=True), True),
        ({"profile": "p", "inline_config": {"plugins": []}}, _profile(auto_approved=True), True),
    ],
)
def test_auto_approved_spares_the_question_for_the_bare_profile_only(
    given: dict[str, Any], options: dict[str, Any], asked: bool
) -> None:
    assert _spawns(given, **options) == (["spawn_subagent"] if asked else [])


@pytest.mark.parametrize("trusted", [False, True])
def test_auto_approved_in_a_project_file_needs_trust(tmp_path: Path, trusted: bool) -> None:
    write_profile(tmp_path, "p", plugins=["lab"], auto_approved=True)
    options = {"config": {"auto_discover_profiles": True}, "workspace": tmp_path, "trust_workspace": trusted}
    assert _spawns({"profile": "p"}, **options) == ([] if trusted else ["spawn_subagent"])


def test_auto_approved_spares_the_spawn_and_none_of_the_childs_own_calls() -> None:
    gate, _ = _asking()
    play = Play([spawning("work", profile="p"), "ok"], ADD)
    gate.on_requested = _answering(gate, "no")
    with staged(play, Lab(), permissions=gate, **_profile(auto_approved=True)) as stage:
        stage.ask()
        assert last_answer(stage.play.parent_requests[-1])["status"] == "denied"
        assert [entry.tool for entry in gate.execution_log()] == ["spawn_subagent", "add"]


def _answering(gate: PermissionBroker, word: str) -> Callable[[PermissionRequest], object]:
    return lambda request: gate.answer(request.id, word)
