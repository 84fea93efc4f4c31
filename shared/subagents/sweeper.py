"""Sweeper: agents that have rested for a while leave memory; the store has them, and they come back when asked for."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque

from shared.executors.threads import workers
from shared.subagents.agent import Subagent
from shared.subagents.tree import Tree

LEAST_SECONDS = 0.05
_MANY = 256  # that may rest before those that are gone are forgotten
_Entry = tuple[float, "weakref.ref[Subagent]", "weakref.ref[Tree]"]


class Sweeper:
    """One pooled thread while there are agents that rest, none otherwise; it keeps nothing alive."""

    def __init__(self, ttl_seconds: float) -> None:
        self.ttl_seconds = ttl_seconds
        self._lock = threading.Lock()
        self._resting: deque[_Entry] = deque()
        self._sweeping = False
        self._full = _MANY

    def watch(self, tree: Tree, agent: Subagent) -> None:
        """An agent has begun to rest."""
        self._resting.append((time.monotonic() + self.ttl_seconds, weakref.ref(agent), weakref.ref(tree)))
        if len(self._resting) > self._full:
            self._tidy()
        if self._sweeping:
            return
        with self._lock:
            if self._sweeping:
                return
            self._sweeping = True
        try:
            workers.submit(self._sweep)
        except RuntimeError:  # no thread to be had: the next agent tries again
            self._sweeping = False

    def _tidy(self) -> None:
        """Forget those that are gone before their time, as closed ones are."""
        with self._lock:
            for _ in range(len(self._resting)):
                entry = self._resting.popleft()
                if entry[1]() is not None:
                    self._resting.append(entry)
            self._full = max(_MANY, 2 * len(self._resting))

    def _sweep(self) -> None:
        while True:
            with self._lock:
                if not self._resting and self._stop():
                    return
                due, agent, tree = self._resting[0]
            left = due - time.monotonic()
            if left > 0 and agent() is not None:
                time.sleep(max(LEAST_SECONDS, min(left, 5.0)))
                continue
            with self._lock:
                if not self._resting or self._resting[0][1] is not agent:
                    continue
                self._resting.popleft()
            _let_go(agent(), tree(), self)

    def _stop(self) -> bool:
        """Stop sweeping, under the lock, unless there is more; `watch` looks at the flag after adding an agent."""
        self._sweeping = False
        if self._resting:  # looked at after the flag was lowered, so that no agent is overlooked
            self._sweeping = True
        return not self._sweeping


def _let_go(agent: Subagent | None, tree: Tree | None, sweeper: Sweeper) -> None:
    if agent is None or tree is None or agent.is_live:
        return
    if agent.last_activity > time.time() - 0.9 * sweeper.ttl_seconds:
        return  # it has worked since, and rests again: another entry stands for that
    session = agent.session
    if tree.rest(agent):
        if session is not None:
            session.close()
    else:
        sweeper.watch(tree, agent)  # somebody below it, or its announcement, is still there: look again
