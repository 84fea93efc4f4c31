"""What plugins and libraries print by themselves: shown as lines of the transcript, so that it spoils no screen."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

MOST = 10_000  # characters of a line without end


class LineWriter(io.TextIOBase):
    """A stream that hands over whole lines."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._rest = ""

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Take a piece of text, from any thread."""
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            if len(self._rest) > MOST:
                lines, self._rest = [*lines, self._rest], ""
        for line in lines:
            if line.strip():
                self._show(line)
        return len(text)


@contextmanager
def captured(show: Callable[[str], object]) -> Iterator[None]:
    """Show what is written to stdout and stderr in the meantime, line by line."""
    writer = LineWriter(show)
    with redirect_stdout(writer), redirect_stderr(writer):
        yield
