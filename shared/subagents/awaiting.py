"""The edge to asyncio: work and latches that are awaited without holding up the event loop."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from shared.executors.threads import workers
from shared.latch import Latch

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


def in_event_loop() -> bool:
    """Whether this thread runs an event loop at the moment; asyncio is not imported to find out."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def off_loop(work: Callable[[], T]) -> T:
    """Do blocking work on a pooled thread; if the waiting is cancelled, the work goes on all the same."""
    done = Latch()

    def body() -> T:
        try:
            return work()
        finally:
            done.open()

    task = workers.submit(body)
    await opened(done)
    task.wait()  # it has ended but for a few instructions
    return task.result()


async def opened(latch: Latch, timeout: float | None = None) -> bool:
    """Wait for a latch; False if time was up."""
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, future)

    latch.listen(wake)
    try:
        await asyncio.wait_for(future, timeout)
    except TimeoutError:
        return latch.is_open
    finally:
        latch.forget(wake)
    return True


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
