"""SharedState: JSON values that the agents of one tree share, versioned and linearisable."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.cancel import CancelToken
from shared.errors import ToolError, VersionConflict

MAX_VALUE_CHARS = 256_000
MAX_TOTAL_CHARS = 16_000_000
MAX_KEYS = 10_000
MAX_KEY_CHARS = 200


@dataclass(frozen=True)
class Entry:
    """What stands under a key; version 0 and no value when nothing does."""

    key: str
    value: Any
    version: int


@dataclass
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
        self._changed = threading.Condition()
        self._slots: dict[str, _Slot] = {}
        self._total = 0

    def set(
        self, key: str, value: Any, *, expected_version: int | None = None, ttl_seconds: float | None = None
    ) -> Entry:
        """Store a value; with `expected_version` only if the key still has that version (0: is not there)."""
        text = _encoded(key, value)
        with self._changed:
            former = self._slots.get(key)
            now = self._clock()
            current = former.version if former is not None and _living(former, now) else 0
            if expected_version is not None and expected_version != current:
                raise VersionConflict(
                    f"'{key}' has version {current}, not {expected_version}: read it again and retry",
                    current=current,
                )
            self._make_room(key, former, text)
            version = (former.version if former is not None else 0) + 1
            expires = None if ttl_seconds is None else now + ttl_seconds
            self._slots[key] = _Slot(text, version, expires)
            self._changed.notify_all()
        return Entry(key, value, version)

    def get(self, key: str) -> Entry:
        """What stands under a key now."""
        with self._changed:
            slot = self._slots.get(key)
            if slot is None or not _living(slot, self._clock()):
                return Entry(key, None, 0)
            text, version = slot.text, slot.version
        return Entry(key, json.loads(text), version)

    def wait_for(self, key: str, version: int, *, timeout: float | None, cancel: CancelToken) -> Entry:
        """Block until the key has at least this version, time is up or `cancel` fires; then what stands there."""
        deadline = None if timeout is None else time.monotonic() + timeout
        forget = cancel.on_cancel(self._wake)
        try:
            with self._changed:
                while not cancel.is_cancelled:
                    slot = self._slots.get(key)
                    if slot is not None and slot.version >= version:
                        break
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        break
                    self._changed.wait(left)
        finally:
            forget()
        cancel.raise_if_cancelled()
        return self.get(key)

    def keys(self, prefix: str = "") -> list[str]:
        """Keys that hold a value, sorted."""
        with self._changed:
            now = self._clock()
            return sorted(key for key, slot in self._slots.items() if key.startswith(prefix) and _living(slot, now))

    def _make_room(self, key: str, former: _Slot | None, text: str) -> None:
        total = self._total - (len(former.text) if former is not None else 0) + len(text)
        if former is None and len(self._slots) >= MAX_KEYS:
            raise ToolError(f"shared state holds {MAX_KEYS} keys already; use fewer, larger values")
        if total > MAX_TOTAL_CHARS:
            raise ToolError(f"shared state is full ({MAX_TOTAL_CHARS:,} characters); make other values smaller first")
        self._total = total

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def _living(slot: _Slot, now: float) -> bool:
    return slot.expires_at is None or now < slot.expires_at


def _encoded(key: str, value: Any) -> str:
    if not key or len(key) > MAX_KEY_CHARS:
        raise ToolError(f"key: expected 1 to {MAX_KEY_CHARS} characters, got {len(key)}")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"value of '{key}' cannot be written as JSON: {error}") from error
    if len(text) > MAX_VALUE_CHARS:
        raise ToolError(f"value of '{key}' has {len(text):,} characters; at most {MAX_VALUE_CHARS:,} are kept")
    return text
