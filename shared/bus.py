"""EventBus: one ordered stream of events; whoever listens has a queue of its own, so that none can hurt a run."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from shared.events import Event
from shared.executors.threads import workers

log = logging.getLogger(__name__)

Listener = Callable[[Event], object]


class Subscription:
    """One subscriber with a queue of its own, so that a slow or broken one hurts nobody.

    Events are delivered in order on a pooled thread; nothing waits for it. When the queue is
    full the oldest events are dropped and counted in `dropped`.
    """

    CAPACITY = 20_000
    LINGER = 0.02  # the delivering thread waits this long for more before it goes idle

    def __init__(
        self,
        listener: Listener,
        interest: frozenset[type[Event]] | None,
        *,
        awaited: bool,
        on_drained: Callable[[], object] | None = None,
    ) -> None:
        self.listener = listener
        self.on_drained = on_drained
        self.awaited = awaited
        self.interest = interest
        self.dropped = 0
        self._queue: deque[Event] = deque()
        self._lock = threading.Lock()
        self._delivering = False
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._trusted = True  # whether flush() waits for it

    def put(self, event: Event) -> None:
        """Queue an event; never blocks."""
        queue = self._queue
        if len(queue) >= self.CAPACITY:
            self._drop_oldest()
        queue.append(event)
        if self._delivering:
            return
        with self._lock:
            if self._delivering:
                return
            self._delivering = True
            self._idle.clear()
        try:
            workers.submit(self._deliver)
        except RuntimeError:  # no thread to be had, as at the end of the interpreter: the next event tries again
            log.warning("no thread to deliver events with", exc_info=True)
            self._delivering = False
            self._idle.set()

    def _drop_oldest(self) -> None:
        with self._lock:
            try:
                self._queue.popleft()
            except IndexError:  # all of it was delivered in the meantime
                return
            self.dropped += 1

    def flush(self, timeout: float) -> bool:
        """Wait until everything queued was delivered; one that once was too slow is not waited for again."""
        if not self._queue and not self._delivering:
            return True
        if not self._trusted and not self._idle.is_set():
            return False
        self._wake.set()
        self._trusted = self._idle.wait(timeout)
        return self._trusted

    def _deliver(self) -> None:
        while True:
            while self._queue:
                try:
                    event = self._queue.popleft()
                except IndexError:  # dropped in the meantime
                    break
                self._hand_out(event)
            if self.on_drained is not None:
                self._tell_drained(self.on_drained)
            if (self._wake.wait(self.LINGER) or not self._queue) and self._stop():
                return

    def _stop(self) -> bool:
        """Stop delivering, unless there is more; `put` looks at the flag after it has queued an event."""
        self._wake.clear()
        with self._lock:
            self._delivering = False
            if self._queue:  # so the queue is looked at after the flag was lowered, and no event is overlooked
                self._delivering = True
                return False
            self._idle.set()
            return True

    def _tell_drained(self, on_drained: Callable[[], object]) -> None:
        try:
            on_drained()
        except BaseException:  # as below: foreign code
            log.exception("a subscriber failed at the end of a batch")

    def _hand_out(self, event: Event) -> None:
        try:
            self.listener(event)
        except BaseException:  # foreign code: a broken subscriber never hurts a run, nor ends its own stream
            log.exception("a subscriber failed on %s", type(event).__name__)


class EventBus:
    """Hands events to subscribers; with none interested, an event costs one set look-up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: tuple[Subscription, ...] = ()
        self._wanted: frozenset[type[Event]] = frozenset()
        self._all_wanted = False

    def subscribe(
        self,
        listener: Listener,
        *,
        interest: frozenset[type[Event]] | None = None,
        awaited: bool = True,
        on_drained: Callable[[], object] | None = None,
    ) -> Callable[[], None]:
        """Deliver events (all, or those of the given types) to a callable; returns the way out.

        A turn that ends waits a moment for subscribers to have seen it, unless `awaited` is False.
        `on_drained` is called whenever all that waited has been delivered.
        """
        subscription = Subscription(listener, interest, awaited=awaited, on_drained=on_drained)
        with self._lock:
            self._subscriptions = (*self._subscriptions, subscription)
            self._count()
        return lambda: self._drop(subscription)

    def wants(self, kind: type[Event]) -> bool:
        """Whether anybody listens to this type of event."""
        return kind in self._wanted or self._all_wanted

    def emit(self, event: Event) -> None:
        """Queue an event for all who want it; never blocks, never raises."""
        kind = type(event)
        if kind not in self._wanted and not self._all_wanted:
            return
        for subscription in self._subscriptions:
            if subscription.interest is None or kind in subscription.interest:
                subscription.put(event)

    def flush(self, timeout: float = 1.0, *, everyone: bool = False) -> bool:
        """Wait until awaited subscribers (or all) have seen what was emitted; False if one is too slow."""
        waited = [each.flush(timeout) for each in self._subscriptions if each.awaited or everyone]
        return all(waited)

    def _drop(self, subscription: Subscription) -> None:
        with self._lock:
            self._subscriptions = tuple(s for s in self._subscriptions if s is not subscription)
            self._count()

    def _count(self) -> None:
        interests = [subscription.interest for subscription in self._subscriptions]
        self._wanted = frozenset().union(*(interest for interest in interests if interest is not None))
        self._all_wanted = None in interests
