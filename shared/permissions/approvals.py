"""ApprovalQueue: the questions of all agents, shown through one channel, each ended exactly once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.cancel import CancelToken
from shared.executors.threads import workers
from shared.permissions.call import Call
from shared.permissions.channel import Channel
from shared.permissions.display import one_line
from shared.permissions.request import Decision, PermissionRequest

log = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """How a question ended."""

    granted: bool
    method: str  # user_approved, user_denied, session_whitelist, timeout, channel_failed, cancelled, closed …
    reason: str


CLOSED = Outcome(False, "closed", "the approval queue was closed")


@dataclass(eq=False)
class Question:
    """A request that waits; the first outcome counts."""

    request: PermissionRequest
    call: Call
    done: threading.Event = field(default_factory=threading.Event)
    ended: CancelToken = field(default_factory=CancelToken)
    outcome: Outcome | None = None
    shown: bool = False


class ApprovalQueue:
    """Waiting questions, oldest first; a channel that shows one thing at a time is never given two."""

    def __init__(self, channel: Channel | None, decide: Callable[[Question, Decision], object]) -> None:
        self._channel = channel
        self._decide = decide
        self._lock = threading.Lock()
        self._waiting: dict[str, Question] = {}
        self._presenting = False
        self._closed = False

    @property
    def can_ask(self) -> bool:
        """Whether there is someone to ask."""
        return self._channel is not None and not self._closed and self._channel.available()

    def add(self, question: Question) -> bool:
        """Let a question wait; False if the queue is closed."""
        with self._lock:
            if self._closed:
                return False
            self._waiting[question.request.id] = question
            return True

    def find(self, request_id: str) -> Question | None:
        """The waiting question of that id."""
        with self._lock:
            return self._waiting.get(request_id)

    def waiting(self) -> list[Question]:
        """All questions that wait, oldest first."""
        with self._lock:
            return list(self._waiting.values())

    def end(self, question: Question, outcome: Outcome) -> bool:
        """Give a question its one outcome; False if it had one."""
        with self._lock:
            if question.outcome is not None:
                return False
            question.outcome = outcome
            self._waiting.pop(question.request.id, None)
        question.done.set()
        question.ended.cancel(outcome.reason)
        return True

    def show(self, question: Question) -> None:
        """Show a question on a thread of its own, because a channel may block for as long as it likes."""
        channel = self._channel
        if channel is None or question.outcome is not None:
            return
        if not channel.one_at_a_time:
            workers.submit(lambda: self._put(channel, question))
            return
        with self._lock:
            if self._presenting:
                return
            self._presenting = True
        workers.submit(lambda: self._show_in_turn(channel))

    def close(self) -> None:
        """End everything that waits as denied, and take nothing more."""
        with self._lock:
            self._closed = True
            left = list(self._waiting.values())
        for question in left:
            self.end(question, CLOSED)
        if self._channel is not None:
            self._channel.close()

    def _show_in_turn(self, channel: Channel) -> None:
        while True:
            with self._lock:
                question = next((each for each in self._waiting.values() if not each.shown), None)
                if question is None:
                    self._presenting = False
                    return
                question.shown = True
            self._put(channel, question)

    def _put(self, channel: Channel, question: Question) -> None:
        try:
            self._decide(question, channel.ask(question.request, question.ended))
        except BaseException as error:  # foreign code: whatever went wrong, the answer is no and the queue goes on
            if question.ended.is_cancelled:
                return
            log.warning("the %s channel failed", channel.name, exc_info=True)
            text = f"the {channel.name} channel failed: {one_line(str(error) or type(error).__name__)}"
            self.end(question, Outcome(False, "channel_failed", text))
