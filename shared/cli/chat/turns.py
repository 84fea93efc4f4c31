"""Turns: one turn of the conversation at a time, in a thread of its own; what is typed meanwhile joins in."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from shared.client import JaatoClient
from shared.errors import JaatoError
from shared.executors.threads import workers

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TurnEnd:
    """How a turn ended: well, cut off for a reason (`cancelled`, `max_turns`, …), or with an error."""

    reason: str | None = None
    error: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the answer is all there."""
        return self.reason is None and self.error is None


def take_turn(client: JaatoClient, message: str, on_output: Callable[[str, str, str], None] | None = None) -> TurnEnd:
    """Send a message and wait for the end of the turn, whatever it is."""
    try:
        client.send_message(message, on_output)
    except JaatoError as error:
        return TurnEnd(error=str(error))
    except Exception as error:  # a bug in a plugin or provider ends the turn, not the conversation
        log.exception("a turn failed")
        return TurnEnd(error=f"{type(error).__name__}: {error}")
    outcome = client.get_session().last_outcome
    return TurnEnd(outcome.reason if outcome is not None else None)


class Turns:
    """The foreground of the conversation."""

    def __init__(
        self, client: JaatoClient, *, on_end: Callable[[TurnEnd], object], on_idle: Callable[[], object]
    ) -> None:
        self._client = client
        self._on_end, self._on_idle = on_end, on_idle
        self._lock = threading.Lock()
        self._busy = False
        self._halted = False  # stopped before the session knew of the turn
        self._waiting: list[str] = []
        self.begun = 0  # how many turns there were
        client.get_session().set_mid_turn_prompt_callback(self._take_waiting)

    @property
    def is_busy(self) -> bool:
        """Whether a turn is under way."""
        return self._busy

    def say(self, message: str) -> bool:
        """Begin a turn; False if one is under way, which reads the message before its next step."""
        with self._lock:
            if self._busy:
                self._waiting.append(message)
                return False
            self._busy, self._halted = True, False
            self.begun += 1
        workers.submit(partial(self._work, message))
        return True

    def stop(self) -> bool:
        """Stop the turn under way; what runs in the background goes on."""
        if not self._busy:
            return False
        if not self._client.stop():
            self._halted = True
        return True

    def _work(self, message: str) -> None:
        """One turn, and another for what nobody has read when it ends."""
        following: str | None = message
        while following is not None:
            end = take_turn(self._client, following)
            self._on_end(end)
            with self._lock:
                following = self._taken()
                self._busy = following is not None
                self.begun += self._busy
        self._on_idle()

    def _take_waiting(self) -> str | None:
        """Asked by the session before each model call."""
        if self._halted:
            self._halted = False
            self._client.stop()
            return None
        with self._lock:
            return self._taken()

    def _taken(self) -> str | None:
        taken, self._waiting = self._waiting, []
        return "\n\n".join(taken) or None
