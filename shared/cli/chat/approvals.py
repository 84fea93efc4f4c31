"""ChatChannel: puts one permission question at a time before the person at the prompt."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from shared.cancel import CancelToken
from shared.permissions.channel import Channel, ChannelFailed
from shared.permissions.request import Decision, PermissionRequest


@dataclass(eq=False)
class Asked:
    """A question that is on the screen; an answer is for this one and no other."""

    request: PermissionRequest
    done: threading.Event = field(default_factory=threading.Event)
    decision: Decision | None = None


class ChatChannel(Channel):
    """Holds the question that is open; whoever draws it is told when it changes."""

    name: ClassVar[str] = "chat"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: Asked | None = None
        self._closed = False
        self._listeners: tuple[Callable[[], object], ...] = ()

    @property
    def question(self) -> Asked | None:
        """The question that waits for an answer now."""
        return self._open

    def on_change(self, listener: Callable[[], object]) -> None:
        """Call back, from any thread, when another question is open or none."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def available(self) -> bool:
        """Whether there is still somebody at the prompt."""
        return not self._closed

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        """Show a question until it is answered, times out or is withdrawn."""
        asked = Asked(request)
        forget = ended.on_cancel(asked.done.set)
        try:
            self._show(asked)
            asked.done.wait()
        finally:
            forget()
            self._show(None)
        if asked.decision is None:
            raise ChannelFailed("the question was closed without an answer")
        return asked.decision

    def answer(self, asked: Asked, decision: Decision) -> bool:
        """Answer the question that was shown; False if it does not wait any more."""
        with self._lock:
            if self._open is not asked or asked.done.is_set():
                return False
            asked.decision = decision
            self._open = None
        asked.done.set()
        return True

    def close(self) -> None:
        """Leave every question unanswered, which denies it."""
        with self._lock:
            self._closed = True
            left, self._open = self._open, None
        if left is not None:
            left.done.set()

    def _show(self, asked: Asked | None) -> None:
        with self._lock:
            if self._closed and asked is not None:
                asked.done.set()
                asked = None
            self._open = asked
            listeners = self._listeners
        for listener in listeners:
            listener()
