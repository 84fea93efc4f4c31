"""Tape: the file of a recording, JSON lines; texts and messages that repeat are written once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.errors import ConfigError
from shared.recording.exchange import Exchange

VERSION = 1
_SHARED = ("system", "tools")


@dataclass(frozen=True)
class Place:
    """The folders of the machine that a recording was made on: they differ elsewhere."""

    cwd: str
    home: str
    temp: str

    @staticmethod
    def here() -> Place:
        """This process's own."""
        return Place(os.getcwd(), str(Path.home()), os.path.realpath(tempfile.gettempdir()))


@dataclass(frozen=True)
class Recording:
    """What a file holds."""

    path: Path
    place: Place
    providers: Mapping[str, Mapping[str, Any]]
    exchanges: list[Exchange] = field(default_factory=list)


class TapeWriter:
    """Appends to a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)  # one that was there before may have been open to all
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")
        self._lock = threading.Lock()
        self._known: set[str] = set()
        self._write({"jaato_recording": VERSION, "place": vars(Place.here())})

    def provider(self, name: str, value: Mapping[str, Any]) -> None:
        """Note what is to be known of a provider, once."""
        with self._lock:
            if f"provider:{name}" not in self._known:
                self._known.add(f"provider:{name}")
                self._write({"provider": name, **value})

    def exchange(self, exchange: Exchange) -> None:
        """Add an exchange; nothing is added once the file is closed."""
        with self._lock:
            if self._file.closed:
                return
            request = dict(exchange.request)
            request |= {name: self._blob(request[name]) for name in _SHARED}
            request["messages"] = [self._blob(message) for message in request["messages"]]
            self._write({**vars(exchange), "request": request})
            self._file.flush()

    def close(self) -> None:
        """End the file."""
        with self._lock:
            self._file.close()

    def _blob(self, value: Any) -> str:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if name not in self._known:
            self._known.add(name)
            self._write({"blob": name, "value": value})
        return name

    def _write(self, value: Mapping[str, Any]) -> None:
        if not self._file.closed:
            self._file.write(json.dumps(value) + "\n")


def read_tape(path: Path) -> Recording:
    """The recording in a file; raises ConfigError with the line that cannot be read."""
    blobs: dict[str, Any] = {}
    found: Recording | None = None
    providers: dict[str, Mapping[str, Any]] = {}
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                entry = _entry(path, number, line, first=found is None)
                if found is None:
                    found = Recording(path, Place(**entry["place"]), providers)
                elif "blob" in entry:
                    blobs[entry["blob"]] = entry["value"]
                elif "started" in entry:
                    found.exchanges.append(_exchange(entry, blobs))
                else:
                    providers[entry["provider"]] = entry
    except OSError as error:
        raise ConfigError(f"the recording {path} cannot be read: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: is no whole recording ({type(error).__name__}: {error}): record it anew") from None
    if found is None:
        raise ConfigError(f"{path}: is empty: record it anew")
    found.exchanges.sort(key=lambda each: each.started)
    return found


def _entry(path: Path, number: int, line: str, *, first: bool) -> dict[str, Any]:
    try:
        entry: Any = json.loads(line)
    except ValueError:
        raise ConfigError(f"{path}:{number}: is no JSON: the recording is cut off or damaged; record it anew") from None
    if first and (not isinstance(entry, dict) or entry.get("jaato_recording") != VERSION):
        raise ConfigError(f"{path}:{number}: is no recording of version {VERSION}: record it anew")
    return dict(entry)


def _exchange(entry: dict[str, Any], blobs: Mapping[str, Any]) -> Exchange:
    request = dict(entry["request"])
    request |= {name: blobs[request[name]] for name in _SHARED}
    request["messages"] = [blobs[name] for name in request["messages"]]
    chunks = tuple((kind, text) for kind, text in entry["chunks"])
    return Exchange(**{**entry, "request": request, "chunks": chunks})
