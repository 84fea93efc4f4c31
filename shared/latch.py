"""Latch: something that happens once, and any number of threads that wait for it or a cancel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from shared.cancel import CancelToken


class Latch:
    """Opens once, for good."""

    __slots__ = ("_listeners", "_lock", "_open")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = False
        self._listeners: list[Callable[[], object]] | None = None  # made when the first one listens

    @property
    def is_open(self) -> bool:
        """Whether it has happened."""
        return self._open

    def open(self) -> bool:
        """Let it happen; False if it had before. Listeners run in this thread, outside the lock."""
        with self._lock:
            if self._open:
                return False
            self._open = True
            listeners, self._listeners = self._listeners, None
        for listener in listeners or ():
            listener()
        return True

    def listen(self, listener: Callable[[], object]) -> None:
        """Call back when it happens, at once if it has; listeners must not raise."""
        with self._lock:
            if not self._open:
                if self._listeners is None:
                    self._listeners = []
                self._listeners.append(listener)
                return
        listener()

    def forget(self, listener: Callable[[], object]) -> None:
        """Take a listener back."""
        with self._lock:
            if self._listeners is not None and listener in self._listeners:
                self._listeners.remove(listener)

    def wait(self, timeout: float | None = None, *, cancel: CancelToken | None = None) -> bool:
        """Block until it happens (True), or until time is up or `cancel` fires (False)."""
        return wait_any((self,), timeout, cancel=cancel)


def wait_any(latches: Sequence[Latch], timeout: float | None = None, *, cancel: CancelToken | None = None) -> bool:
    """Block until one of the latches opens (True), or until time is up or `cancel` fires (False)."""
    if any(latch.is_open for latch in latches):
        return True
    gate = threading.Lock()
    gate.acquire()

    def wake() -> None:
        try:
            gate.release()
        except RuntimeError:  # somebody else was quicker
            pass

    forget = cancel.on_cancel(wake) if cancel is not None else None
    try:
        for latch in latches:
            latch.listen(wake)
        gate.acquire(timeout=-1 if timeout is None else min(max(0.0, timeout), threading.TIMEOUT_MAX))
    finally:
        if forget is not None:
            forget()
        for latch in latches:
            latch.forget(wake)
    return any(latch.is_open for latch in latches)
