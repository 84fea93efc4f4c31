"""Printer: puts things above the live part of the screen for good, from any thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from prompt_toolkit.application import Application
from rich.console import RenderableType

from shared.cli.chat.rendering import Renderer

FRAME_SECONDS = 0.04  # what comes within one is printed together


class Printer:
    """Collects what is to be printed; while `run` runs, it appears. Before and after it waits for `drained`."""

    def __init__(self, renderer: Renderer, *, columns: Callable[[], int]) -> None:
        self._renderer, self._columns = renderer, columns
        self._waiting: deque[RenderableType] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()

    def show(self, thing: RenderableType) -> None:
        """Print something, soon."""
        self._waiting.append(thing)
        self.soon(self._wake.set)

    def soon(self, call: Callable[[], object]) -> None:
        """Do something in the thread of the terminal; after its end there is nothing left to do."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it was closed between the look and the call
                loop.call_soon_threadsafe(call)

    def drained(self) -> str:
        """All that waits, as terminal text."""
        things = []
        while self._waiting:
            things.append(self._waiting.popleft())
        return self._renderer.text(things, self._columns())

    async def run(self, app: Application[Any]) -> None:
        """Print until cancelled; the live part is drawn again below at once."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                if self._waiting:
                    app.renderer.erase()
                    app.output.write_raw(self.drained().replace("\n", "\r\n"))
                    app.render_counter += 1  # a new frame: nothing of the last one holds
                    app.renderer.render(app, app.layout)
                await self._wake.wait()
                self._wake.clear()
                await asyncio.sleep(FRAME_SECONDS)
        finally:
            self._loop = None
