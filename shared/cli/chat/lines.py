"""Lines: what was typed takes effect in the order it was typed, without holding up the terminal."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from shared.executors.threads import workers

log = logging.getLogger(__name__)

Work = Callable[[], object]


class Lines:
    """One line at a time in a thread of its own; the next begins when the one above it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Work] = deque()
        self._under_way: object | None = None  # stands for the thread that works through the lines

    @property
    def is_busy(self) -> bool:
        """Whether a line is under way."""
        return self._under_way is not None

    def submit(self, work: Work) -> None:
        """Do what a line says, after all that was typed before it."""
        with self._lock:
            self._waiting.append(work)
            if self._under_way is None:
                self._begin()

    def release(self) -> bool:
        """Let those that wait go on beside the one under way; False if none waits."""
        with self._lock:
            if not self._waiting:
                return False
            self._begin()
            return True

    def _begin(self) -> None:
        former, self._under_way = self._under_way, object()
        try:
            workers.submit(partial(self._work, self._under_way))
        except BaseException:  # no thread to be had: the next line tries again
            self._under_way = former
            raise

    def _work(self, mine: object) -> None:
        while (work := self._next(mine)) is not None:
            try:
                work()
            except BaseException:  # foreign code may even call sys.exit: the lines below it are still taken
                log.exception("a line could not be worked through")

    def _next(self, mine: object) -> Work | None:
        with self._lock:
            if self._under_way is not mine:  # released: another thread goes on
                return None
            if self._waiting:
                return self._waiting.popleft()
            self._under_way = None
            return None
