"""Order: a replay lets exchanges begin and end in the order in which they were recorded, as far as that is possible."""

from __future__ import annotations

import threading
import time

from shared.cancel import CancelToken
from shared.recording.exchange import Exchange


class Order:
    """Who may go on; given up once the replay differs from the recording, or nothing has moved for a while."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._changed = threading.Condition()
        self._done: set[int] = set()
        self._next = 0
        self._given_up = False
        self._moved_at = time.monotonic()

    def begun(self, exchange: Exchange) -> None:
        """An exchange has begun."""
        self._mark(exchange.started)

    def wait_for_end(self, exchange: Exchange, cancel: CancelToken) -> None:
        """Wait until everything that came before the end of this exchange has happened."""
        forget = cancel.on_cancel(self._wake)
        try:
            with self._changed:
                while not (self._given_up or cancel.is_cancelled or self._next >= exchange.ended):
                    left = self._moved_at + self._patience - time.monotonic()
                    if left <= 0:
                        self._given_up = True
                    else:
                        self._changed.wait(left)
        finally:
            forget()
        self._mark(exchange.ended)

    def give_up(self) -> None:
        """Let everybody go on."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def _mark(self, tick: int) -> None:
        with self._changed:
            self._done.add(tick)
            while self._next in self._done:
                self._next += 1
            self._moved_at = time.monotonic()
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
