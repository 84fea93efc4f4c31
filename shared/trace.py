"""The debug trace: one line per event in a file only the owner can read, rotated, without secrets."""

from __future__ import annotations

import atexit
import logging
import os
import re
import stat
import threading
import time
import weakref
from dataclasses import fields
from functools import lru_cache
from pathlib import Path

from shared.bus import EventBus
from shared.events import (
    AgentCompleted,
    AgentCreated,
    ContextCollected,
    Event,
    ModelCallEnded,
    PermissionAsked,
    PermissionResolved,
    RetryScheduled,
    StatusChanged,
    ToolEnded,
    ToolStarted,
    TurnCompleted,
)
from shared.types import TokenUsage

log = logging.getLogger(__name__)

MAX_BYTES = 5_000_000
MAX_FIELD = 400
NAME_CHARS = 40  # texts up to here are mostly names that come again and again
MAX_LINES = 256  # kept back at most until they are written

TRACED: frozenset[type[Event]] = frozenset(
    {
        AgentCompleted,
        AgentCreated,
        ContextCollected,
        ModelCallEnded,
        PermissionAsked,
        PermissionResolved,
        RetryScheduled,
        StatusChanged,
        ToolEnded,
        ToolStarted,
        TurnCompleted,
    }
)

# Shapes that are secret wherever they stand.
_SECRET = re.compile(
    r"""(?ix)
    \b(?: [sr]k[-_][\w-]{8,} | AIza[\w-]{20,} | ya29\.[\w-]{8,} | gh[pousr]_\w{16,} | github_pat_\w{16,}
        | xox[abeoprs]-[\w-]{8,} | xapp-[\w-]{8,} | (?:AKIA|ASIA)[A-Z0-9]{12,} | hf_\w{16,} | glpat-[\w-]{16,}
        | npm_\w{16,} | pypi-[\w-]{16,} | eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)? )
    | -----BEGIN[^-]*PRIVATE\ KEY----- .*? (?: -----END[^-]*----- | \Z )
    | (?<=bearer\ )[\w.~+/=-]{4,} | (?<=basic\ )[\w+/=-]{12,}
    | (?<=://) [^\s/@:]* : [^\s/@]+ (?=@)
    """,
    re.DOTALL,
)
# What follows a telling name: `api_key=…`, `"token": "…"`, also inside quoted JSON, and `--password …`.
_NAMED_SECRET = re.compile(
    r"""(?ix)
    ( (?: key | token
        | (?P<private> secret | passw(?:or)?d | passphrase | pwd | credentials? | authorization | cookie ) )
      (?: \\* ["']? \s* [:=] \s* | (?<=-key) \s+ | (?<=-token) \s+ | (?<=-secret) \s+ | (?<=-password) \s+ ) )
    (?: (?P<quote> \\* ["'] ) (?P<quoted> .*? ) (?: (?P=quote) | \Z )
      | (?P<bare> (?: (?:basic|bearer|digest)\s+ )? [^\s"',;&}\\]+ ) )
    """,
    re.DOTALL,
)
# Looking for these first is far cheaper than either expression; every secret contains one of them.
_HINTS = (
    *("key", "token", "secret", "passw", "passphrase", "pwd", "credential", "authorization", "cookie", "bearer"),
    *("basic ", "sk-", "sk_", "rk_", "rk-", "aiza", "ya29", "gh", "xox", "xapp", "akia", "asia", "hf_", "glpat"),
    *("npm_", "pypi-", "eyj", "@"),
)
_HARMLESS = re.compile(r"^(?:\d+|none|null|true|false|)$", re.IGNORECASE)


def redact(text: str) -> str:
    """The text without anything that looks like a credential."""
    lower = text.lower()
    if not any(hint in lower for hint in _HINTS):
        return text
    return _NAMED_SECRET.sub(_hidden, _SECRET.sub("[redacted]", text))


def _hidden(match: re.Match[str]) -> str:
    """The name without its value; a number is kept unless the name says that it is a password."""
    quote = match["quote"] or ""
    value = match["quoted"] if quote else match["bare"]
    if not value or (not match["private"] and _HARMLESS.match(value)):
        return match[0]
    return f"{match[1]}{quote}[redacted]{quote}"


class TraceFile:
    """Appends lines, many at once; opened on the first ones. A file that is not ours alone is not written to."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._lock = threading.Lock()
        self._lines: list[bytes] = []  # not written yet
        self._fd: int | None = None
        self._size = 0
        self._broken = False

    def write(self, line: str) -> None:
        """Write one line at once."""
        self.add(line)
        self.flush()

    def add(self, line: str) -> None:
        """Take one line, which `flush` writes."""
        data = (line.replace("\n", "\\n").replace("\r", "\\r") + "\n").encode("utf-8", "replace")
        with self._lock:
            self._lines.append(data)
            many = len(self._lines) >= MAX_LINES
        if many:
            self.flush()

    def flush(self) -> None:
        """Write what was added; a trace that cannot be written is given up, with one warning."""
        with self._lock:
            data, self._lines = b"".join(self._lines), []
            if self._broken or not data:
                return
            try:
                if self._fd is None:
                    self._open()
                elif self._size + len(data) > self._max_bytes:
                    self._rotate()
                assert self._fd is not None
                os.write(self._fd, data)
                self._size += len(data)
            except OSError as error:
                self._broken = True
                log.warning("the trace %s cannot be written: %s", self._path, error)

    def _open(self) -> None:
        # Whoever else may write to the folder must not lead us astray: no links, and no waiting at a pipe.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(self._path, flags, 0o600)
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
            os.close(fd)
            raise PermissionError(f"{self._path} belongs to somebody else; set JAATO_TRACE_LOG to another path")
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(fd, 0o600)
        self._fd, self._size = fd, found.st_size

    def _rotate(self) -> None:
        assert self._fd is not None
        os.close(self._fd)
        self._fd = None
        os.replace(self._path, self._path.with_name(self._path.name + ".1"))
        self._open()


_files: dict[Path, TraceFile] = {}


def attach_trace(bus: EventBus, path: Path | None) -> None:
    """Trace the events of a runtime to a file, which several runtimes may share; None: there is no trace."""
    if path is None:
        return
    file = _files.setdefault(path, TraceFile(path))
    bus.subscribe(lambda event: file.add(format_line(event)), interest=TRACED, awaited=False, on_drained=file.flush)
    living = weakref.ref(bus)
    atexit.register(lambda: (found := living()) is not None and found.flush(everyone=True))


def format_line(event: Event) -> str:
    """`[HH:MM:SS.mmm] [Event@agent] field=value …`, without secrets."""
    now = time.time()
    kind = type(event)
    texts = [f"{name}={_short(value)}" for name in _fields(kind) if (value := getattr(event, name))]
    return f"[{_clock(int(now))}.{int(now * 1000) % 1000:03d}] [{kind.__name__}@{event.agent_id}] {' '.join(texts)}"


_names: dict[type[Event], tuple[str, ...]] = {}


def _fields(kind: type[Event]) -> tuple[str, ...]:
    if kind not in _names:
        told = (field for field in fields(kind) if field.metadata.get("traced", True))
        _names[kind] = tuple(field.name for field in told if field.name != "agent_id")
    return _names[kind]


_redacted_name = lru_cache(maxsize=1024)(redact)


@lru_cache(maxsize=2)
def _clock(second: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(second))


def _short(value: object) -> str:
    if isinstance(value, (int, float)):
        return f"{value:.6g}"
    if isinstance(value, TokenUsage):
        return f"{value.prompt_tokens}+{value.output_tokens}"
    raw = str(value)
    text = _redacted_name(raw) if len(raw) <= NAME_CHARS else redact(raw[: 10 * MAX_FIELD])
    return text if len(text) <= MAX_FIELD else text[:MAX_FIELD] + "…"
