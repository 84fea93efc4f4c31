"""Run a program to its end, its time limit or its cancellation, and leave nothing of it behind when stopped.

The program gets a session of its own. Stopping it asks politely (SIGTERM), waits a short grace
and then kills, and it reaches everything the program started: its process group, whatever
moved to another group of the session (`timeout`, job control), and whatever made a session of
its own, recognised by a mark in its environment.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shared.cancel import CancelToken
from shared.errors import ToolError

MARK = "JAATO_PROCESS"
CHUNK = 1 << 16
DRAIN_BYTES = 1 << 20
LINGER_SECONDS = 0.1
POLL_SECONDS = 0.02
DEATH_SECONDS = 2.0  # for the killed to be gone; longer takes only what is stuck in the kernel
_DEAD = (b"Z", b"X")  # of the states that a process can be in
Outcome = Literal["exited", "timed_out", "cancelled"]


@dataclass(frozen=True)
class ProcessEnd:
    """How a program ended; `left_behind` means that something it started still holds its output."""

    outcome: Outcome
    exit_code: int | None
    left_behind: bool = False


def run_process(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    cancel: CancelToken,
    timeout: float,
    on_output: Callable[[bytes], object],
    stdin: bytes = b"",
    merge_stderr: bool = True,
    stderr_to: int | None = None,
    grace: float = 0.5,
) -> ProcessEnd:
    """Run a program; its output goes to `on_output` piece by piece, in the calling thread.

    What it writes to stderr is part of that, is thrown away, or goes to the descriptor `stderr_to`.
    """
    mark = secrets.token_hex(12)
    marked = {**env, MARK: f"{env.get(MARK, '')}:{mark}"}  # added to: programs run inside programs
    errors = stderr_to if stderr_to is not None else subprocess.STDOUT if merge_stderr else subprocess.DEVNULL
    with _input(stdin) as source:
        process = _start(argv, cwd=cwd, env=marked, stdin=source, stderr=errors)
    try:
        watch = _Watch(process, mark, cancel, on_output)
    except BaseException:  # no descriptors left, perhaps: what cannot be watched may not run
        _signal_all(process.pid, mark, signal.SIGKILL)
        process.communicate()
        raise
    try:
        return watch.run(time.monotonic() + timeout, grace)
    finally:
        watch.close()


def _start(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: int, stderr: int
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - running programs is this module's purpose
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"the program could not be started: {error}") from None


class _Watch:
    """One running program and everything that can happen to it, seen through one selector."""

    def __init__(
        self, process: subprocess.Popen[bytes], mark: str, cancel: CancelToken, on_output: Callable[[bytes], object]
    ) -> None:
        assert process.stdout is not None
        self._process, self._mark, self._cancel, self._on_output = process, mark, cancel, on_output
        self._pipe = process.stdout
        self._open = True
        self._exited = False
        self._ended = False
        self._doomed: set[int] = set()
        self._selector = selectors.DefaultSelector()
        os.set_blocking(self._pipe.fileno(), False)
        self._selector.register(self._pipe, selectors.EVENT_READ)
        self._bell = _Bell()
        self._selector.register(self._bell.reader, selectors.EVENT_READ)
        self._pidfd = _pidfd(process.pid)
        if self._pidfd is not None:
            self._selector.register(self._pidfd, selectors.EVENT_READ)
        self._forget = cancel.on_cancel(self._bell.ring)

    def run(self, deadline: float, grace: float) -> ProcessEnd:
        while not self._exited:
            if self._cancel.is_cancelled:
                return self._stop("cancelled", grace)
            left = deadline - time.monotonic()
            if left <= 0:
                return self._stop("timed_out", grace)
            self._turn(left)
        # The program is gone. What it started may still write for a moment, or hold the pipe for ever.
        end = time.monotonic() + LINGER_SECONDS
        while self._open and not self._cancel.is_cancelled and (left := end - time.monotonic()) > 0:
            self._turn(left)
        self._drain()
        self._ended = True
        return ProcessEnd("exited", self._process.wait(), left_behind=self._open)

    def close(self) -> None:
        if not self._ended:  # an error in the caller's code: nothing may go on unwatched
            self._kill()
        self._forget()
        self._selector.close()
        self._bell.close()
        self._pipe.close()
        if self._pidfd is not None:
            os.close(self._pidfd)

    def _turn(self, seconds: float) -> None:
        """Wait for one thing to happen and take it in."""
        if self._pidfd is None:
            seconds = min(seconds, POLL_SECONDS)
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._pipe:
                self._read()
            elif key.fileobj == self._pidfd:
                self._exited = True
                self._selector.unregister(key.fileobj)
        if self._pidfd is None:
            self._exited = _has_exited(self._process.pid)

    def _read(self) -> int:
        if not self._open:
            return 0
        try:
            chunk = os.read(self._pipe.fileno(), CHUNK)
        except BlockingIOError:
            return 0
        if not chunk:
            self._open = False
            self._selector.unregister(self._pipe)
            return 0
        self._on_output(chunk)
        return len(chunk)

    def _drain(self) -> None:
        """Take what is in the pipe already; bounded, for a survivor may fill it for ever."""
        taken = 0
        while taken < DRAIN_BYTES and (got := self._read()):
            taken += got

    def _stop(self, outcome: Outcome, grace: float) -> ProcessEnd:
        self._selector.unregister(self._bell.reader)  # it has rung, and would be ready for ever
        self._signal(signal.SIGTERM)
        end = time.monotonic() + grace
        while (self._open or not self._exited) and (left := end - time.monotonic()) > 0:
            self._turn(left)
        self._kill()
        self._drain()
        return ProcessEnd(outcome, None)

    def _kill(self) -> None:
        # The dead leader is not reaped before this, so its number cannot belong to anyone else yet.
        # Frozen first, so that nothing forks away from between the look and the kill.
        self._signal(signal.SIGSTOP)
        for _ in range(3):
            if not self._signal(signal.SIGKILL):
                break
        end = time.monotonic() + DEATH_SECONDS
        while any(map(_lives, self._doomed)) and time.monotonic() < end:  # a signal waits for its target's turn to run
            time.sleep(POLL_SECONDS)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=max(0.0, end - time.monotonic()))
        self._ended = True

    def _signal(self, number: signal.Signals) -> bool:
        """Signal all that belong to the program and remember them; whether any was outside its group."""
        found = _signal_all(self._process.pid, self._mark, number)
        self._doomed.update(found)
        return any(found.values())


class _Bell:
    """Wakes a selector from another thread; ringing it after it is closed does nothing."""

    def __init__(self) -> None:
        self.reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._lock = threading.Lock()
        self._closed = False

    def ring(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            if not self._closed:
                self._writer.send(b"\0")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self.reader.close()
            self._writer.close()


@contextlib.contextmanager
def _input(data: bytes) -> Iterator[int]:
    """Standard input: nothing, or a file with the data (a pipe could fill up and block)."""
    if not data:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        file.seek(0)
        yield file.fileno()


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, or an old one: the exit is polled for
        return None


def _has_exited(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:
        return True


def _signal_all(leader: int, mark: str, number: signal.Signals) -> dict[int, bool]:
    """Signal the leader's group and every stray process; those that still live, and whether each is a stray."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    found = dict(_family(leader, mark.encode()))
    for pid in (pid for pid, is_stray in found.items() if is_stray):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return found


def _family(leader: int, mark: bytes) -> Iterator[tuple[int, bool]]:
    """Living processes of the group, and those of the session or with the mark that strayed from it (Linux only)."""
    if not os.path.isdir("/proc/self"):
        return
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it ended while we looked, or is not ours
            state, _, group, session = _stat(name)[:4]
            if state in _DEAD:
                continue
            if int(group) == leader:
                yield int(name), False
            elif int(session) == leader or mark in Path("/proc", name, "environ").read_bytes():
                yield int(name), True


def _lives(pid: int) -> bool:
    try:
        return _stat(str(pid))[0] not in _DEAD
    except (OSError, IndexError):  # it is gone
        return False


def _stat(name: str) -> list[bytes]:
    """What the kernel tells of a process: its state, parent, group, session and more."""
    return Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
