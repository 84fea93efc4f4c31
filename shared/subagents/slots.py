"""Slots: how many runs work at once. Who waits for its own child holds none, so no depth can deadlock."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shared.cancel import CancelToken
from shared.latch import Latch


class Ticket:
    """A place in the queue of one parent, then a slot; `start` is called when the slot is there."""

    __slots__ = ("_granted", "_paused", "held", "parent", "start")

    def __init__(self, parent: str, start: Callable[[], None]) -> None:
        self.parent = parent
        self.start = start
        self.held = False
        self._paused = 0
        self._granted = Latch()


class Slots:
    """First come, first served for each parent, and parents in turn; runs that resume go first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._used = 0
        self._queues: dict[str, deque[Ticket]] = {}
        self._parents: deque[str] = deque()
        self._resuming: deque[Ticket] = deque()

    @property
    def used(self) -> int:
        """How many slots are taken."""
        return self._used

    def enter(self, ticket: Ticket) -> None:
        """Queue up; `ticket.start` runs in this thread or in that of whoever frees a slot."""
        with self._lock:
            if ticket.parent not in self._queues:
                self._queues[ticket.parent] = deque()
                self._parents.append(ticket.parent)
            self._queues[ticket.parent].append(ticket)
        self._dispatch()

    def withdraw(self, ticket: Ticket) -> bool:
        """Leave the queue; False if the ticket has a slot or had one."""
        with self._lock:
            queue = self._queues.get(ticket.parent)
            if queue is None or ticket not in queue:
                return False
            queue.remove(ticket)
            self._tidy(ticket.parent)
            return True

    def position(self, ticket: Ticket) -> int | None:
        """Place in line among the queued of the same parent, from 1; None if it does not queue."""
        with self._lock:
            queue = self._queues.get(ticket.parent, ())
            return next((place for place, each in enumerate(queue, 1) if each is ticket), None)

    def leave(self, ticket: Ticket) -> None:
        """Give the slot back, whatever happened; a second time changes nothing."""
        with self._lock:
            ticket.start = _nothing
            if not ticket.held:
                return
            ticket.held = False
            self._used -= 1
        self._dispatch()

    @contextmanager
    def without(self, ticket: Ticket, cancel: CancelToken) -> Iterator[None]:
        """Do without the slot while waiting for another run; several waits of one run count as one."""
        self._pause(ticket)
        try:
            yield
        finally:
            self._resume(ticket, cancel)

    def _pause(self, ticket: Ticket) -> None:
        with self._lock:
            ticket._paused += 1
            if ticket._paused > 1 or not ticket.held:
                return
            ticket.held = False
            self._used -= 1
        self._dispatch()

    def _resume(self, ticket: Ticket, cancel: CancelToken) -> None:
        """Take a slot again; a cancelled run goes on without one, for it is about to end."""
        with self._lock:
            ticket._paused -= 1
            if ticket._paused or ticket.held or cancel.is_cancelled or ticket.start is _nothing:
                return
            ticket._granted = Latch()
            self._resuming.append(ticket)
        self._dispatch()
        ticket._granted.wait(cancel=cancel)
        with self._lock:
            if not ticket.held and ticket in self._resuming:
                self._resuming.remove(ticket)

    def _dispatch(self) -> None:
        """Hand out free slots; callbacks run outside the lock."""
        while True:
            with self._lock:
                if self._used >= self.limit:
                    return
                resumed = bool(self._resuming)
                ticket = self._resuming.popleft() if resumed else self._next()
                if ticket is None:
                    return
                ticket.held = True
                self._used += 1
                start = ticket.start
            if resumed:
                ticket._granted.open()
            else:
                start()

    def _next(self) -> Ticket | None:
        if not self._parents:
            return None
        parent = self._parents[0]
        self._parents.rotate(-1)
        ticket = self._queues[parent].popleft()
        self._tidy(parent)
        return ticket

    def _tidy(self, parent: str) -> None:
        if not self._queues[parent]:
            del self._queues[parent]
            self._parents.remove(parent)


def _nothing() -> None:
    return None
