"""A terminal for tests: a program on a real pty, and a screen that understands what it draws."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyte

ROOT = Path(__file__).parents[2]
PATIENCE = 80.0  # seconds before a test that waits for something gives up

ENTER, TAB, ESCAPE = "\r", "\t", "\x1b"
ALT_ENTER = ESCAPE + ENTER
CTRL_C, CTRL_D, CTRL_T = "\x03", "\x04", "\x14"


class _Screen(pyte.HistoryScreen):
    """A screen that answers when it is asked where the cursor is, as terminals do."""

    def __init__(self, columns: int, rows: int, reply: Callable[[bytes], object]) -> None:
        super().__init__(columns, rows, history=10_000, ratio=0.5)
        self._reply = reply

    def write_process_input(self, data: str) -> None:
        self._reply(data.encode())


class Terminal:
    """Types into a program and waits until the screen shows something; nothing here depends on time."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, *, columns: int, rows: int) -> None:
        self.process = process
        self._master = master
        self._screen = _Screen(columns, rows, self._write)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self.closed = False

    def type(self, text: str) -> None:
        """Press keys."""
        self._write(text.encode())

    def type_bytes(self, data: bytes) -> None:
        """Send bytes that may be no text."""
        self._write(data)

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows keys by itself, as it does unless a program asks it not to."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def line(self, text: str) -> None:
        """Type a line and send it."""
        self.type(text + ENTER)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self._screen.resize(rows, columns)
        _set_size(self._master, columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    @property
    def screen(self) -> str:
        """What is on the screen now."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen that are not empty."""
        return [line for line in self.screen.split("\n") if line]

    @property
    def text(self) -> str:
        """All that was printed: what has scrolled away, and the screen."""
        above = ["".join(line[column].data for column in sorted(line)) for line in self._screen.history.top]
        return "\n".join([*(line.rstrip() for line in above), self.screen])

    def wait_for(self, *texts: str, gone: Sequence[str] = ()) -> str:
        """Read until the screen shows all of the texts and none of those that must be gone."""
        return self.wait_until(
            lambda: all(text in self.screen for text in texts) and not any(text in self.screen for text in gone),
            f"{texts} on the screen, without {list(gone)}",
        )

    def wait_printed(self, *texts: str) -> str:
        """Read until all of the texts were printed, even if they have scrolled away."""
        return self.wait_until(lambda: all(text in self.text for text in texts), f"{texts} printed")

    def wait_until(self, is_so: Callable[[], bool], what: str) -> str:
        """Read until something is so."""
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert not self.closed, f"the program ended before: {what}\n{self.text}"
            assert self._read(deadline - time.monotonic()), f"never seen: {what}\n{self.screen}"
        return self.screen

    def wait_exit(self) -> int:
        """Read to the end of the program; returns its exit code."""
        deadline = time.monotonic() + PATIENCE
        while not self.closed:
            assert self._read(deadline - time.monotonic()), f"the program does not end\n{self.screen}"
        return self.process.wait(PATIENCE)

    def _read(self, timeout: float) -> bool:
        """Take in what the program has drawn; False if there is nothing for too long."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, timeout))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed: the program has ended
            data = b""
        self.closed = not data
        self.raw += data
        self._stream.feed(data)
        return True

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._master, data) :]


def bare_environment(home: Path, **variables: str) -> dict[str, str]:
    """The environment of a user who has set nothing."""
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    own = {"HOME": str(home), "PYTHONPATH": str(ROOT), "JAATO_TRACE_LOG": "", "TERM": "xterm-256color"}
    return {"LANG": "C.UTF-8", **keep, **own, **variables}


@contextmanager
def terminal(*args: str, cwd: Path, env: Mapping[str, str], columns: int = 90, rows: int = 30) -> Iterator[Terminal]:
    """`jaato` with these arguments in a terminal of its own; it is gone afterwards."""
    master, slave = pty.openpty()
    _set_size(master, columns, rows)
    command = [sys.executable, "-m", "shared.cli", *args]
    process = subprocess.Popen(
        command, cwd=cwd, env=dict(env), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        yield Terminal(process, master, columns=columns, rows=rows)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)
        os.close(master)


def _set_size(descriptor: int, columns: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
