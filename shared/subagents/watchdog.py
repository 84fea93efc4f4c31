"""Watchdog: ends runs whose time is up, that do not move any more, or that ignore their cancel."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from functools import partial

from shared.executors.threads import workers
from shared.subagents.result import Status
from shared.subagents.run import Run

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.25  # how long a cancelled run may take to end by itself
WARNED_SHARE = 0.2  # of the idle time: how much longer a run may stand still after its warning
LOOK_SECONDS = 5.0  # the longest time between two looks


class Watchdog:
    """One pooled thread while there are runs to watch, none otherwise.

    It runs no foreign code itself: a cancel that hangs in somebody's callback delays nobody else's.
    """

    def __init__(self, abandon: Callable[[Run], object], is_waiting_for_others: Callable[[Run], bool]) -> None:
        self._abandon = abandon
        self._is_waiting = is_waiting_for_others
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._runs: dict[Run, None] = {}
        self._watching = False
        self._next_look = math.inf

    @property
    def watched(self) -> int:
        """How many runs are looked after."""
        return len(self._runs)

    @property
    def runs(self) -> list[Run]:
        """The runs that are looked after."""
        with self._lock:
            return list(self._runs)

    def watch(self, run: Run) -> None:
        """Look after a run until it has ended."""
        with self._lock:
            self._runs[run] = None
            idle, self._watching = not self._watching, True
        if not idle:
            self._look_by(run.deadline or math.inf)
            return
        try:
            workers.submit(self._look_on)
        except RuntimeError:  # no thread to be had: the next run tries again
            log.warning("no thread to watch over subagents with", exc_info=True)
            self._watching = False

    def begun(self, run: Run) -> None:
        """A run has begun: its time counts from now."""
        idle = run.agent.plan.profile.idle_timeout_seconds
        if run.deadline is not None or idle is not None:
            now = time.monotonic()
            self._look_by(min(run.deadline or math.inf, now + idle if idle is not None else math.inf))

    def cancelled(self, run: Run) -> None:
        """A run was cancelled: if it does not end in a moment, it is abandoned."""
        run.reap_at = time.monotonic() + GRACE_SECONDS
        self._look_by(run.reap_at)

    def forget(self, run: Run) -> None:
        """A run has ended."""
        with self._lock:
            self._runs.pop(run, None)

    def _look_by(self, when: float) -> None:
        if when < self._next_look:
            self._wake.set()

    def _look_on(self) -> None:
        while True:
            self._wake.clear()
            self._next_look = math.inf  # whoever comes during the look has it repeated
            with self._lock:
                runs = list(reversed(self._runs))  # children before parents, so that each gets its own cause
                if not runs:
                    self._watching = False
                    return
            now = time.monotonic()
            due = min(now + LOOK_SECONDS, *(self._looked(run, now) for run in runs))
            self._next_look = due
            del runs  # a watchdog that sleeps keeps nothing alive
            self._wake.wait(max(0.0, due - time.monotonic()))

    def _looked(self, run: Run, now: float) -> float:
        try:
            return self._look(run, now)
        except Exception:  # one run that cannot be judged must not leave all others unwatched
            log.exception("cannot watch over %s", run.agent.agent_id)
            return math.inf

    def _look(self, run: Run, now: float) -> float:
        """Do what is due for one run; returns when to look again."""
        if run.cancel.is_cancelled:
            return self._reap(run, now)
        if run.deadline is not None and now >= run.deadline:
            return self._stop(run, Status.TIMED_OUT, _late(run), now)
        idle = run.agent.plan.profile.idle_timeout_seconds
        due = run.deadline or math.inf
        if idle is None or run.status is not Status.RUNNING or self._is_waiting(run):
            return due
        patience = idle * (1 + WARNED_SHARE if run.warned else 1)
        still = now - run.touched
        if still < patience:
            return min(due, now + patience - still)
        if self._warn(run, idle):
            return min(due, now + idle * WARNED_SHARE)
        where = f"nothing moved for {still:.3g} s in phase {run.phase}: idle_timeout_seconds is {idle:g}"
        return self._stop(run, Status.STALLED, where, now)

    def _reap(self, run: Run, now: float) -> float:
        """Abandon a run whose cancel was some time ago, once."""
        if run.reap_at is None:  # whoever cancelled it has not come to tell
            run.reap_at = now + GRACE_SECONDS
        if now >= run.reap_at:
            run.reap_at = math.inf
            _aside(partial(self._abandon, run))
        return run.reap_at

    def _stop(self, run: Run, cause: Status, reason: str, now: float) -> float:
        run.blame(cause)  # at once: the parent's cancel, if that is due as well, must not come first
        run.reap_at = now + GRACE_SECONDS
        _aside(partial(run.cancel.cancel, reason))
        return run.reap_at

    @staticmethod
    def _warn(run: Run, idle: float) -> bool:
        """Warn a run once, if it will hear it: inside a model call it cannot."""
        if run.warned or run.phase == "model":
            return False
        run.warned = True
        run.note(f"[Nothing has moved for {idle:g} s. Finish now with what you have, or you will be stopped.]")
        return True


def _late(run: Run) -> str:
    seconds = run.agent.plan.profile.timeout_seconds
    own = seconds is not None and run.started is not None and run.deadline == run.started + seconds
    return f"its time was up: timeout_seconds is {seconds:g}" if own else "the time of the run that asked for it was up"


def _aside(work: Callable[[], object]) -> None:
    """Do it on another thread; here if there is none to be had."""
    try:
        workers.submit(work)
    except RuntimeError:
        work()
