"""A blocking call from any thread: live progress, cancel and time limit."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from typing import Any

from shared.errors import ToolError, ToolTimeout
from shared.plugins.mcp.connection import Connection, on_loop_thread
from shared.plugins.mcp.results import tool_output
from shared.toolbox import ToolOutput
from shared.tools import ToolContext

MAX_PROGRESS = 1000  # unread progress texts; a server that floods loses some


def call_tool(connection: Connection, tool: str, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    """Call a server's tool and wait for it; progress is shown from the calling thread, in order."""
    context.cancel.raise_if_cancelled()
    if on_loop_thread():
        raise ToolError(f"tool '{tool}' blocks: call it from a thread, not from a coroutine")
    seconds = connection.call_seconds
    inbox: SimpleQueue[str | None] = SimpleQueue()

    def progress(text: str) -> None:
        if inbox.qsize() < MAX_PROGRESS:
            inbox.put(text)

    future = connection.call(tool, args, progress)
    future.add_done_callback(lambda _: inbox.put(None))
    forget = context.cancel.on_cancel(future.cancel)
    try:
        _show_until_done(inbox, context, deadline=time.monotonic() + seconds)
        return tool_output(future.result(0))
    except (Empty, ToolTimeout):  # the SDK watches the same limit, and either may be first
        raise ToolTimeout(
            f"mcp server '{connection.spec.name}', tool '{tool}' took longer than {seconds:g} s"
        ) from None
    except concurrent.futures.CancelledError:
        context.cancel.raise_if_cancelled()
        raise ToolError(f"mcp server '{connection.spec.name}' was shut down during the call") from None
    finally:
        forget()
        future.cancel()  # no effect on a finished call; stops an abandoned one


def _show_until_done(inbox: SimpleQueue[str | None], context: ToolContext, *, deadline: float) -> None:
    while (text := inbox.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
        context.output(text)
