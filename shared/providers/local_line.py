"""Line: one at a time, first come first served; whoever waits can be cancelled."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from shared.cancel import CancelToken
from shared.latch import Latch


class Line:
    """Who is first in line has the thing; leaving it makes place for the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: deque[Latch] = deque()
        self._holder: int | None = None  # the thread whose turn it is

    @property
    def is_held_here(self) -> bool:
        """Whether this very thread has its turn: it would wait for itself."""
        return self._holder == threading.get_ident()

    def __len__(self) -> int:
        return len(self._line)

    @contextmanager
    def place(self, cancel: CancelToken) -> Iterator[None]:
        """Wait for one's turn and hold it; raises CancelledException when cancelled while waiting."""
        turn = Latch()
        with self._lock:
            self._line.append(turn)
            first = len(self._line) == 1
        if first:
            turn.open()
        try:
            turn.wait(cancel=cancel)
            cancel.raise_if_cancelled()
            self._holder = threading.get_ident()
            yield
        finally:
            self._leave(turn)

    def _leave(self, turn: Latch) -> None:
        with self._lock:
            was_first = self._line[0] is turn
            self._holder = None if was_first else self._holder
            self._line.remove(turn)
            following = self._line[0] if was_first and self._line else None
        if following is not None:
            following.open()
