"""Watchdog: ends runs whose time is up, that do not move any more, or that ignore their cancel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from shared.executors.threads import workers
from shared.subagents.result import Status
from shared.subagents.run import Run

GRACE_SECONDS = 0.25  # how long a cancelled run may take to end by itself
WARNED_SHARE = 0.2  # of the idle time: how much longer a run may stand still after its warning
LOOK_SECONDS = 5.0  # the longest time between two looks


class Watchdog:
    """One pooled thread while there are runs to watch, none otherwise."""

    def __init__(self, abandon: Callable[[Run], None], is_waiting_for_others: Callable[[Run], bool]) -> None:
        self._abandon = abandon
        self._is_waiting = is_waiting_for_others
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._runs: dict[int, Run] = {}
        self._reap_at: dict[int, float] = {}
        self._watching = False

    def watch(self, run: Run) -> None:
        """Look after a run until it has ended."""
        with self._lock:
            self._runs[id(run)] = run
            if self._watching:
                self._wake.set()
                return
            self._watching = True
        workers.submit(self._look_on)

    def cancelled(self, run: Run) -> None:
        """A run was cancelled: if it does not end in a moment, it is abandoned."""
        with self._lock:
            self._reap_at[id(run)] = time.monotonic() + GRACE_SECONDS
            self._wake.set()

    def forget(self, run: Run) -> None:
        """A run has ended."""
        with self._lock:
            self._runs.pop(id(run), None)
            self._reap_at.pop(id(run), None)

    def _look_on(self) -> None:
        while True:
            self._wake.clear()
            with self._lock:
                runs = list(self._runs.values())
                if not runs:
                    self._watching = False
                    return
            now = time.monotonic()
            dues = [self._look(run, now) for run in runs]
            self._wake.wait(max(0.0, min(LOOK_SECONDS, *(due - time.monotonic() for due in dues))))

    @staticmethod
    def _warned(run: Run, idle: float) -> bool:
        """Warn a run once, if it will hear it: inside a model call it cannot."""
        if run.warned or run.phase == "model":
            return False
        run.warned = True
        run.agent.tell(f"[Nothing has moved for {idle:g} s. Finish now with what you have, or you will be stopped.]")
        return True

    def _look(self, run: Run, now: float) -> float:
        """Do what is due for one run; returns when to look again."""
        reap_at = self._reap_at.get(id(run))
        if reap_at is not None:
            if now < reap_at:
                return reap_at
            self._abandon(run)
            return now + LOOK_SECONDS
        dues = [now + LOOK_SECONDS]
        if run.deadline is not None:
            if now >= run.deadline:
                run.stop(Status.TIMED_OUT, "its time was up")
                return now
            dues.append(run.deadline)
        idle = run.agent.plan.profile.idle_timeout_seconds
        if idle is not None and run.status is Status.RUNNING and not self._is_waiting(run):
            due = run.touched + idle * (1 + WARNED_SHARE if run.warned else 1)
            if now >= due and not self._warned(run, idle):
                run.stop(Status.STALLED, f"nothing moved for {now - run.touched:.3g} s in phase {run.phase}")
                return now
            dues.append(max(due, now + 0.01))
        return min(dues)
