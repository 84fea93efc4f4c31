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

    __slots__ = ("_again", "_waits", "held", "left", "parent", "start")

    def __init__(self, parent: str, start: Callable[[], object]) -> None:
        self.parent = parent
        self.start = start
        self.held = False
        self.left = False  # for good: it gets no slot any more
        self._waits = 0  # how many calls of the run wait for others at the moment
        self._again: Latch | None = None  # opened when the run has a slot again

    @property
    def is_resuming(self) -> bool:
        """Whether the run has waited for others and now waits for a slot to go on."""
        return self._again is not None


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

    @property
    def waiting(self) -> int:
        """How many runs wait for a slot, to begin or to go on."""
        with self._lock:
            return sum(map(len, self._queues.values())) + len(self._resuming)

    def resize(self, limit: int) -> None:
        """Let more or fewer work at once; nobody who works is stopped."""
        with self._lock:
            self.limit = limit
        self._dispatch()

    def enter(self, ticket: Ticket) -> None:
        """Queue up; `ticket.start` runs in this thread or in that of whoever frees a slot."""
        with self._lock:
            queue = self._queues.get(ticket.parent)
            if queue is None:
                queue = self._queues[ticket.parent] = deque()
                self._parents.append(ticket.parent)
            queue.append(ticket)
        self._dispatch()

    def withdraw(self, ticket: Ticket) -> bool:
        """Leave the queue; False if the ticket has a slot or had one."""
        with self._lock:
            return self._unqueue(ticket)

    def position(self, ticket: Ticket) -> int | None:
        """Place in line among the queued of the same parent, from 1; None if it does not queue."""
        with self._lock:
            queue = self._queues.get(ticket.parent, ())
            return next((place for place, each in enumerate(queue, 1) if each is ticket), None)

    def leave(self, ticket: Ticket) -> None:
        """Give the slot or the place in line back, for good; a second time changes nothing."""
        if self.hand_back(ticket):
            self._dispatch()

    def hand_back(self, ticket: Ticket) -> bool:
        """Like `leave`, but lets nobody move up: for a `start` that failed, inside a hand-out. True if it held one."""
        with self._lock:
            ticket.left = True
            self._unqueue(ticket)
            self._unresume(ticket)
            held, ticket.held = ticket.held, False
            self._used -= held
            return held

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
            ticket._waits += 1
            # Another call of this run may be in line to go on: granted now, its slot would be held by a run that waits.
            overtaken = self._unresume(ticket)
            held, ticket.held = ticket.held, False
            self._used -= held
        if overtaken is not None:
            overtaken.open()
        if held:
            self._dispatch()

    def _resume(self, ticket: Ticket, cancel: CancelToken) -> None:
        """Take a slot again; a cancelled run goes on without one, for it is about to end."""
        with self._lock:
            ticket._waits -= 1
            if ticket._waits or ticket.held or ticket.left or cancel.is_cancelled:
                return
            again = ticket._again = Latch()
            self._resuming.append(ticket)
        self._dispatch()
        if not again.wait(cancel=cancel):
            with self._lock:
                self._unresume(ticket, again)

    def _dispatch(self) -> None:
        """Hand out free slots; callbacks run outside the lock."""
        while True:
            again: Latch | None = None
            with self._lock:
                if self._used >= self.limit:
                    return
                if self._resuming:
                    ticket = self._resuming.popleft()
                    again, ticket._again = ticket._again, None
                elif self._parents:
                    ticket = self._next()
                else:
                    return
                ticket.held = True
                self._used += 1
            if again is not None:
                again.open()
            else:
                ticket.start()

    def _next(self) -> Ticket:
        parent = self._parents[0]
        self._parents.rotate(-1)
        ticket = self._queues[parent].popleft()
        self._tidy(parent)
        return ticket

    def _unqueue(self, ticket: Ticket) -> bool:
        queue = self._queues.get(ticket.parent)
        if queue is None or ticket not in queue:
            return False
        queue.remove(ticket)
        self._tidy(ticket.parent)
        return True

    def _unresume(self, ticket: Ticket, again: Latch | None = None) -> Latch | None:
        """Take a ticket out of the line of those that go on; with `again`, only if it still waits for that."""
        latch = ticket._again
        if latch is None or (again is not None and latch is not again):
            return None
        ticket._again = None
        self._resuming.remove(ticket)
        return latch

    def _tidy(self, parent: str) -> None:
        if not self._queues[parent]:
            del self._queues[parent]
            self._parents.remove(parent)
