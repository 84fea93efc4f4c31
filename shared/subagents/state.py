"""SharedState: JSON values that the agents of one tree share, versioned and linearisable."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.cancel import CancelToken
from shared.errors import ToolError, VersionConflict

if TYPE_CHECKING:
    from shared.store.records import StateRecord

MAX_VALUE_CHARS = 256_000
MAX_TOTAL_CHARS = 16_000_000
MAX_KEYS = 10_000
MAX_KEY_CHARS = 200


StateSink = Callable[[str, str, int, float | None], object]  # key, JSON text, version, end on the wall clock


@dataclass(frozen=True)
class Entry:
    """What stands under a key; version 0 and no value when nothing does."""

    key: str
    value: Any
    version: int


@dataclass(frozen=True)
class _Slot:
    text: str
    version: int
    expires_at: float | None


class SharedState:
    """Values are copied in and out as JSON. A key's versions only grow, across expiry too, so that a
    lease holder that slept too long cannot mistake another's lease for its own.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.sink: StateSink | None = None  # who keeps what is written
        self._changed = threading.Condition()
        self._slots: dict[str, _Slot] = {}
        self._total = 0
        self._floor = 0  # no key that is new begins below the versions of those that were forgotten

    def set(
        self, key: str, value: Any, *, expected_version: int | None = None, ttl_seconds: float | None = None
    ) -> Entry:
        """Store a value; with `expected_version` only if the key still has that version (0: is not there)."""
        text, copied = _encoded(key, value)
        with self._changed:
            now = self._clock()
            former = self._slots.get(key)
            current = former.version if former is not None and _living(former, now) else 0
            if expected_version is not None and expected_version != current:
                raise VersionConflict(
                    f"'{key}' has version {current}, not {expected_version}: read it again and retry",
                    current=current,
                )
            self._make_room(key, text, now)
            version = (former.version if former is not None else self._floor) + 1
            expires = None if ttl_seconds is None else now + ttl_seconds
            self._total += len(text) - (len(former.text) if former is not None else 0)
            self._slots[key] = _Slot(text, version, expires)
            self._changed.notify_all()
        if self.sink is not None:  # whoever wrote it hears of that when it is stored
            self.sink(key, text, version, None if ttl_seconds is None else time.time() + ttl_seconds)
        return Entry(key, copied, version)

    def restore(self, records: Iterable[StateRecord]) -> None:
        """Take up what was stored; what ran out in the meantime is gone, but its versions are not given out again."""
        with self._changed:
            now, wall = self._clock(), time.time()
            for each in records:
                if each.expires_at is not None and each.expires_at <= wall:
                    self._floor = max(self._floor, each.version)
                elif each.name not in self._slots:
                    expires = None if each.expires_at is None else now + each.expires_at - wall
                    self._slots[each.name] = _Slot(each.value, each.version, expires)
                    self._total += len(each.value)
            self._changed.notify_all()

    def get(self, key: str) -> Entry:
        """What stands under a key now."""
        with self._changed:
            slot = self._read(key)
        return _entry(key, slot)

    def wait_for(self, key: str, version: int, *, timeout: float | None, cancel: CancelToken) -> Entry:
        """Block until the key has at least this version, time is up or `cancel` fires; then what stands there."""
        deadline = None if timeout is None else time.monotonic() + timeout
        forget = cancel.on_cancel(self._wake)
        try:
            with self._changed:
                while True:
                    slot = self._read(key)
                    left = threading.TIMEOUT_MAX if deadline is None else deadline - time.monotonic()
                    if (slot is not None and slot.version >= version) or cancel.is_cancelled or not left > 0:
                        break
                    self._changed.wait(min(left, threading.TIMEOUT_MAX))
        finally:
            forget()
        cancel.raise_if_cancelled()
        return _entry(key, slot)

    def keys(self, prefix: str = "") -> list[str]:
        """Keys that hold a value, sorted."""
        with self._changed:
            now = self._clock()
            return sorted(key for key, slot in self._slots.items() if key.startswith(prefix) and _living(slot, now))

    def _read(self, key: str) -> _Slot | None:
        slot = self._slots.get(key)
        return slot if slot is not None and _living(slot, self._clock()) else None

    def _make_room(self, key: str, text: str, now: float) -> None:
        """Refuse what does not fit; leases that ran out make room first."""
        if not self._fits(key, text):
            self._sweep(key, now)
        if self._fits(key, text):
            return
        if key not in self._slots and len(self._slots) >= MAX_KEYS:
            raise ToolError(f"shared state holds {MAX_KEYS:,} keys already; use fewer, larger values")
        raise ToolError(f"shared state is full ({MAX_TOTAL_CHARS:,} characters); make other values smaller first")

    def _fits(self, key: str, text: str) -> bool:
        former = self._slots.get(key)
        total = self._total + len(text) - (len(former.text) if former is not None else 0)
        return total <= MAX_TOTAL_CHARS and (former is not None or len(self._slots) < MAX_KEYS)

    def _sweep(self, kept: str, now: float) -> None:
        for key, slot in list(self._slots.items()):
            if key != kept and not _living(slot, now):
                del self._slots[key]
                self._total -= len(slot.text)
                self._floor = max(self._floor, slot.version)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def _living(slot: _Slot, now: float) -> bool:
    return slot.expires_at is None or now < slot.expires_at


def _entry(key: str, slot: _Slot | None) -> Entry:
    return Entry(key, json.loads(slot.text), slot.version) if slot is not None else Entry(key, None, 0)


def _encoded(key: str, value: Any) -> tuple[str, Any]:
    """A value as text, and as whoever reads it will get it."""
    if not key or len(key) > MAX_KEY_CHARS:
        raise ToolError(f"key: expected 1 to {MAX_KEY_CHARS} characters, got {len(key)}")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        (key + text).encode()  # half characters, which no wire could carry, are refused here
        copied = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"value of {key!r} cannot be written as JSON: {error}") from error
    if len(text) > MAX_VALUE_CHARS:
        raise ToolError(f"value of '{key}' has {len(text):,} characters; at most {MAX_VALUE_CHARS:,} are kept")
    return text, copied
