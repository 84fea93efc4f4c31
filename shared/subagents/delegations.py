"""Delegations: the handles that are still open, and what each subagent has used so far."""

from __future__ import annotations

import threading
from functools import partial

from shared.subagents.handle import DelegationHandle
from shared.types import TokenUsage


class Delegations:
    """Counts every handle once, while it is open and after; one that has ended is not kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[DelegationHandle, None] = {}
        self._used: dict[str, TokenUsage] = {}

    def add(self, handle: DelegationHandle) -> None:
        """Follow a handle to its end."""
        with self._lock:
            self._open[handle] = None
        handle.on_complete(partial(self._end, handle))

    def open(self) -> list[DelegationHandle]:
        """Those that have no result yet, oldest first."""
        with self._lock:
            return [each for each in self._open if not each.is_complete]

    def usage(self) -> dict[str, TokenUsage]:
        """Tokens by the name of the subagent, those of open handles included."""
        with self._lock:
            found = dict(self._used)
            for each in self._open:
                found[each.subagent_name] = found.get(each.subagent_name, TokenUsage()) + each.usage
        return found

    def _end(self, handle: DelegationHandle) -> None:
        with self._lock:
            self._open.pop(handle, None)
            self._used[handle.subagent_name] = self._used.get(handle.subagent_name, TokenUsage()) + handle.usage
