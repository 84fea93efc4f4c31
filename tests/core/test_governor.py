"""The rate gate: it learns what a service takes, pauses everybody after a refusal, and loses nobody."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable

import pytest
from support.stress import rapid_switching, run_threads, times, wait_for

from shared.cancel import CancelToken
from shared.errors import CancelledException
from shared.governor import Governor, RetryPolicy

QUICK = RetryPolicy(base_delay=0.01, max_delay=0.05)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Server:
    """Takes so many calls at once and refuses the rest."""

    def __init__(self, places: int) -> None:
        self.places, self.busy, self.most, self.served = places, 0, 0, 0
        self._lock = threading.Lock()

    def begin(self) -> bool:
        with self._lock:
            if self.busy >= self.places:
                return False
            self.busy += 1
            self.most = max(self.most, self.busy)
            return True

    def end(self) -> None:
        with self._lock:
            self.busy -= 1
            self.served += 1


def call(governor: Governor, server: Server, work: Callable[[], object], retry_after: float | None = None) -> None:
    """One call as a session makes it: again and again until the server takes it."""
    while True:
        governor.enter(CancelToken())
        if not server.begin():
            governor.refused(retry_after)
            continue
        governor.accepted()
        work()
        server.end()
        governor.leave()
        return


def queued(
    governor: Governor, count: int, order: list[int] | None = None, cancel: CancelToken | None = None
) -> list[threading.Thread]:
    """Threads that wait at the gate, one behind the other."""
    threads: list[threading.Thread] = []
    for index in range(count):

        def enter(index: int = index) -> None:
            try:
                governor.enter(cancel or CancelToken())
            except CancelledException:
                return
            if order is not None:
                order.append(index)

        before = governor.waiting
        threads.append(threading.Thread(target=enter, daemon=True))
        threads[-1].start()
        wait_for(lambda before=before: governor.waiting == before + 1)  # type: ignore[misc]
    return threads


def test_fifty_sessions_on_a_server_that_takes_five_finish_with_few_refusals() -> None:
    governor, server = Governor(policy=QUICK), Server(5)
    run_threads(50, lambda index: times(10, lambda: call(governor, server, lambda: time.sleep(0.002))))
    assert server.served == 500
    assert server.most == 5, "and the server was used to the full"
    assert governor.refusals <= 25
    assert (governor._active, governor.waiting) == (0, 0)


def test_a_server_without_limits_is_used_without_limits() -> None:
    governor, server = Governor(), Server(1_000)
    together = threading.Barrier(40)
    run_threads(40, lambda index: times(20, lambda: call(governor, server, lambda: time.sleep(0.001))))
    run_threads(40, lambda index: call(governor, server, lambda: together.wait(60)))
    assert governor.refusals == 0
    assert server.most >= 40


def test_places_that_nobody_wanted_are_not_taken_for_granted() -> None:
    governor = Governor()
    for _ in range(500):
        governor.enter(CancelToken())
        governor.accepted()
        governor.leave()
    assert governor.limit == Governor.START


def test_retry_after_is_honoured_to_the_second() -> None:
    clock = Clock()
    governor = Governor(clock=clock)
    governor.enter(CancelToken())
    pause = governor.refused(30.0)
    assert 30.0 <= pause <= 31.0
    order: list[int] = []
    threads = queued(governor, 2, order)
    clock.now += 29.9
    governor.accepted()
    assert (order, governor.waiting) == ([], 2), "a moment too early"
    clock.now += 1.2
    governor.accepted()
    wait_for(lambda: len(order) >= 1)
    governor.leave()
    for thread in threads:
        thread.join(60)
    assert governor.waiting == 0


def test_a_real_pause_ends_by_itself_and_nobody_spins_in_it() -> None:
    looks: list[float] = []

    def clock() -> float:
        looks.append(time.monotonic())
        return looks[-1]

    governor = Governor(clock=clock)
    governor.enter(CancelToken())
    governor.refused(0.2)
    refused_at = looks[-1]
    governor.enter(CancelToken())
    assert looks[-1] - refused_at >= 0.2
    assert len(looks) < 50, "who waits looks at the clock now and then, not all the time"


def test_a_pause_without_end_can_be_waited_in_and_left() -> None:
    governor, token = Governor(), CancelToken()
    governor.enter(CancelToken())
    governor.refused(1e15)
    threads = queued(governor, 3, cancel=token)
    token.cancel()
    for thread in threads:
        thread.join(60)
    assert (governor._active, governor.waiting) == (0, 0)


def test_without_advice_pauses_grow_and_a_success_ends_the_row() -> None:
    clock = Clock()
    governor = Governor(policy=RetryPolicy(base_delay=1.0, max_delay=8.0), clock=clock)
    pauses: list[float] = []
    for _ in range(6):
        governor.enter(CancelToken())
        pauses.append(governor.refused())
        clock.now += 10
    for pause, ceiling in zip(pauses, (1, 2, 4, 8, 8, 8), strict=True):
        assert ceiling / 2 <= pause <= ceiling
    governor.enter(CancelToken())
    governor.accepted()
    governor.leave()
    governor.enter(CancelToken())
    assert governor.refused() <= 1.0


def test_a_burst_of_refusals_is_one_pause_and_leaves_what_was_taken() -> None:
    clock = Clock()
    governor = Governor(clock=clock)
    for _ in range(16):
        governor.enter(CancelToken())
    pauses = [governor.refused() for _ in range(11)]
    assert governor.limit == 5, "five were taken"
    assert governor.refusals == 11
    assert max(pauses) <= 1.0, "the others of a burst find the pause under way"


def test_the_longest_advice_of_a_burst_counts() -> None:
    governor = Governor(clock=Clock())
    for _ in range(3):
        governor.enter(CancelToken())
    governor.refused(5.0)
    assert governor.refused(60.0) >= 60.0
    assert governor.refused(1.0) >= 59.0


def test_it_recovers_upward_when_the_service_does() -> None:
    governor, server = Governor(policy=QUICK), Server(2)
    run_threads(12, lambda index: times(10, lambda: call(governor, server, lambda: time.sleep(0.001))))
    assert governor.limit <= 3
    server.places = 1_000
    run_threads(12, lambda index: times(200, lambda: call(governor, server, lambda: time.sleep(0))))
    assert governor.limit >= 8


def test_first_come_first_served() -> None:
    clock = Clock()
    governor = Governor(clock=clock)
    governor.enter(CancelToken())
    governor.refused(10.0)
    order: list[int] = []
    threads = queued(governor, 8, order)
    clock.now += 20
    governor.accepted()
    for index, thread in enumerate(threads):
        thread.join(60)
        wait_for(lambda index=index: len(order) == index + 1)  # type: ignore[misc]
        governor.leave()
    assert order == list(range(8))


def test_nobody_overtakes_those_who_wait() -> None:
    governor = Governor()
    for _ in range(Governor.START):
        governor.enter(CancelToken())
    order: list[int] = []
    threads = queued(governor, 3, order)
    for _ in range(3):
        governor.leave()
    for thread in threads:
        thread.join(60)
    assert sorted(order) == [0, 1, 2]


@pytest.mark.parametrize("first", [True, False])
def test_a_cancel_in_the_queue_is_felt_at_once_and_the_others_move_up(first: bool) -> None:
    clock = Clock()
    governor, token = Governor(clock=clock), CancelToken()
    governor.enter(CancelToken())
    governor.refused(60.0)
    order: list[int] = []
    if first:
        leaving = queued(governor, 1, cancel=token)
        staying = queued(governor, 1, order)
    else:
        staying = queued(governor, 1, order)
        leaving = queued(governor, 1, cancel=token)
    token.cancel("enough")
    leaving[0].join(60)
    assert governor.waiting == 1
    clock.now += 100
    governor.accepted()
    staying[0].join(60)
    assert order == [0]
    assert governor._active == 1
    assert not token._callbacks


def test_an_interrupt_in_the_queue_loses_no_place() -> None:
    governor = Governor()
    for _ in range(Governor.START):
        governor.enter(CancelToken())

    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Interrupted):
            governor.enter(CancelToken())
    finally:
        signal.signal(signal.SIGALRM, former)
    assert governor.waiting == 0
    for _ in range(Governor.START):
        governor.leave()
    assert governor._active == 0


def test_random_cancels_refusals_and_failures_leave_nobody_behind() -> None:
    governor, server = Governor(policy=RetryPolicy(base_delay=0.001, max_delay=0.002)), Server(3)

    def work(index: int) -> None:
        chance = random.Random(index)
        for _ in range(40):
            token = CancelToken()
            if chance.random() < 0.4:
                threading.Thread(target=token.cancel, daemon=True).start()
            try:
                governor.enter(token)
            except CancelledException:
                continue
            if not server.begin():
                governor.refused(chance.choice([None, 0.001]))
                continue
            if chance.random() < 0.7:
                governor.accepted()
            server.end()
            governor.leave()

    with rapid_switching():
        run_threads(16, work)
    assert (governor._active, governor.waiting) == (0, 0)


def test_delays_have_jitter_and_bounds() -> None:
    policy = RetryPolicy(base_delay=1.0, max_delay=10.0)
    assert all(0.5 <= policy.delay(1) <= 1.0 for _ in range(200))
    assert all(5.0 <= policy.delay(50) <= 10.0 for _ in range(200))
    asked = {policy.delay(1, 20.0) for _ in range(200)}
    assert all(20.0 <= delay <= 21.0 for delay in asked)
    assert len(asked) > 100, "not everybody comes back at the same moment"
