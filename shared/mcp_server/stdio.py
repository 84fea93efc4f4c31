"""Serving one client on standard input and output; the end of either, or a signal, ends everything."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

from mcp.server.stdio import stdio_server

from shared.mcp_server.hub import Hub
from shared.mcp_server.server import SubagentServer
from shared.mcp_server.settings import ServerSettings

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LAST_WORDS = 1.0  # seconds for answers that are on their way out


def serve_stdio(settings: ServerSettings) -> None:
    """Serve until the client is gone; all subagents have stopped then."""
    asyncio.run(_serve(settings))


async def _serve(settings: ServerSettings) -> None:
    hub, over = Hub(settings), _Over()
    await hub.check(keep=True)
    talking = asyncio.get_running_loop().create_task(_talk(SubagentServer(hub), over))
    await over.wait()
    await hub.close()
    await asyncio.wait({talking}, timeout=0 if over.code else _LAST_WORDS)
    if not talking.done():  # a thread still reads standard input and would keep the interpreter from ending
        os._exit(over.code)
    if error := talking.exception():
        log.warning("the connection broke: %s", error)


async def _talk(server: SubagentServer, over: _Over) -> None:
    async with stdio_server() as (read_stream, write_stream):
        try:
            await server.run(read_stream, write_stream, server.create_initialization_options())
        finally:
            over.set()


class _Over(asyncio.Event):
    """Set when the client is gone, or a signal came, which decides about the exit code."""

    def __init__(self) -> None:
        super().__init__()
        self.code = 0
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._leave, number)

    def _leave(self, number: int) -> None:
        self.code = self.code or 128 + number
        self.set()
