"""The broker: one queue for all agents, exact approvals, scopes, TTL, cancel, hooks, log."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
import weakref
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support.permission_calls import CLI, READ, WRITE, Asking, caller, outcome, shown, tool, until

from shared.cancel import CancelToken
from shared.errors import ConfigError
from shared.permissions import (
    Channel,
    Decision,
    Outcome,
    PermissionBroker,
    PermissionRequest,
    Policy,
    Rules,
    build_gate,
)
from shared.permissions.host_queue import QueueChannel
from shared.toolbox import Toolbox
from shared.types import FunctionCall


class OneAtATime(Channel):
    """Counts how many questions it is shown at once; answers when told."""

    name: ClassVar[str] = "one"

    def __init__(self) -> None:
        self.showing: list[PermissionRequest] = []
        self.most = 0
        self.seen: list[str] = []
        self.ends: list[str] = []
        self._answers: dict[str, Decision] = {}
        self._changed = threading.Condition()

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        with self._changed:
            self.showing.append(request)
            self.seen.append(request.agent_id)
            self.most = max(self.most, len(self.showing))
        forget = ended.on_cancel(self._wake)
        try:
            with self._changed:
                self._changed.wait_for(lambda: request.id in self._answers or ended.is_cancelled, 20)
                if ended.is_cancelled:
                    self.ends.append(ended.reason)
                    raise RuntimeError("not needed")
                return self._answers[request.id]
        finally:
            forget()
            self.showing.remove(request)

    def say(self, word: str) -> None:
        with self._changed:
            self._answers[self.showing[0].id] = Decision.parse(word)
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


@pytest.fixture
def queue() -> QueueChannel:
    return QueueChannel()


@pytest.fixture
def broker(queue: QueueChannel) -> PermissionBroker:
    return build_gate("ask", channel=queue)


def take(queue: QueueChannel) -> PermissionRequest:
    request = queue.next(20)
    assert request is not None
    return request


# -- asking --------------------------------------------------------------------------------------------------------


def test_a_request_says_who_wants_what(broker: PermissionBroker, queue: QueueChannel) -> None:
    context = caller("a7", path="main \u203a lead \u203a researcher", profile="research")
    asking = Asking(broker, shown("edit", "change a.py", "-a\n+b", "diff"), {"path": "a.py"}, context)
    request = take(queue)
    assert (request.agent_id, request.agent_path, request.agent_name) == (
        "a7",
        "main \u203a lead \u203a researcher",
        "researcher",
    )
    assert (request.parents, request.profile) == (("main", "lead"), "research")
    assert (request.tool, request.arguments) == ("edit", {"path": "a.py"})
    assert (request.display.summary, request.display.format_hint) == ("change a.py", "diff")
    assert request.expires_at - request.asked_at == pytest.approx(300)
    assert broker.pending() == [request]
    assert json.loads(json.dumps(request.as_dict()))["agent"]["parents"] == ["main", "lead"]
    assert queue.answer(request.id, "y")
    assert asking.join() == "yes"
    assert broker.pending() == []


def test_a_display_that_fails_costs_nothing(broker: PermissionBroker, queue: QueueChannel) -> None:
    asking = Asking(broker, tool("bad", display=lambda args, context: 1 / 0), {"x": 1})
    request = take(queue)
    assert '"x": 1' in request.display.details
    broker.answer(request.id, "n")
    assert "a person denied it" in asking.join()


def test_a_denial_tells_the_model_why_and_not_to_try_again(broker: PermissionBroker, queue: QueueChannel) -> None:
    asking = Asking(broker, WRITE, {})
    broker.answer(take(queue).id, Decision(False, comment="not on\x1b[31m a Friday"))
    said = asking.join()
    assert "write_file" in said
    assert "not on\\x1b[31m a Friday" in said
    assert "Do not try the same call again" in said
    rule = outcome(build_gate({"blacklist": {"patterns": ["rm *"]}}), CLI, {"command": "rm x"})
    assert "blacklisted by pattern 'rm *'" in rule
    assert "Do not try" in rule


def test_two_agents_at_once_are_shown_one_after_the_other() -> None:
    channel = OneAtATime()
    broker = build_gate("ask", channel=channel)
    first, second = (Asking(broker, WRITE, {"n": n}, caller(f"agent{n}")) for n in (1, 2))
    until(lambda: len(broker.pending()) == 2 and channel.showing)
    shown_first = channel.showing[0].agent_id
    channel.say("y")
    until(lambda: channel.showing and channel.showing[0].agent_id != shown_first)
    channel.say("n")
    assert sorted([first.join()[:3], second.join()[:3]]) == ["per", "yes"]
    assert channel.most == 1


def test_a_question_blocks_nobody_who_needs_none(broker: PermissionBroker, queue: QueueChannel) -> None:
    asking = Asking(broker, WRITE, {}, caller("background"))
    request = take(queue)
    assert outcome(broker, READ, {}, caller("other")) == "yes"
    assert asking.waits
    broker.answer(request.id, "y")
    assert asking.join() == "yes"


def test_an_answer_counts_once(broker: PermissionBroker, queue: QueueChannel) -> None:
    asking = Asking(broker, WRITE, {})
    request = take(queue)
    assert broker.answer(request.id, "y") is True
    assert broker.answer(request.id, "n") is False
    assert broker.answer("unknown", "y") is False
    assert asking.join() == "yes"
    with pytest.raises(ConfigError, match="unknown answer 'maybe'"):
        broker.answer(request.id, "maybe")


def test_an_unanswered_question_times_out_as_denied(queue: QueueChannel) -> None:
    broker = PermissionBroker(Policy(), channel=queue, ttl_seconds=0.05)
    assert "timed out" in outcome(broker, WRITE, {})
    assert broker.pending() == []
    until(lambda: queue.next(0) is None)


def test_the_policys_channel_timeout_is_the_ttl(queue: QueueChannel) -> None:
    gate = build_gate({"channel": {"type": "queue", "timeout": 0.05}}, channel=queue)
    assert "timed out" in outcome(gate, WRITE, {})


def test_cancel_ends_a_waiting_question_at_once() -> None:
    channel = OneAtATime()
    broker = build_gate("ask", channel=channel)
    tokens = [CancelToken(), CancelToken()]
    asking = [Asking(broker, WRITE, {"n": n}, caller(f"a{n}", cancel=token)) for n, token in enumerate(tokens)]
    until(lambda: len(broker.pending()) == 2 and channel.showing)
    for token in tokens:
        token.cancel("stop")
    assert [each.join() for each in asking] == ["cancelled", "cancelled"]
    assert broker.pending() == []
    until(lambda: not channel.showing)
    late = Asking(broker, WRITE, {})
    until(lambda: channel.showing)
    channel.say("y")
    assert late.join() == "yes"


def test_a_cancelled_caller_is_not_asked_about(broker: PermissionBroker, queue: QueueChannel) -> None:
    token = CancelToken()
    token.cancel()
    assert outcome(broker, WRITE, {}, caller(cancel=token)) == "cancelled"
    assert broker.pending() == []


class Arguments(dict[str, Any]):
    """Arguments whose end can be watched."""


def test_a_long_lived_token_keeps_nothing_of_an_answered_question(queue: QueueChannel) -> None:
    gate = PermissionBroker(Policy(), channel=queue, on_requested=lambda request: gate.answer(request.id, "y"))
    token, args = CancelToken(), Arguments(path="a")
    watched = weakref.ref(args)
    assert outcome(gate, WRITE, args, caller(cancel=token)) == "yes"
    del args
    assert until(lambda: gc.collect() >= 0 and watched() is None)
    assert not token.is_cancelled


# -- broken channels -----------------------------------------------------------------------------------------------


class Broken(Channel):
    """Does what it is told to do wrong."""

    name: ClassVar[str] = "broken"

    def __init__(self, act: Any) -> None:
        self._act = act

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        made: Decision = self._act()
        return made


@pytest.mark.parametrize(
    "act",
    [
        lambda: 1 / 0,
        lambda: None,
        lambda: True,
        lambda: "yes",
        lambda: (_ for _ in ()).throw(SystemExit(0)),
        lambda: (_ for _ in ()).throw(KeyboardInterrupt()),
        lambda: Decision("no"),  # type: ignore[arg-type]
    ],
)
def test_a_broken_channel_denies_and_the_queue_goes_on(act: Any) -> None:
    broker = build_gate("ask", channel=Broken(act))
    for _ in range(2):
        assert outcome(broker, WRITE, {}).startswith("permission denied")
    assert broker.pending() == []


def test_a_channel_that_never_returns_cannot_hold_a_caller() -> None:
    release = threading.Event()
    broker = PermissionBroker(Policy(), channel=Broken(lambda: release.wait(20)), ttl_seconds=0.1)
    try:
        assert "timed out" in outcome(broker, WRITE, {})
        assert "timed out" in outcome(broker, WRITE, {})
    finally:
        release.set()


def test_closing_denies_what_waits_and_what_comes(broker: PermissionBroker, queue: QueueChannel) -> None:
    asking = Asking(broker, WRITE, {})
    take(queue)
    broker.close()
    assert "closed" in asking.join()
    assert "nobody can be asked" in outcome(broker, WRITE, {})
    assert outcome(broker, READ, {}) == "yes"


def test_a_closed_channel_denies(broker: PermissionBroker, queue: QueueChannel) -> None:
    asking = Asking(broker, WRITE, {})
    take(queue)
    queue.close()
    assert asking.join().startswith("permission denied")
    assert queue.next(0) is None


# -- scopes --------------------------------------------------------------------------------------------------------


def granted(broker: PermissionBroker, word: str, used: Any, args: dict[str, Any], context: Any = None) -> str:
    """Ask, answer with a word, give the result."""
    asking = Asking(broker, used, args, context)
    request = until(lambda: broker.pending())[0]
    broker.answer(request.id, word)
    return asking.join()


def verdicts(broker: PermissionBroker, used: Any) -> list[str]:
    """For: the same call and agent; another agent; other arguments; another tool."""
    same = {"x": 1} if used is not CLI else {"command": "make a"}
    other = {"x": 2} if used is not CLI else {"command": "make b"}
    return [
        broker.evaluate(used, same, agent_id="a").action,
        broker.evaluate(used, same, agent_id="b").action,
        broker.evaluate(used, other, agent_id="a").action,
        broker.evaluate(tool("another"), same, agent_id="a").action,
    ]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("y", "ask ask ask ask"),
        ("once", "ask ask ask ask"),
        ("agent", "allow ask ask ask"),
        ("session", "allow allow ask ask"),
        ("agent tool", "allow ask allow ask"),
        ("session tool", "allow allow allow ask"),
        ("always", "allow allow allow ask"),
        ("a", "allow allow allow ask"),
        ("always call", "allow allow ask ask"),
        ("all", "allow allow allow allow"),
        ("n", "ask ask ask ask"),
        ("deny agent", "deny ask ask ask"),
        ("deny session", "deny deny ask ask"),
        ("never", "deny deny deny ask"),
    ],
)
def test_an_approval_covers_what_was_shown_unless_widened(broker: PermissionBroker, word: str, expected: str) -> None:
    result = granted(broker, word, WRITE, {"x": 1}, caller("a"))
    assert (result == "yes") is Decision.parse(word).allow
    assert verdicts(broker, WRITE) == expected.split()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("always", "allow allow ask ask"),
        ("never", "deny deny ask ask"),
        ("session tool", "allow allow allow ask"),
        ("never tool", "deny deny deny ask"),
    ],
)
def test_for_shell_tools_always_means_the_command_that_was_shown(
    broker: PermissionBroker, word: str, expected: str
) -> None:
    granted(broker, word, CLI, {"command": "make a"}, caller("a"))
    assert verdicts(broker, CLI) == expected.split()


def test_the_blacklist_beats_every_grant(queue: QueueChannel) -> None:
    broker = build_gate({"blacklist": {"patterns": ["rm *"]}}, channel=queue)
    granted(broker, "all", CLI, {"command": "ls"})
    granted_tool = broker.evaluate(CLI, {"command": "make"}).action
    assert granted_tool == "allow"
    assert broker.evaluate(CLI, {"command": "x; rm y"}).action == "deny"
    assert broker.evaluate(CLI, {"command": "$X y"}).action == "ask"


def test_a_wide_answer_settles_the_others_that_wait(broker: PermissionBroker, queue: QueueChannel) -> None:
    writers = [Asking(broker, WRITE, {"n": n}, caller(f"a{n}")) for n in range(5)]
    other = Asking(broker, tool("other"), {})
    until(lambda: len(broker.pending()) == 6)
    request = next(each for each in broker.pending() if each.tool == "write_file")
    broker.answer(request.id, "session tool")
    assert [each.join() for each in writers] == ["yes"] * 5
    assert [each.tool for each in broker.pending()] == ["other"]
    broker.deny(Rules(tools=("other",)))
    assert "a person denied" in other.join()


def test_arguments_that_change_while_the_question_is_open_are_not_what_was_shown(broker: PermissionBroker) -> None:
    args = {"path": "a", "lines": [1]}
    asking = Asking(broker, WRITE, args)
    request = until(lambda: broker.pending())[0]
    args["lines"].append(2)  # type: ignore[attr-defined]
    assert request.arguments["lines"] == [1]
    broker.answer(request.id, "y")
    assert "arguments changed" in asking.join()


# -- always, on disk -----------------------------------------------------------------------------------------------


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"version": "1.0", "defaultPolicy": "ask", "whitelist": {"tools": ["x"]}}))
    path.chmod(0o640)
    return path


@pytest.mark.parametrize(
    ("word", "used", "args", "group", "kind", "rule"),
    [
        ("always", WRITE, {"x": 1}, "whitelist", "tools", "write_file"),
        ("always", CLI, {"command": "make test"}, "whitelist", "patterns", "make test"),
        ("always", CLI, {"command": "grep '[a]*' x?"}, "whitelist", "patterns", "grep '[[]a][*]' x[?]"),
        ("always call", WRITE, {"x": 1}, "whitelist", "patterns", "write_file(x=1)"),
        ("deny always", WRITE, {"x": 1}, "blacklist", "tools", "write_file"),
        ("deny always", CLI, {"command": "make test"}, "blacklist", "patterns", "make test"),
    ],
)
def test_always_is_written_to_the_policy_file(
    policy_file: Path, word: str, used: Any, args: Any, group: str, kind: str, rule: str
) -> None:
    broker = build_gate(policy_file, channel=QueueChannel())
    granted(broker, word, used, args)
    written = until(lambda: rule in json.loads(policy_file.read_text()).get(group, {}).get(kind, []))
    assert written
    assert policy_file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(policy_file.parent) == ["policy.json"]
    fresh = build_gate(policy_file)
    assert fresh.evaluate(used, args).action == ("allow" if group == "whitelist" else "deny")
    assert fresh.evaluate(tool("x"), {}).action == "allow"


@pytest.mark.parametrize("word", ["y", "agent tool", "session tool", "all", "never"])
def test_nothing_else_is_written(policy_file: Path, word: str) -> None:
    before = policy_file.read_bytes()
    broker = build_gate(policy_file, channel=QueueChannel())
    granted(broker, word, WRITE, {})
    broker.close()
    assert policy_file.read_bytes() == before


def test_what_no_rule_can_say_exactly_stays_in_this_session(policy_file: Path) -> None:
    before = policy_file.read_bytes()
    broker = build_gate(policy_file, channel=QueueChannel())
    granted(broker, "always", CLI, {"command": "make a && make b"})
    assert until(lambda: broker.evaluate(CLI, {"command": "make a && make b"}).action == "allow")
    assert policy_file.read_bytes() == before


def test_a_file_that_broke_meanwhile_is_left_alone(policy_file: Path) -> None:
    broker = build_gate(policy_file, channel=QueueChannel())
    policy_file.write_text("{ half")
    assert granted(broker, "always", WRITE, {}) == "yes"
    assert until(lambda: broker.evaluate(WRITE, {}).action == "allow")
    assert policy_file.read_text() == "{ half"


# -- hooks, log, toolbox -------------------------------------------------------------------------------------------


def test_hooks_are_told_once_each_and_cannot_decide(queue: QueueChannel) -> None:
    told: list[str] = []

    def requested(request: PermissionRequest) -> None:
        told.append(f"asked {request.tool}")
        raise RuntimeError("a view crashed")

    def resolved(request: PermissionRequest, end: Outcome) -> None:
        told.append(f"{end.method} {end.granted} {request.id not in [each.id for each in gate.pending()]}")

    gate = PermissionBroker(Policy(), channel=queue, on_requested=requested, on_resolved=resolved)
    granted(gate, "y", WRITE, {})
    granted(gate, "n", WRITE, {})
    assert told == ["asked write_file", "user_approved True True", "asked write_file", "user_denied False True"]


def test_a_hook_may_answer(queue: QueueChannel) -> None:
    gate = PermissionBroker(Policy(), channel=queue, on_requested=lambda request: gate.answer(request.id, "y"))
    assert outcome(gate, WRITE, {}) == "yes"


def test_the_log_keeps_every_decision(queue: QueueChannel) -> None:
    broker = build_gate({"blacklist": {"tools": ["x"]}}, channel=queue)
    outcome(broker, tool("x"), {})
    outcome(broker, READ, {})
    granted(broker, "y", WRITE, {}, caller("a1"))
    entries = [(entry.agent_id, entry.tool, entry.granted, entry.method) for entry in broker.execution_log()]
    assert entries == [
        ("main", "x", False, "blacklist"),
        ("main", "read_file", True, "auto_approved"),
        ("a1", "write_file", True, "user_approved"),
    ]
    broker.clear_log()
    assert broker.execution_log() == []


def test_it_is_the_gate_of_a_toolbox(broker: PermissionBroker, queue: QueueChannel) -> None:
    ran: list[Any] = []
    used = tool("touch")
    box = Toolbox([type(used)(used.schema, lambda args, context: ran.append(args))], gate=broker)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(box.run(FunctionCall("1", "touch", {}), caller())))
    thread.start()
    broker.answer(take(queue).id, "n")
    thread.join(20)
    assert results[0].is_error
    assert "permission denied for touch" in results[0].text
    assert ran == []


def test_allow_needs_no_question_and_is_logged() -> None:
    broker = build_gate("allow")
    assert outcome(broker, CLI, {"command": "rm -rf x"}) == "yes"
    assert broker.execution_log()[0].method == "allow_all"
    broker.deny(Rules(patterns=("rm *",)))
    assert "a person denied pattern 'rm *'" in outcome(broker, CLI, {"command": "rm -rf x"})
    broker.clear_grants()
    assert outcome(broker, CLI, {"command": "rm -rf x"}) == "yes"


def test_a_broker_passes_through_build_gate(broker: PermissionBroker) -> None:
    assert build_gate(broker) is broker
    with pytest.raises(ConfigError, match="permissions: expected"):
        build_gate(5)  # type: ignore[arg-type]


def test_time_of_a_request_is_wall_clock(broker: PermissionBroker, queue: QueueChannel) -> None:
    before = time.time()
    asking = Asking(broker, WRITE, {})
    request = take(queue)
    assert before <= request.asked_at <= time.time()
    broker.answer(request.id, "y")
    asking.join()
