"""Slots: a fair queue, no slot lost or doubled, and none held by a run that waits for others."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import threading

from support.engine import assert_at_rest, engine_of, in_thread, profiles
from support.stress import rapid_switching, run_threads, wait_for
from support.subagents import Hold, answers_in, calling, staged, task_of

from shared import Plugin, tool
from shared.cancel import CancelToken
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest, Traits
from shared.providers.script import ScriptProvider, Step
from shared.subagents.slots import Slots, Ticket


def _queue(slots: Slots, *names: str) -> tuple[list[str], dict[str, Ticket]]:
    """Tickets whose names begin with their parent's letter; and the names in the order in which they started."""
    started: list[str] = []
    tickets = {name: Ticket(name[0], lambda name=name: started.append(name)) for name in names}  # type: ignore[misc]
    for ticket in tickets.values():
        slots.enter(ticket)
    return started, tickets


def test_first_come_first_served_for_each_parent_and_parents_in_turn() -> None:
    slots = Slots(1)
    started, tickets = _queue(slots, "x0", "a1", "a2", "a3", "a4", "b1", "b2", "c1")
    for _ in range(8):
        slots.leave(tickets[started[-1]])
    assert started == ["x0", "a1", "b1", "c1", "a2", "b2", "a3", "a4"]
    assert slots.used == slots.waiting == 0


def test_a_queued_ticket_knows_its_place_and_can_be_withdrawn() -> None:
    slots = Slots(1)
    started, tickets = _queue(slots, "a1", "a2", "a3", "a4")
    assert [slots.position(ticket) for ticket in tickets.values()] == [None, 1, 2, 3]
    assert slots.withdraw(tickets["a3"])
    assert not slots.withdraw(tickets["a3"])
    assert not slots.withdraw(tickets["a1"]), "it has a slot"
    assert slots.position(tickets["a4"]) == 2
    slots.leave(tickets["a1"])
    slots.leave(tickets["a2"])
    assert started == ["a1", "a2", "a4"]


def test_leaving_twice_or_from_the_queue_frees_no_slot_of_others() -> None:
    slots = Slots(1)
    _, tickets = _queue(slots, "a1", "a2")
    slots.leave(tickets["a2"])
    assert (slots.used, slots.waiting) == (1, 0)
    slots.leave(tickets["a1"])
    slots.leave(tickets["a1"])
    assert (slots.used, slots.waiting) == (0, 0)


def test_who_waits_for_others_holds_no_slot_and_goes_on_before_the_queue() -> None:
    slots = Slots(1)
    started, tickets = _queue(slots, "a1", "b1", "c1")
    entered, go_on = threading.Event(), threading.Event()

    def wait() -> bool:
        with slots.without(tickets["a1"], CancelToken()):
            entered.set()
            go_on.wait(20)
        return tickets["a1"].held

    waiting = in_thread(wait)
    assert entered.wait(20)
    assert started == ["a1", "b1"], "its slot went to the next"
    go_on.set()
    wait_for(lambda: tickets["a1"].is_resuming)
    slots.leave(tickets["b1"])
    assert waiting()
    assert started == ["a1", "b1"], "it went on before c1"
    slots.leave(tickets["a1"])
    assert started == ["a1", "b1", "c1"]


def test_a_cancelled_run_goes_on_without_a_slot() -> None:
    slots, token = Slots(1), CancelToken()
    _, tickets = _queue(slots, "a1", "b1")
    go_on = threading.Event()

    def wait() -> bool:
        with slots.without(tickets["a1"], token):
            go_on.wait(20)
        return tickets["a1"].held

    waiting = in_thread(wait)
    wait_for(lambda: tickets["b1"].held)
    go_on.set()
    wait_for(lambda: tickets["a1"].is_resuming)
    token.cancel()
    assert not waiting()
    assert (slots.used, slots.waiting) == (1, 0)
    slots.leave(tickets["a1"])
    slots.leave(tickets["b1"])
    assert slots.used == 0


def test_a_call_that_waits_takes_no_slot_for_another_call_of_its_run() -> None:
    """Granted to the call that goes on, the only slot would be held by a run whose other call waits for its child."""
    slots = Slots(1)
    _, tickets = _queue(slots, "a1", "b1")
    first, second = threading.Event(), threading.Event()

    def wait(event: threading.Event) -> None:
        with slots.without(tickets["a1"], CancelToken()):
            event.wait(20)

    one = in_thread(lambda: wait(first))
    wait_for(lambda: tickets["b1"].held)
    first.set()
    wait_for(lambda: tickets["a1"].is_resuming)
    two = in_thread(lambda: wait(second))  # the other call begins to wait while the first is in line
    one()
    slots.leave(tickets["b1"])
    assert slots.used == 0, "the run waits: it must not hold the slot"
    second.set()
    two()
    assert tickets["a1"].held
    slots.leave(tickets["a1"])
    assert (slots.used, slots.waiting) == (0, 0)


def test_never_more_than_the_limit_and_none_lost_under_threads() -> None:
    slots, limit = Slots(3), 3
    lock = threading.Lock()
    busy = most = 0

    def body(index: int) -> None:
        nonlocal busy, most
        dice = random.Random(index)
        for _ in range(150):
            begun, token = threading.Event(), CancelToken()
            ticket = Ticket(f"parent {index % 4}", begun.set)
            slots.enter(ticket)
            if dice.random() < 0.2 and slots.withdraw(ticket):
                continue
            assert begun.wait(20)
            with lock:
                busy += 1
                most = max(most, busy)
            for _ in range(20):
                assert slots.used <= limit
            with lock:
                busy -= 1
            with slots.without(ticket, token):
                if dice.random() < 0.2:
                    token.cancel()
            slots.leave(ticket)

    with rapid_switching():
        run_threads(12, body)
    assert most <= limit
    assert (slots.used, slots.waiting) == (0, 0)
    assert not slots._queues
    assert not slots._parents


def test_queued_runs_are_visible_with_their_place_and_can_be_cancelled() -> None:
    hold = Hold("done")
    asked: list[str] = []

    def child(request: ModelRequest) -> Step:
        asked.append(task_of(request))
        return hold(request)

    with staged(child, config={"max_concurrent": 1}) as stage:
        first, second, third = (stage.launch(f"task {n}") for n in range(3))
        hold.wait_entered()
        listed = {e["agent_id"]: e for e in stage.call("list_active_subagents")["active_sessions"]}
        assert [listed[each]["status"] for each in (first, second, third)] == ["running", "queued", "queued"]
        assert [listed[each].get("queue_position") for each in (first, second, third)] == [None, 1, 2]
        receipt = stage.call("cancel_subagent", agent_id=second)
        assert [(e["agent_id"], e["status"]) for e in receipt["cancelled"]] == [(second, "cancelled")]
        listed = {e["agent_id"]: e for e in stage.call("list_active_subagents", status="queued")["active_sessions"]}
        assert listed[third]["queue_position"] == 1
        hold.release()
        assert stage.result(third)["status"] == "completed"
        assert sorted(asked) == ["task 0", "task 2"], "what was cancelled in the queue never starts"
        assert_at_rest(stage)


class _Unusable(ScriptProvider):
    """A provider that fails when a session is made."""

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        raise RuntimeError("no traits today")


class _Fickle(Plugin):
    """A plugin that speaks until it is told to fail."""

    name = "fickle"
    failing = False

    def get_system_instructions(self) -> str | None:
        """Fail, if it must."""
        if self.failing:
            raise SystemExit("a plugin that wants to end the host")
        return "Be fickle."

    @tool
    def leave(self, how: str) -> str:
        """Raise what no tool should."""
        raise SystemExit(how) if how == "exit" else KeyboardInterrupt(how)


def test_a_slot_is_freed_whatever_happened() -> None:
    def child(request: ModelRequest) -> Step:
        match task_of(request):
            case "exit":
                raise SystemExit("a provider that wants to end the host")
            case "interrupt":
                raise KeyboardInterrupt
            case "crash":
                raise ZeroDivisionError("a bug in a provider")
            case "tools" if not answers_in(request):
                return calling(("leave", {"how": "exit"}), ("leave", {"how": "interrupt"}))
        return "done"

    config = {"max_concurrent": 1, **profiles(SubagentProfile("broken", provider="broken"))}
    plugin = _Fickle()
    with staged(child, plugin, config=config, providers={"broken": _Unusable()}) as stage:
        for task in ("exit", "interrupt", "crash"):
            answer = stage.spawn(task)
            assert (answer["status"], answer["success"]) == ("failed", False)
            assert answer["error"]
        assert "no traits today" in stage.spawn("never", profile="broken")["error"]
        assert stage.spawn("tools")["status"] == "completed", "what a tool raises is the tool's result"
        agent_id = stage.spawn("fine")["agent_id"]
        plugin.failing = True
        assert stage.call("continue_subagent", agent_id=agent_id, message="more")["status"] == "failed"
        assert stage.spawn("another")["status"] == "failed"
        plugin.failing = False
        assert engine_of(stage).slots.used == 0
        assert stage.call("continue_subagent", agent_id=agent_id, message="more")["status"] == "completed"
        assert_at_rest(stage)


def test_without_a_thread_to_be_had_runs_fail_and_hold_nothing() -> None:
    program = textwrap.dedent(
        """
        import resource, sys, threading
        sys.path.insert(0, "tests")
        from support.engine import assert_at_rest
        from support.subagents import staged
        from shared.providers.script import Reply
        with staged(lambda request: Reply("done", delay=0.05), config={"max_concurrent": 4}) as stage:
            stage.spawn("warm up")
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
            threading.stack_size(3 << 30)
            ids = [stage.launch(f"task {n}") for n in range(12)]
            found = [stage.result(each) for each in ids]
            threading.stack_size(0)
            assert_at_rest(stage)
            print(sorted({each["status"] for each in found}))
            print({each["error"] for each in found if each["status"] == "failed"})
            print(stage.spawn("afterwards")["status"])
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    statuses, errors, afterwards = done.stdout.splitlines()
    assert "failed" in statuses
    assert "can't start new thread" in errors
    assert afterwards == "completed"
