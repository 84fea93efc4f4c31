"""Events: in order for every subscriber, and no subscriber can hurt a run or another one."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.stress import rapid_switching, run_threads, times, wait_for

import shared
from shared.bus import EventBus, Subscription
from shared.events import AgentOutput, Event, ToolEnded, ToolStarted


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, AgentOutput)]


def test_events_arrive_in_order_and_by_interest() -> None:
    bus, everything, tools = EventBus(), list[Event](), list[Event]()
    bus.subscribe(everything.append)
    bus.subscribe(tools.append, interest=frozenset({ToolStarted, ToolEnded}))
    sent: list[Event] = []
    for number in range(500):
        sent += [AgentOutput("a", text=str(number)), ToolStarted("a", f"t{number}")]
    for event in sent:
        bus.emit(event)
    assert bus.flush(60)
    assert everything == sent
    assert tools == sent[1::2]


def test_the_order_holds_for_each_of_many_threads() -> None:
    bus, seen = EventBus(), list[Event]()
    bus.subscribe(seen.append)
    with rapid_switching():

        def work(index: int) -> None:
            for number in range(300):
                bus.emit(AgentOutput(f"agent{index}", text=str(number)))

        run_threads(8, work)
    assert bus.flush(60)
    assert len(seen) == 2400
    for index in range(8):
        assert texts([event for event in seen if event.agent_id == f"agent{index}"]) == [str(n) for n in range(300)]


def test_no_event_is_left_lying_between_going_idle_and_waking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subscription, "LINGER", 0.0)
    bus = EventBus()
    delivered = threading.Semaphore(0)
    bus.subscribe(lambda event: delivered.release())
    event = AgentOutput("a")
    with rapid_switching():

        def work(index: int) -> None:
            for _ in range(500):
                bus.emit(event)
                assert delivered.acquire(timeout=30), "an event was never delivered"

        run_threads(4, work)


def test_flush_means_delivered() -> None:
    bus, seen = EventBus(), list[Event]()
    bus.subscribe(seen.append)
    with rapid_switching():
        for number in range(1_000):
            bus.emit(AgentOutput("a", text=str(number)))
            assert bus.flush(60)
            assert len(seen) == number + 1


def test_a_subscriber_that_raises_goes_on_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus, good, bad = EventBus(), list[Event](), list[Event]()

    def fail(event: Event) -> None:
        bad.append(event)
        raise SystemExit("out") if len(bad) % 2 else ValueError("broken view")

    bus.subscribe(fail)
    bus.subscribe(good.append)
    with caplog.at_level(logging.ERROR):
        for number in range(4):
            bus.emit(AgentOutput("a", text=str(number)))
        assert bus.flush(60)
    assert texts(good) == texts(bad) == ["0", "1", "2", "3"]
    assert "broken view" in caplog.text


def test_a_subscriber_that_blocks_harms_nobody_and_is_waited_for_once() -> None:
    bus, seen, release = EventBus(), list[Event](), threading.Event()
    bus.subscribe(lambda event: release.wait(60))
    bus.subscribe(seen.append)
    for number in range(50):
        bus.emit(AgentOutput("a", text=str(number)))
    assert not bus.flush(0.05)
    wait_for(lambda: len(seen) == 50)
    assert not bus.flush(30), "what was too slow once is not waited for again: this returns at once"
    release.set()
    wait_for(lambda: bus.flush(1))


def test_subscribers_that_are_not_awaited_do_not_hold_up_a_flush() -> None:
    bus, release = EventBus(), threading.Event()
    bus.subscribe(lambda event: release.wait(60), awaited=False)
    bus.emit(AgentOutput("a"))
    assert bus.flush(60)
    assert not bus.flush(0.05, everyone=True)
    release.set()
    wait_for(lambda: bus.flush(1, everyone=True))


def test_a_full_queue_drops_the_oldest_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subscription, "CAPACITY", 10)
    bus, seen, entered, release = EventBus(), list[Event](), threading.Event(), threading.Event()

    def slow(event: Event) -> None:
        entered.set()
        release.wait(60)
        seen.append(event)

    bus.subscribe(slow)
    bus.emit(AgentOutput("a", text="first"))
    assert entered.wait(60)
    for number in range(25):
        bus.emit(AgentOutput("a", text=str(number)))
    release.set()
    assert bus.flush(60)
    assert texts(seen) == ["first", *(str(number) for number in range(15, 25))]
    assert bus._subscriptions[0].dropped == 15


def test_every_event_is_delivered_or_counted_as_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subscription, "CAPACITY", 1)
    monkeypatch.setattr(Subscription, "LINGER", 0.0)
    bus, seen = EventBus(), list[Event]()
    bus.subscribe(seen.append)
    with rapid_switching():
        run_threads(6, lambda index: times(500, lambda: bus.emit(AgentOutput("a"))))
    assert bus.flush(60)
    assert len(seen) + bus._subscriptions[0].dropped == 3_000


def test_nothing_is_delivered_after_unsubscribing() -> None:
    bus, seen, other = EventBus(), list[Event](), list[Event]()
    end = bus.subscribe(seen.append)
    bus.subscribe(other.append)
    bus.emit(AgentOutput("a", text="1"))
    assert bus.flush(60)
    end()
    end()
    bus.emit(AgentOutput("a", text="2"))
    assert bus.flush(60)
    assert texts(seen) == ["1"]
    assert texts(other) == ["1", "2"]


def test_interest_is_known_before_an_event_is_made() -> None:
    bus = EventBus()
    assert not bus.wants(AgentOutput)
    end = bus.subscribe(lambda event: None, interest=frozenset({AgentOutput}))
    assert bus.wants(AgentOutput)
    assert not bus.wants(ToolStarted)
    every = bus.subscribe(lambda event: None)
    assert bus.wants(ToolStarted)
    every()
    end()
    assert not bus.wants(AgentOutput)


def test_events_of_modules_that_are_loaded_later_arrive_too() -> None:
    bus, seen = EventBus(), list[Event]()
    bus.subscribe(seen.append)

    @dataclass(frozen=True, slots=True)
    class Invented(Event):
        detail: str = ""

    assert bus.wants(Invented)
    bus.emit(Invented("a", "new"))
    assert bus.flush(60)
    assert seen == [Invented("a", "new")]


def test_a_subscriber_may_emit_subscribe_and_flush() -> None:
    bus, seen = EventBus(), list[str]()

    def curious(event: Event) -> None:
        assert isinstance(event, AgentOutput)
        seen.append(event.text)
        if event.text == "outer":
            bus.emit(AgentOutput("a", text="inner"))
            bus.flush(0.01)

    bus.subscribe(curious)
    bus.emit(AgentOutput("a", text="outer"))
    wait_for(lambda: seen == ["outer", "inner"])


def test_no_thread_is_kept_when_nothing_happens() -> None:
    bus = EventBus()
    bus.subscribe(lambda event: None)
    bus.emit(AgentOutput("a"))
    assert bus.flush(60)
    wait_for(lambda: not bus._subscriptions[0]._delivering)


STARVED = """
import threading
from shared.bus import EventBus
from shared.events import AgentOutput
seen = []
bus = EventBus()
bus.subscribe(lambda event: seen.append(event.text))
normal = threading.stack_size(1 << 50)  # no thread can be started with a stack like that
bus.emit(AgentOutput("a", text="1"))
assert bus.flush(0.1) and not seen
threading.stack_size(normal)
bus.emit(AgentOutput("a", text="2"))
assert bus.flush(30)
assert seen == ["1", "2"], seen
"""


def test_when_no_thread_can_be_had_emitting_does_not_raise_and_nothing_is_lost() -> None:
    paths = {"PYTHONPATH": str(Path(shared.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", STARVED], env={**os.environ, **paths}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
