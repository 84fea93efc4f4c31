"""One rate gate per provider, credentials and model, so that a 429 slows everybody instead of starting a herd.

The gate learns how many calls the service takes at once: it starts modestly, doubles while calls
are accepted, drops to what is in flight when one is refused, and then probes upwards ever more
carefully. A refusal also pauses the gate: for as long as the service asked, or a growing while.
"""

from __future__ import annotations

import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from shared.cancel import CancelToken


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how patiently a failed model call is tried again."""

    attempts: int = 5  # for a broken connection or a failing service
    rate_limit_attempts: int = 12  # for a busy one: the gate spaces them out
    base_delay: float = 1.0
    max_delay: float = 60.0
    longest_wait: float = 900.0  # a service that asks for more is told no: the call fails at once

    def delay(self, attempt: int, retry_after: float | None = None) -> float:
        """Seconds until the next attempt, with jitter; `attempt` counts from 1."""
        if retry_after is not None:
            return retry_after + random.uniform(0, min(1.0, 0.1 * retry_after + 0.05))  # noqa: S311
        ceiling = min(self.max_delay, self.base_delay * 2.0 ** (attempt - 1))
        return ceiling * random.uniform(0.5, 1.0)  # noqa: S311


class _Waiter:
    __slots__ = ("granted", "latch")

    def __init__(self) -> None:
        self.granted = False
        self.latch = threading.Semaphore(0)


class Governor:
    """First come, first served; at most `limit` calls at once; nobody enters during a pause."""

    START = 16
    PROBE_AFTER = 4  # successes per place before one more place is tried; grows with each refusal, falls again after
    LOOK_AGAIN = 60.0  # the first in line looks at the clock at least this often, however long the pause

    def __init__(self, *, policy: RetryPolicy | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.policy = policy or RetryPolicy()
        self.refusals = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._waiters: deque[_Waiter] = deque()
        self._active = 0
        self._limit = self.START
        self._resume_at = 0.0
        self._slow_start = True
        self._successes = 0
        self._probe_after = self.PROBE_AFTER
        self._streak = 0  # pauses since the last accepted call

    @property
    def limit(self) -> int:
        """How many calls may run at once now."""
        return self._limit

    @property
    def waiting(self) -> int:
        """How many calls wait for a place."""
        return len(self._waiters)

    def enter(self, cancel: CancelToken) -> None:
        """Wait for a place; raises CancelledException as soon as `cancel` fires."""
        with self._lock:
            if not self._waiters and self._active < self._limit and self._clock() >= self._resume_at:
                self._active += 1
                return
            waiter = _Waiter()
            self._waiters.append(waiter)
        forget = cancel.on_cancel(waiter.latch.release)
        try:
            while not self._admitted(waiter):
                cancel.raise_if_cancelled()
                waiter.latch.acquire(timeout=self._patience(waiter))
        except BaseException:  # cancelled, or Ctrl+C in the waiting thread: the place must not be lost
            self._withdraw(waiter)
            raise
        finally:
            forget()

    def accepted(self) -> None:
        """The service took a call: the way up."""
        with self._lock:
            self._streak = 0
            self._successes += 1
            if self._waiters or self._active >= self._limit:  # places that nobody wants prove nothing
                self._widen()
            self._dispatch()

    def leave(self) -> None:
        """A call is over, for whatever reason but a refusal."""
        with self._lock:
            self._active -= 1
            self._dispatch()

    def refused(self, retry_after: float | None = None) -> float:
        """The service was too busy for a call, which is over: the way down. Returns the pause in seconds."""
        with self._lock:
            now = self._clock()
            self.refusals += 1
            self._active -= 1
            self._limit = max(1, min(self._limit, self._active))
            self._successes = 0
            if now >= self._resume_at:  # the first of a burst: the others find the pause under way
                self._streak += 1
                self._probe_after = min(64, self.PROBE_AFTER if self._slow_start else self._probe_after * 4)
            self._slow_start = False
            pause = self.policy.delay(max(1, self._streak), retry_after)
            if retry_after is not None or now >= self._resume_at:
                self._resume_at = max(self._resume_at, now + pause)
            self._dispatch()
            return max(0.0, self._resume_at - now)

    def _widen(self) -> None:
        if self._slow_start:
            self._limit += 1
        elif self._successes >= self._probe_after * self._limit:
            self._limit += 1
            self._successes = 0
            self._probe_after = max(self.PROBE_AFTER, self._probe_after // 2)

    def _admitted(self, waiter: _Waiter) -> bool:
        with self._lock:
            if not waiter.granted:
                self._dispatch(looking=waiter)
            return waiter.granted

    def _withdraw(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter.granted:
                self._active -= 1
            else:
                self._waiters.remove(waiter)
            self._dispatch()

    def _patience(self, waiter: _Waiter) -> float | None:
        """Only the first in line watches the clock; the others are woken."""
        with self._lock:
            first = bool(self._waiters) and self._waiters[0] is waiter
            pause = self._resume_at - self._clock()
            return min(pause, self.LOOK_AGAIN) if first and pause > 0 else None

    def _dispatch(self, *, looking: _Waiter | None = None) -> None:
        now = self._clock()
        while self._waiters and self._active < self._limit and now >= self._resume_at:
            waiter = self._waiters.popleft()
            waiter.granted = True
            self._active += 1
            waiter.latch.release()
        if self._waiters and now < self._resume_at and self._waiters[0] is not looking:
            self._waiters[0].latch.release()  # it is first now, or the pause changed: look at the clock again


_gates: weakref.WeakKeyDictionary[object, dict[tuple[str, RetryPolicy], Governor]] = weakref.WeakKeyDictionary()
_gates_lock = threading.Lock()


def gate_for(provider: object, model: str, policy: RetryPolicy) -> Governor:
    """The one gate of this process for a provider (that is: its credentials) and a model."""
    with _gates_lock:
        known = _gates.setdefault(provider, {})
        gate = known.get((model, policy))
        if gate is None:
            gate = known[(model, policy)] = Governor(policy=policy)
        return gate
