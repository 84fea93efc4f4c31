"""Coroutines from plain code: values, errors, cancel, timeouts, forks."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections.abc import Generator

import pytest

from shared.aio import loop_thread, run_coroutine, settled
from shared.cancel import CancelToken
from shared.errors import CancelledException


async def double(value: int) -> int:
    await asyncio.sleep(0)
    return 2 * value


def test_a_coroutine_gives_its_value_and_its_error() -> None:
    assert run_coroutine(double(21), CancelToken()) == 42

    async def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run_coroutine(fail(), CancelToken())


def test_any_awaitable_will_do() -> None:
    class Later:
        def __await__(self) -> Generator[object, None, str]:
            yield from asyncio.sleep(0).__await__()
            return "later"

    assert settled(Later(), CancelToken()) == "later"
    assert settled("now", CancelToken()) == "now"


def test_all_run_on_one_loop_at_the_same_time() -> None:
    both = asyncio.Event()
    arrived: list[asyncio.AbstractEventLoop] = []

    async def meet() -> None:
        arrived.append(asyncio.get_running_loop())
        if len(arrived) == 2:
            both.set()
        await both.wait()

    other = threading.Thread(target=lambda: run_coroutine(meet(), CancelToken()), daemon=True)
    other.start()
    run_coroutine(meet(), CancelToken())
    other.join(60)
    assert arrived == [loop_thread()] * 2


def test_a_cancel_reaches_the_coroutine_and_ends_the_waiting() -> None:
    token, started, told = CancelToken(), threading.Event(), threading.Event()

    async def forever() -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            told.set()

    canceller = threading.Thread(target=lambda: started.wait(60) and token.cancel("enough"), daemon=True)
    canceller.start()
    with pytest.raises(CancelledException, match="enough"):
        run_coroutine(forever(), token)
    assert told.wait(60)


def test_a_coroutine_that_ignores_its_cancel_is_left_behind() -> None:
    token, started, release = CancelToken(), threading.Event(), asyncio.Event()

    async def stubborn() -> None:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    canceller = threading.Thread(target=lambda: started.wait(60) and token.cancel("enough"), daemon=True)
    canceller.start()
    with pytest.raises(CancelledException):
        run_coroutine(stubborn(), token)
    loop_thread().call_soon_threadsafe(release.set)


def test_cancelled_before_the_first_step_runs_nothing_and_warns_of_nothing() -> None:
    token, ran = CancelToken(), threading.Event()
    token.cancel("too late")

    async def never() -> None:
        ran.set()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CancelledException, match="too late"):
            run_coroutine(never(), token)
        run_coroutine(double(1), CancelToken())  # the loop has been through its queue
    assert not ran.is_set()


def test_a_timeout_cancels_the_coroutine() -> None:
    told = threading.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            told.set()

    with pytest.raises(TimeoutError):
        run_coroutine(slow(), CancelToken(), 0.05)
    assert told.wait(60)


def test_finished_coroutines_leave_no_callback_on_the_token() -> None:
    token = CancelToken()
    for value in range(50):
        run_coroutine(double(value), token)
    assert not token._callbacks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_loop_of_its_own() -> None:
    assert run_coroutine(double(1), CancelToken()) == 2
    child = os.fork()
    if child == 0:
        os._exit(int(run_coroutine(double(4), CancelToken(), 30)))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 8


def test_a_coroutine_that_exits_does_not_end_the_loop_for_the_others() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async def stay() -> str:
        return "here"

    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        run_coroutine(leave(), CancelToken())
    assert run_coroutine(stay(), CancelToken(), timeout=20) == "here"
