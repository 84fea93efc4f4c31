"""A latch opens once; whoever waits is woken by it, by a cancel or by the clock, and leaves nothing behind."""

from __future__ import annotations

import math
import threading

from support.engine import in_thread
from support.stress import rapid_switching, run_threads

from shared.cancel import CancelToken
from shared.latch import Latch, wait_any


def test_it_opens_once() -> None:
    latch = Latch()
    assert not latch.is_open
    assert latch.open()
    assert not latch.open()
    assert latch.is_open
    assert latch.wait(0)


def test_listeners_are_called_once_at_the_opening_or_at_once() -> None:
    latch, heard = Latch(), list[str]()
    forgotten = lambda: heard.append("never")  # noqa: E731
    latch.listen(lambda: heard.append("before"))
    latch.listen(forgotten)
    latch.forget(forgotten)
    latch.open()
    latch.open()
    latch.listen(lambda: heard.append("after"))
    assert heard == ["before", "after"]


def test_a_wait_ends_with_time_cancel_or_opening() -> None:
    latch, token = Latch(), CancelToken()
    assert not latch.wait(0)
    assert not latch.wait(0.01)
    token.cancel()
    assert not latch.wait(cancel=token)
    waiting = in_thread(latch.wait)
    latch.open()
    assert waiting()
    assert latch.wait(cancel=token), "what has happened has happened"


def test_times_that_no_clock_takes_are_bounded() -> None:
    for seconds in (1e300, math.inf):
        latch = Latch()
        waiting = in_thread(lambda: latch.wait(seconds))  # noqa: B023
        latch.open()
        assert waiting()
    assert not Latch().wait(math.nan)
    assert not Latch().wait(-5)


def test_wait_any_ends_with_the_first_and_forgets_the_others() -> None:
    latches = [Latch() for _ in range(5)]
    waiting = in_thread(lambda: wait_any(latches))
    latches[3].open()
    assert waiting()
    assert all(not latch._listeners for latch in latches)


def test_a_wait_leaves_no_callback_on_the_token() -> None:
    token = CancelToken()
    for _ in range(100):
        Latch().wait(0, cancel=token)
    assert not token._callbacks


def test_nobody_sleeps_through_an_opening_or_a_cancel() -> None:
    with rapid_switching():
        for number in range(300):
            latch, token, woken = Latch(), CancelToken(), list[bool]()

            def body(index: int) -> None:
                if index == 0:
                    (latch.open if number % 2 else token.cancel)()  # noqa: B023
                else:
                    woken.append(latch.wait(20, cancel=token))  # noqa: B023

            run_threads(4, body)
            assert woken == [bool(number % 2)] * 3


def test_a_latch_opened_from_many_threads_opens_for_one() -> None:
    with rapid_switching():
        for _ in range(200):
            latch, won = Latch(), list[bool]()
            lock = threading.Lock()

            def body(index: int) -> None:
                opened = latch.open()  # noqa: B023
                with lock:  # noqa: B023
                    won.append(opened)  # noqa: B023

            run_threads(4, body)
            assert sorted(won) == [False, False, False, True]
