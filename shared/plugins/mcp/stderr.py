"""What a server program writes to its standard error: the last lines, kept off the terminal."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

KEPT_LINES = 40
LINE_CHARS = 500
DRAIN_READS = 16


class StderrTail:
    """A ring of lines, filled on the event loop from a pipe; any thread may read `lines`."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._partial = b""

    @property
    def lines(self) -> tuple[str, ...]:
        """The newest lines, oldest first."""
        return tuple(self._lines.copy())

    @property
    def last(self) -> str:
        """The newest line that says something."""
        return next((line for line in reversed(self.lines) if line.strip()), "")

    @contextmanager
    def attached(self) -> Iterator[TextIO]:
        """A file for one program's standard error; close it once the program has its copy."""
        loop = asyncio.get_running_loop()
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        loop.add_reader(reader, self._read_on, loop, reader)
        try:
            with os.fdopen(writer, "w") as errlog:
                yield errlog
        finally:
            loop.remove_reader(reader)
            self._drain(reader)
            os.close(reader)

    def _read_on(self, loop: asyncio.AbstractEventLoop, reader: int) -> None:
        if self._read(reader) == b"":
            loop.remove_reader(reader)

    def _drain(self, reader: int) -> None:
        """Take what is left; only so much, for a surviving grandchild may still be writing."""
        for _ in range(DRAIN_READS):
            if not self._read(reader):
                break
        if self._partial:
            self._keep(b"\n")

    def _read(self, reader: int) -> bytes | None:
        """What is there now: empty at the end, None when there is nothing yet."""
        try:
            data = os.read(reader, 65_536)
        except BlockingIOError:
            return None
        self._keep(data)
        return data

    def _keep(self, data: bytes) -> None:
        *lines, rest = (self._partial + data).split(b"\n")
        self._partial = rest[-LINE_CHARS:]
        for line in lines:
            self._lines.append(line.decode("utf-8", "replace")[:LINE_CHARS].rstrip("\r"))
