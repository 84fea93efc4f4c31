"""ConsoleChannel: asks the person at the controlling terminal, one question at a time."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Iterator
from typing import ClassVar

from shared.cancel import CancelToken
from shared.errors import ConfigError
from shared.permissions.channel import Channel, ChannelFailed
from shared.permissions.display import is_deceptive, one_line
from shared.permissions.policy import ChannelSettings
from shared.permissions.request import Decision, PermissionRequest
from shared.permissions.visible import visible

SHOWN_LINES = 40
SHOWN_CHARS = 1_500
_TRIES = 5
_QUESTION = "Allow? [y]es [n]o [a]lways, once/agent/session/never/all, [d]etails, ? for help: "


class ConsoleChannel(Channel):
    """Reads and writes the terminal itself, so redirected standard streams change nothing."""

    name: ClassVar[str] = "console"

    def __init__(self, *, terminal: str = "/dev/tty") -> None:
        self._terminal = terminal
        self._closed = False

    @staticmethod
    def from_settings(settings: ChannelSettings) -> ConsoleChannel:
        """The console that a policy asks for; `endpoint` may name another terminal."""
        return ConsoleChannel(terminal=settings.endpoint or "/dev/tty")

    def available(self) -> bool:
        """Whether there is a terminal, and this process may read from it."""
        if self._closed:
            return False
        try:
            with _opened(self._terminal) as descriptor:
                return os.isatty(descriptor) and _in_foreground(descriptor)
        except OSError:
            return False

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        """Show the request and read an answer; the end of input means no."""
        if not self.available():
            raise ChannelFailed("there is no terminal to ask on")
        with _opened(self._terminal) as descriptor, _bell(ended) as bell:
            _write(descriptor, prompt_text(request))
            _forget_typed_ahead(descriptor)
            for _ in range(_TRIES):
                _write(descriptor, _QUESTION)
                line = _read_line(descriptor, bell)
                if line is None:
                    _write(descriptor, "\n(no longer needed)\n" if ended.is_cancelled else "\n(end of input: denied)\n")
                    return Decision(False, comment="the terminal gave no answer")
                decision = self._decision(line, request, descriptor)
                if decision is not None:
                    return decision
            _write(descriptor, "Too many answers that mean nothing: denied.\n")
            return Decision(False, comment="no valid answer was given")

    def close(self) -> None:
        """Ask nothing any more."""
        self._closed = True

    def _decision(self, line: str, request: PermissionRequest, descriptor: int) -> Decision | None:
        word = line.strip().lower()
        if word in ("?", "h", "help", ""):
            _write(descriptor, help_text(request))
        elif word in ("d", "details"):
            _write(descriptor, prompt_text(request, lines=None))
        else:
            try:
                return Decision.parse(word)
            except ConfigError:
                _write(descriptor, f"'{one_line(word, 40)}' is no answer.\n")
        return None


def prompt_text(request: PermissionRequest, *, lines: int | None = SHOWN_LINES) -> str:
    """The request as text in which every line that comes from an agent is marked as quoted."""
    profile = f" ({one_line(request.profile)})" if request.profile else ""
    details = visible(request.display.details).split("\n")
    parts = [
        "",
        f"── permission: {one_line(request.agent_path)}{profile} wants to use {one_line(request.tool)}",
        f"   {one_line(request.display.summary)}",
        *(f"   │ {line}" for line in (details if lines is None else _shortened(details, lines))),
    ]
    if request.display.truncated:
        parts.append("   [the tool shortened this description]")
    if is_deceptive(request.display.details) or is_deceptive(str(request.arguments)):
        parts.append("   Beware: it contains characters that are invisible or look like others.")
    return "\n".join(parts) + "\n"


def _shortened(details: list[str], lines: int) -> Iterator[str]:
    """Beginning and end of long details: what matters may stand at either."""
    hidden = len(details) - lines
    head = lines * 3 // 4
    for line in details[: head if hidden > 0 else lines]:
        yield _clipped(line)
    if hidden > 0:
        yield f"[… {hidden} more lines: answer d to see them …]"
        for line in details[head - lines :]:
            yield _clipped(line)


def _clipped(line: str) -> str:
    hidden = len(line) - SHOWN_CHARS
    if hidden <= 0:
        return line
    head = SHOWN_CHARS * 2 // 3
    return f"{line[:head]} [… {hidden} more characters: answer d to see them …] {line[head - SHOWN_CHARS :]}"


def help_text(request: PermissionRequest) -> str:
    """What each answer would cover for this request."""
    tool = one_line(request.tool)
    usual = "this exact command line" if request.is_command else f"any use of {tool}"
    return (
        "  y, once        this call, now\n"
        "  n              not this call\n"
        f"  agent          the same call again by {one_line(request.agent_path)}\n"
        "  session        the same call again by any agent\n"
        f"  agent tool, session tool   any use of {tool} by this agent, by any agent\n"
        f"  a, always      {usual} by any agent, also written to your policy file if you have one\n"
        f"  never          deny {usual} for this session\n"
        "  all            allow everything that is not blacklisted for this session\n"
        "  d              show everything\n"
    )


@contextlib.contextmanager
def _opened(terminal: str) -> Iterator[int]:
    descriptor = os.open(terminal, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _bell(ended: CancelToken) -> Iterator[int]:
    """A descriptor that becomes readable when the question is no longer needed."""
    reader, writer = os.pipe()
    lock, is_open = threading.Lock(), True

    def ring() -> None:
        with lock:
            if is_open:  # a late ring must not write to whatever has got this number since
                os.write(writer, b"x")

    forget = ended.on_cancel(ring)
    try:
        yield reader
    finally:
        forget()
        with lock:
            is_open = False
        os.close(reader)
        os.close(writer)


def _in_foreground(descriptor: int) -> bool:
    """A background job that reads from its terminal is stopped by the system, so it must not try."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # not our controlling terminal: no job control on it
        return True


def _forget_typed_ahead(descriptor: int) -> None:
    """A key pressed before the question was shown is no answer to it."""
    import termios

    with contextlib.suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)


def _write(descriptor: int, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(descriptor, data) :]


def _read_line(descriptor: int, bell: int) -> str | None:
    """One line; None at the end of input or when the bell rings."""
    line = b""
    while True:
        ready, _, _ = select.select([descriptor, bell], [], [])
        if bell in ready:
            return None
        try:
            chunk = os.read(descriptor, 1024)
        except OSError:  # the terminal went away
            return None
        line += chunk
        if not chunk or b"\x04" in chunk:
            return None
        if b"\n" in chunk or b"\r" in chunk:
            return line.replace(b"\r", b"\n").split(b"\n")[0].decode("utf-8", "replace")
        if len(line) > 10_000:
            return None
