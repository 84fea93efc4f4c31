"""A thin edge to asyncio: coroutines of tools run on one loop thread, and a cancel reaches them."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any

from shared.cancel import CancelToken

if TYPE_CHECKING:
    import asyncio

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def loop_thread() -> asyncio.AbstractEventLoop:
    """The process-wide event loop, started on first use in a daemon thread."""
    global _loop
    import asyncio

    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="jaato-asyncio", daemon=True).start()
        return _loop


def run_coroutine(awaitable: Awaitable[Any], cancel: CancelToken, timeout: float | None = None) -> Any:
    """Run an awaitable to its end from plain code; a cancel or timeout cancels it and raises."""
    import asyncio
    import concurrent.futures

    if cancel.is_cancelled:
        if isinstance(awaitable, Coroutine):
            awaitable.close()
        cancel.raise_if_cancelled()
    future = asyncio.run_coroutine_threadsafe(_guarded(awaitable), loop_thread())
    forget = cancel.on_cancel(future.cancel)
    try:
        return future.result(timeout)
    except concurrent.futures.CancelledError:
        cancel.raise_if_cancelled()
        raise
    except concurrent.futures.TimeoutError:
        future.cancel()
        raise
    finally:
        forget()


def settled(value: Any, cancel: CancelToken) -> Any:
    """A plain value as it is; of an awaitable, what it gives when it is done."""
    return run_coroutine(value, cancel) if hasattr(value, "__await__") else value


async def _guarded(awaitable: Awaitable[Any]) -> Any:
    """Foreign code may leave by sys.exit(), which would end the loop that all others share."""
    try:
        return await awaitable
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _after_fork() -> None:
    """A forked process has no loop thread, and the lock may be held by a thread it does not have."""
    global _lock, _loop
    _lock, _loop = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
