"""Shared state: versions, compare-and-set, leases, waiting, limits, and one order of events for all threads."""

from __future__ import annotations

import itertools
import math
import random
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.engine import assert_at_rest, in_thread, profiles
from support.stress import rapid_switching, run_threads, wait_for
from support.subagents import answers_in, calling, last_answer, staged, task_of

from shared.cancel import CancelToken
from shared.errors import CancelledException, ToolError, VersionConflict
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.subagents import state as module
from shared.subagents.state import SharedState


class _Clock:
    """A clock that moves when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


# -- values and versions -----------------------------------------------------------------------------


def test_a_missing_key_has_version_zero() -> None:
    entry = SharedState().get("nothing")
    assert (entry.value, entry.version) == (None, 0)


def test_versions_count_from_one_and_compare_and_set_holds() -> None:
    state = SharedState()
    assert state.set("k", 1, expected_version=0).version == 1
    assert state.set("k", 2, expected_version=1).version == 2
    assert state.set("k", 3).version == 3
    for wrong in (0, 1, 2, 4):
        with pytest.raises(VersionConflict) as refused:
            state.set("k", "x", expected_version=wrong)
        assert refused.value.current == 3
    assert state.get("k").value == 3


def test_values_are_copied_in_and_out() -> None:
    state, value = SharedState(), {"list": [1, {"deep": True}]}
    stored = state.set("k", value)
    value["list"].append("after")  # type: ignore[attr-defined]
    stored.value["list"].append("after")
    first = state.get("k").value
    first["list"].clear()
    assert state.get("k").value == {"list": [1, {"deep": True}]}


@pytest.mark.parametrize("value", [{1, 2}, object(), math.nan, math.inf, b"bytes", "\ud800", 10**5000], ids=range(7))
def test_what_is_no_json_is_refused_and_changes_nothing(value: Any) -> None:
    state = SharedState()
    state.set("k", "before")
    with pytest.raises(ToolError, match="'k' cannot be written as JSON"):
        state.set("k", value)
    assert (state.get("k").value, state.get("k").version) == ("before", 1)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ToolError, match="JSON"):
        SharedState().set("k", value)


def test_sizes_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VALUE_CHARS", 100)
    monkeypatch.setattr(module, "MAX_TOTAL_CHARS", 250)
    monkeypatch.setattr(module, "MAX_KEYS", 4)
    state = SharedState()
    with pytest.raises(ToolError, match="103 characters; at most 100"):
        state.set("k", "x" * 101)
    with pytest.raises(ToolError, match="1 to 200 characters"):
        state.set("", 1)
    with pytest.raises(ToolError, match="1 to 200 characters"):
        state.set("k" * 201, 1)
    state.set("a", "x" * 98)
    state.set("b", "x" * 98)
    with pytest.raises(ToolError, match="full"):
        state.set("c", "x" * 98)
    state.set("b", "x")
    state.set("c", "x" * 98)
    state.set("d", 1)
    with pytest.raises(ToolError, match="4 keys"):
        state.set("e", 1)
    assert state.keys() == ["a", "b", "c", "d"]
    assert state.set("d", 2).version == 2


def test_keys_are_listed_by_prefix() -> None:
    state = SharedState()
    for key in ("b/2", "a/1", "b/1"):
        state.set(key, None)
    assert state.keys() == ["a/1", "b/1", "b/2"]
    assert state.keys("b/") == ["b/1", "b/2"]


# -- leases ------------------------------------------------------------------------------------------


def test_a_lease_runs_out_and_its_versions_go_on() -> None:
    clock = _Clock()
    state = SharedState(clock=clock)
    assert state.set("lock", "ann", expected_version=0, ttl_seconds=10).version == 1
    clock.now += 9.9
    with pytest.raises(VersionConflict):
        state.set("lock", "bob", expected_version=0, ttl_seconds=10)
    clock.now += 0.1
    assert state.get("lock").version == 0
    assert state.keys() == []
    assert state.set("lock", "bob", expected_version=0, ttl_seconds=10).version == 2
    with pytest.raises(VersionConflict):
        state.set("lock", "ann", expected_version=1)  # she slept too long: this is Bob's lease now


def test_a_lease_is_renewed_by_its_holder_and_a_plain_set_makes_it_last() -> None:
    clock = _Clock()
    state = SharedState(clock=clock)
    state.set("lock", "ann", ttl_seconds=10)
    clock.now += 9
    state.set("lock", "ann", expected_version=1, ttl_seconds=10)
    clock.now += 9
    assert state.get("lock").version == 2
    state.set("lock", "ann", expected_version=2)
    clock.now += 1e9
    assert state.get("lock").value == "ann"


def test_leases_that_ran_out_make_room_and_no_version_is_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEYS", 3)
    clock = _Clock()
    state = SharedState(clock=clock)
    for _ in range(5):
        state.set("a", 1, ttl_seconds=1)
    state.set("b", 1, ttl_seconds=1)
    state.set("c", 1)
    clock.now += 2
    assert state.set("d", 1).version == 6, "above all that were forgotten: an old version of a key means nothing new"
    assert state.keys() == ["c", "d"]
    assert state.set("a", 1, expected_version=0).version == 6


# -- waiting -----------------------------------------------------------------------------------------


def test_a_wait_ends_with_the_version_it_waits_for() -> None:
    state = SharedState()
    waiting = in_thread(lambda: state.wait_for("k", 2, timeout=None, cancel=CancelToken()))
    state.set("other", 1)
    state.set("k", "first")
    state.set("k", "second")
    entry = waiting()
    assert (entry.value, entry.version) == ("second", 2)
    assert state.wait_for("k", 1, timeout=0, cancel=CancelToken()).version == 2


def test_a_wait_ends_with_time_or_cancel_and_leaves_nothing_behind() -> None:
    state, token = SharedState(), CancelToken()
    state.set("k", 1)
    assert state.wait_for("k", 5, timeout=0.01, cancel=token).version == 1
    assert state.wait_for("missing", 1, timeout=0, cancel=token).version == 0
    assert state.wait_for("missing", 1, timeout=math.nan, cancel=token).version == 0
    assert not token._callbacks
    waiting = in_thread(lambda: state.wait_for("k", 5, timeout=1e300, cancel=token))
    wait_for(lambda: bool(token._callbacks))
    token.cancel("enough")
    with pytest.raises(CancelledException, match="enough"):
        waiting()
    with pytest.raises(CancelledException):
        state.wait_for("k", 5, timeout=None, cancel=token)


def test_a_lease_that_ran_out_is_not_what_somebody_waits_for() -> None:
    clock = _Clock()
    state = SharedState(clock=clock)
    state.set("k", 1, ttl_seconds=1)
    clock.now += 2
    assert state.wait_for("k", 1, timeout=0, cancel=CancelToken()).version == 0
    waiting = in_thread(lambda: state.wait_for("k", 1, timeout=20, cancel=CancelToken()))
    state.set("k", "again")
    assert waiting().value == "again"


# -- under threads -----------------------------------------------------------------------------------


def test_compare_and_set_from_many_threads_loses_no_count() -> None:
    state = SharedState()

    def body(index: int) -> None:
        for _ in range(1000):
            while True:
                entry = state.get("count")
                try:
                    state.set("count", (entry.value or 0) + 1, expected_version=entry.version)
                    break
                except VersionConflict:
                    continue

    with rapid_switching():
        run_threads(16, body)
    assert (state.get("count").value, state.get("count").version) == (16_000, 16_000)


_ticks = itertools.count()


@dataclass
class _Operation:
    """One call, when it was made and when it came back, and what it found."""

    kind: str
    called: int
    returned: int
    version: int
    value: Any = None


@dataclass
class _History:
    """What one key lived through, as its users saw it; checks that one order explains all of it."""

    operations: list[_Operation] = field(default_factory=list)

    def check(self) -> None:
        """Each version was written once, and no call saw less than what had been there before it was made."""
        writes = {each.version: each for each in self.operations if each.kind == "set"}
        assert len(writes) == sum(each.kind == "set" for each in self.operations), "a version was given twice"
        assert sorted(writes) == list(range(1, len(writes) + 1)), "a write was lost"
        for each in self.operations:
            if each.kind == "get" and each.version:
                assert each.value == writes[each.version].value, "a value that nobody wrote under that version"
                assert each.returned > writes[each.version].called, "read before it was written"
        newest = 0
        by_return = sorted(self.operations, key=lambda each: each.returned)
        done = 0
        for each in sorted(self.operations, key=lambda each: each.called):
            while done < len(by_return) and by_return[done].returned < each.called:
                newest = max(newest, by_return[done].version)
                done += 1
            assert each.version >= newest + (each.kind == "set"), "a call saw the past"


def test_all_threads_see_one_order_of_events() -> None:
    state = SharedState()
    histories = {key: _History() for key in ("a", "b")}

    def body(index: int) -> None:
        dice = random.Random(index)
        for number in range(150):
            key = dice.choice("ab")
            called = next(_ticks)
            try:
                entry, kind, value = _act(state, dice, key, f"{index}.{number}")
            except VersionConflict as conflict:
                found = _Operation("get", called, next(_ticks), conflict.current)
                found.kind = "refused"
            else:
                found = _Operation(kind, called, next(_ticks), entry.version, value)
            histories[key].operations.append(found)

    with rapid_switching():
        run_threads(12, body)
    for history in histories.values():
        assert len(history.operations) > 100
        history.check()


def _act(state: SharedState, dice: random.Random, key: str, value: str) -> tuple[Any, str, Any]:
    match dice.randrange(4):
        case 0:
            return state.set(key, value), "set", value
        case 1:
            return state.set(key, value, expected_version=state.get(key).version), "set", value
        case 2:
            entry = state.wait_for(key, dice.randrange(1, 5), timeout=0.001, cancel=CancelToken())
            return entry, "get", entry.value
    entry = state.get(key)
    return entry, "get", entry.value


def test_the_checker_finds_what_is_wrong() -> None:
    """A lost update, and a read of the past: the history above would not have passed with either."""
    twice = _History([_Operation("set", 0, 1, 1, "x"), _Operation("set", 2, 3, 1, "y")])
    past = _History([_Operation("set", 0, 1, 1, "x"), _Operation("set", 2, 3, 2, "y"), _Operation("get", 4, 5, 1, "x")])
    for history in (twice, past):
        with pytest.raises(AssertionError):
            history.check()


# -- through the tools -------------------------------------------------------------------------------


def _counting(request: ModelRequest) -> Step:
    """A child that adds one to a shared counter ten times, by reading and by compare-and-set."""
    found = [each for each in answers_in(request) if isinstance(each, dict)]
    if sum("message" in each and "version" in each for each in found) >= 10:
        return f"{task_of(request)} is done"
    last = found[-1] if found else {}
    if "value" not in last:
        return calling(("get_shared_state", {"key": "count"}))
    more = {"value": (last["value"] or 0) + 1, "expected_version": last["version"]}
    return calling(("set_shared_state", {"key": "count", **more}))


def test_counters_by_compare_and_set_from_32_agents_end_at_the_exact_sum() -> None:
    counter = SubagentProfile("counter", max_turns=100_000)
    config = {"max_children": 32, "max_concurrent": 32, **profiles(counter)}
    with rapid_switching(1e-5), staged(_counting, config=config) as stage:
        ids = [stage.launch(f"agent {number}", profile="counter") for number in range(32)]
        assert {stage.result(each)["status"] for each in ids} == {"completed"}
        assert stage.call("get_shared_state", key="count") == {
            "success": True,
            "key": "count",
            "value": 320,
            "version": 320,
        }
        assert_at_rest(stage)


def test_one_space_for_the_whole_tree_and_a_wait_that_a_sibling_ends() -> None:
    """With one slot: who waits for a value lets the sibling run that will write it."""

    def child(request: ModelRequest) -> Step:
        if answers_in(request):
            return str(last_answer(request).get("value"))
        if task_of(request) == "reader":
            return calling(("get_shared_state", {"key": "k", "wait_for_version": 1}))
        return calling(("set_shared_state", {"key": "k", "value": "from the writer"}))

    with staged(child, config={"max_concurrent": 1}) as stage:
        reader = stage.launch("reader")
        writer = stage.launch("writer")
        assert stage.result(writer)["status"] == "completed"
        assert stage.result(reader)["response"] == "from the writer"
        assert stage.call("list_shared_state") == {"success": True, "keys": ["k"], "count": 1}
        assert_at_rest(stage)


def test_two_conversations_share_nothing() -> None:
    with staged() as first, staged() as second:
        first.call("set_shared_state", key="k", value=1)
        assert second.call("get_shared_state", key="k")["version"] == 0


def test_a_refused_set_tells_the_model_the_version() -> None:
    with staged() as stage:
        stage.call("set_shared_state", key="k", value=1)
        answer = stage.call("set_shared_state", key="k", value=2, expected_version=0)
        assert (answer["success"], answer["version"]) == (False, 1)


def test_waiting_in_many_threads_wakes_each_for_its_version() -> None:
    state, barrier = SharedState(), threading.Barrier(9)
    seen: dict[int, int] = {}

    def body(index: int) -> None:
        barrier.wait(20)
        if index == 0:
            for number in range(8):
                state.set("k", number)
        else:
            seen[index] = state.wait_for("k", index, timeout=20, cancel=CancelToken()).version

    with rapid_switching():
        run_threads(9, body)
    assert all(version >= index for index, version in seen.items())
    assert len(seen) == 8
