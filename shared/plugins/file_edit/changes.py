"""Changes: what was done to files, in order and bounded, so that it can be taken back."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from shared.workspace import Location

MAX_CHANGES = 500
MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class Change:
    """One file before a change, and what identifies it afterwards; `before` is None if it was created."""

    agent_id: str
    location: Location
    before: bytes | None
    mode: int | None
    after: str

    def is_current(self, data: bytes | None) -> bool:
        """Whether the file still has the content that this change gave it."""
        return data is not None and fingerprint(data) == self.after


def fingerprint(data: bytes) -> str:
    """What tells two contents apart without keeping them."""
    return hashlib.sha256(data).hexdigest()


class Journal:
    """The changes of all agents that share a plugin; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes: list[Change] = []
        self._bytes = 0

    def add(self, change: Change) -> None:
        """Remember a change."""
        with self._lock:
            self._changes.append(change)
            self._bytes += len(change.before or b"")
            while len(self._changes) > MAX_CHANGES or (self._bytes > MAX_BYTES and len(self._changes) > 1):
                self._bytes -= len(self._changes.pop(0).before or b"")

    def last(self, agent_id: str, location: Location | None = None) -> Change | None:
        """The newest change of an agent, to one file or to any."""
        with self._lock:
            for change in reversed(self._changes):
                if change.agent_id == agent_id and location in (None, change.location):
                    return change
        return None

    def agents(self) -> set[str]:
        """The agents that have changes to take back."""
        with self._lock:
            return {change.agent_id for change in self._changes}

    def forget(self, change: Change) -> None:
        """Drop a change that was taken back."""
        with self._lock:
            # By identity: two changes may look the same, and the newer one is meant.
            for index in range(len(self._changes) - 1, -1, -1):
                if self._changes[index] is change:
                    self._bytes -= len(change.before or b"")
                    del self._changes[index]
                    return


class FileLocks:
    """One lock per file, for reading, changing and writing it in one go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: weakref.WeakValueDictionary[str, threading.RLock] = weakref.WeakValueDictionary()

    @contextmanager
    def hold(self, location: Location) -> Iterator[None]:
        """Be the only one to change the file inside the `with` block."""
        with self._lock:
            lock = self._locks.setdefault(location.absolute, threading.RLock())
        with lock:
            yield


#: Shared by all instances of the plugin: agents with settings of their own still edit the same files.
file_locks = FileLocks()
