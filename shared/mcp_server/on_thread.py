"""Waiting on the event loop for work on a pooled thread; a thread that hangs keeps nobody from leaving."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from shared.executors.threads import workers

T = TypeVar("T")


async def on_thread(call: Callable[[], T]) -> T:
    """Run a call on a daemon thread and give back what it gives, or raise what it raises."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell() -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(done.set)

    def work() -> T:
        try:
            return call()
        finally:
            tell()

    task = workers.submit(work)
    await done.wait()
    task.wait()
    return task.result()
