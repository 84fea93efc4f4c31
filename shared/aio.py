"""A thin edge to asyncio: coroutines of tools run on one loop thread, and a cancel reaches them."""

from __future__ import annotations

import threading
from collections.abc import Awaitable
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

    async def run() -> Any:
        return await awaitable

    future = asyncio.run_coroutine_threadsafe(run(), loop_thread())
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
