"""CancelToken: one flag that wakes everything waiting on it, linked from parent to child."""

from __future__ import annotations

import itertools
import logging
import threading
import weakref
from collections.abc import Callable

from shared.errors import CancelledException

log = logging.getLogger(__name__)

Callback = Callable[[], object]
_keys = itertools.count()


class CancelToken:
    """Cancelled once, for good; cancelling a parent cancels every child made with `child()`.

    Callbacks run once, in the thread that cancels, outside any lock; their errors are logged.
    A parent keeps only weak references to children, so finished work leaves nothing behind.
    """

    __slots__ = (
        "__weakref__",
        "_callbacks",
        "_cancelled",
        "_children",
        "_event",
        "_lock",
        "_parent",
        "reason",
    )

    def __init__(self, parent: CancelToken | None = None) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._event: threading.Event | None = None
        self._callbacks: dict[int, Callback] | None = None
        self._children: weakref.WeakSet[CancelToken] | None = None
        self._parent = parent
        self.reason = ""
        if parent is not None:
            parent._adopt(self)

    @property
    def is_cancelled(self) -> bool:
        """Whether the token has been cancelled."""
        return self._cancelled

    def child(self) -> CancelToken:
        """A token that is cancelled with this one, and may be cancelled alone."""
        return CancelToken(self)

    def cancel(self, reason: str = "cancelled") -> bool:
        """Cancel this token and all below it; False if it was cancelled before.

        The whole tree is marked and woken first, so that a slow callback delays nobody's cancel.
        """
        callbacks: list[Callback] = []
        pending = [self]
        first = True
        while pending:
            marked = pending.pop()._mark(reason, callbacks)
            if marked is None and first:
                return False
            first = False
            pending.extend(marked or ())
        for callback in callbacks:
            _call(callback)
        return True

    def on_cancel(self, callback: Callback) -> Callable[[], None]:
        """Call back on cancel (at once if it has happened); returns a function that takes it back."""
        with self._lock:
            if not self._cancelled:
                if self._callbacks is None:
                    self._callbacks = {}
                key = next(_keys)
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        _call(callback)
        return _nothing

    def wait(self, timeout: float | None = None) -> bool:
        """Block until cancelled or the time is up; True if cancelled."""
        if self._cancelled:
            return True
        with self._lock:
            if self._cancelled:
                return True
            if self._event is None:
                self._event = threading.Event()
            event = self._event
        return event.wait(timeout)

    def raise_if_cancelled(self) -> None:
        """Raise CancelledException if the token is cancelled."""
        if self._cancelled:
            raise CancelledException(self.reason)

    def _mark(self, reason: str, callbacks: list[Callback]) -> list[CancelToken] | None:
        """Cancel this token alone, collecting its callbacks; returns its children, None if it was cancelled before."""
        with self._lock:
            if self._cancelled:
                return None
            self._cancelled, self.reason = True, reason
            callbacks += (self._callbacks or {}).values()
            living = list(self._children) if self._children else []
            self._callbacks = self._children = None
        if self._event is not None:
            self._event.set()
        return living

    def _adopt(self, token: CancelToken) -> None:
        with self._lock:
            if not self._cancelled:
                if self._children is None:
                    self._children = weakref.WeakSet()
                self._children.add(token)
                return
        token.cancel(self.reason)

    def _forget(self, key: int) -> None:
        with self._lock:
            if self._callbacks is not None:
                self._callbacks.pop(key, None)


def _nothing() -> None:
    return None


def _call(callback: Callback) -> None:
    try:
        callback()
    except Exception:  # foreign code: one that fails must not keep the cancel from the others
        log.exception("a cancel callback failed")
