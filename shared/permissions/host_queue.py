"""QueueChannel: hands requests to the host program, which answers whenever it likes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import ClassVar

from shared.cancel import CancelToken
from shared.permissions.channel import Channel, ChannelFailed
from shared.permissions.policy import ChannelSettings
from shared.permissions.request import Decision, PermissionRequest


class QueueChannel(Channel):
    """In-process requests: take them with `next()` or a callback, answer with `answer(id, decision)`."""

    name: ClassVar[str] = "queue"
    one_at_a_time: ClassVar[bool] = False

    def __init__(self, *, on_request: Callable[[PermissionRequest], None] | None = None) -> None:
        self._on_request = on_request
        self._lock = threading.Lock()
        self._fresh: queue.SimpleQueue[PermissionRequest | None] = queue.SimpleQueue()
        self._open: dict[str, _Slot] = {}
        self._closed = False

    @staticmethod
    def from_settings(settings: ChannelSettings) -> QueueChannel:
        """The queue that a policy asks for."""
        return QueueChannel()

    def available(self) -> bool:
        """Whether the channel has not been closed."""
        return not self._closed

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        """Wait for the host's answer."""
        slot = _Slot(request)
        with self._lock:
            if self._closed:
                raise ChannelFailed("the queue is closed")
            self._open[request.id] = slot
        forget = ended.on_cancel(slot.done.set)
        try:
            self._fresh.put(request)
            if self._on_request is not None:
                self._on_request(request)
            slot.done.wait()
        finally:
            forget()
            with self._lock:
                self._open.pop(request.id, None)
        if slot.decision is None:
            raise ChannelFailed("the question was closed without an answer")
        return slot.decision

    def next(self, timeout: float | None = None) -> PermissionRequest | None:
        """The next request that still waits; None when time is up or the channel is closed."""
        while True:
            try:
                request = self._fresh.get(timeout=timeout)
            except queue.Empty:
                return None
            if request is None:
                self._fresh.put(None)  # the next reader must wake as well
                return None
            if request.id in self._open:
                return request

    def answer(self, request_id: str, decision: Decision | str) -> bool:
        """Answer a request; False if it does not wait any more."""
        made = Decision.parse(decision) if isinstance(decision, str) else decision
        with self._lock:
            slot = self._open.pop(request_id, None)
        if slot is None:
            return False
        slot.decision = made
        slot.done.set()
        return True

    def close(self) -> None:
        """Let every waiting question go unanswered, which denies it."""
        with self._lock:
            self._closed = True
            left, self._open = list(self._open.values()), {}
        for slot in left:
            slot.done.set()
        self._fresh.put(None)


class _Slot:
    __slots__ = ("decision", "done", "request")

    def __init__(self, request: PermissionRequest) -> None:
        self.request = request
        self.done = threading.Event()
        self.decision: Decision | None = None
