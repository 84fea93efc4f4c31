"""Many agents at once: every question ends once, nothing hangs, nothing slips through."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest
from support.permission_calls import READ, WRITE, caller, outcome, tool

from shared.cancel import CancelToken
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

THREADS = 64


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], object], count: int = THREADS) -> None:
    """Run the work in many threads that start at the same moment."""
    start = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        start.wait(60)
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    assert errors == []


class Parity(Channel):
    """Allows even numbers, at once; fails if it is ever asked two things at a time."""

    name: ClassVar[str] = "parity"

    def __init__(self) -> None:
        self._busy = threading.Lock()

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        assert self._busy.acquire(blocking=False), "two questions at once"
        try:
            return Decision(request.arguments["n"] % 2 == 0)
        finally:
            self._busy.release()


def test_everyone_gets_their_own_answer() -> None:
    broker = build_gate("ask", channel=Parity())
    results: dict[tuple[int, int], str] = {}

    def work(number: int) -> None:
        for turn in range(10):
            results[number, turn] = outcome(broker, WRITE, {"n": number + turn}, caller(f"a{number}"))

    together(work)
    assert len(results) == THREADS * 10
    for (number, turn), result in results.items():
        assert (result == "yes") is ((number + turn) % 2 == 0), (number, turn, result)
    assert broker.pending() == []


def test_asking_answering_and_cancelling_at_once() -> None:
    queue = QueueChannel()
    told: Counter[str] = Counter()
    lock = threading.Lock()
    accepted: set[str] = set()
    ends: dict[str, Outcome] = {}

    def requested(request: PermissionRequest) -> None:
        with lock:
            told[request.id] += 1

    def resolved(request: PermissionRequest, end: Outcome) -> None:
        with lock:
            told[request.id] += 1
            ends[request.id] = end

    broker = PermissionBroker(Policy(), channel=queue, on_requested=requested, on_resolved=resolved)
    stop = threading.Event()

    def answer(number: int) -> None:
        while not stop.is_set():
            for request in broker.pending():
                if broker.answer(request.id, "y" if number % 2 else "n"):
                    with lock:
                        assert request.id not in accepted
                        accepted.add(request.id)

    people = [threading.Thread(target=answer, args=(number,), daemon=True) for number in range(4)]
    for person in people:
        person.start()
    results: list[str] = []

    def work(number: int) -> None:
        for turn in range(8):
            token = CancelToken()
            if number % 3 == 0:
                threading.Thread(target=token.cancel, daemon=True).start()
            result = outcome(broker, WRITE, {"n": number, "turn": turn}, caller(f"a{number}", cancel=token))
            with lock:
                results.append("denied" if result.startswith("permission") else result)

    together(work)
    stop.set()
    for person in people:
        person.join(30)
    assert len(results) == THREADS * 8
    assert set(results) <= {"yes", "denied", "cancelled"}
    assert set(told.values()) == {2}
    assert broker.pending() == []
    by_person = {request_id for request_id, end in ends.items() if end.method.startswith("user_")}
    assert by_person == accepted
    assert Counter(results)["yes"] == sum(end.granted for end in ends.values())


def test_one_wide_answer_frees_everyone() -> None:
    queue = QueueChannel()
    broker = build_gate("ask", channel=queue)

    def person() -> None:
        request = queue.next(60)
        assert request is not None
        broker.answer(request.id, "session tool")

    helper = threading.Thread(target=person, daemon=True)
    helper.start()
    together(
        lambda number: outcome(broker, WRITE, {"n": number}, caller(f"a{number}")) == "yes" or pytest.fail("denied")
    )
    helper.join(30)
    assert broker.pending() == []


def test_a_denial_is_seen_by_every_later_call() -> None:
    broker = build_gate("allow")

    def work(number: int) -> None:
        name = f"tool{number}"
        for _ in range(20):
            broker.deny(Rules(tools=(name,)))
            assert outcome(broker, tool(name), {}) != "yes"
            broker.allow(Rules(tools=(name,)))
            assert outcome(broker, tool(name), {}) == "yes"

    together(work, 16)
    broker.clear_grants()
    assert outcome(broker, tool("tool1"), {}) == "yes"


def test_closing_while_everyone_asks_lets_nobody_hang() -> None:
    queue = QueueChannel()
    broker = build_gate("ask", channel=queue)

    def work(number: int) -> None:
        if number == THREADS // 2:
            queue.next(60)
            broker.close()
        else:
            assert outcome(broker, WRITE, {"n": number}) != "yes"
        assert outcome(broker, READ, {}) == "yes"

    together(work)
    assert broker.pending() == []
