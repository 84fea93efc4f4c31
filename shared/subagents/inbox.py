"""Inbox: finished background runs, announced to their parent once, in one digest within a token budget."""

from __future__ import annotations

import threading
from collections import deque

from shared.subagents.run import Run
from shared.toolbox import clip
from shared.types import CHARS_PER_TOKEN

HEAD = "[Subagents that have finished since your last turn. Read more with get_subagent_result(agent_id, offset).]"


class Inbox:
    """One per parent; runs wait here until a turn of the parent takes them."""

    def __init__(self, *, tokens: int) -> None:
        self._tokens = tokens
        self._lock = threading.Lock()
        self._waiting: deque[Run] = deque()

    def put(self, run: Run) -> None:
        """Announce a run at the parent's next model call, unless the parent reads its result before."""
        with self._lock:
            self._waiting.append(run)

    def take(self) -> list[str]:
        """One digest of all that wait, or nothing; each run is taken exactly once."""
        with self._lock:
            runs, self._waiting = list(self._waiting), deque()
        fresh = [run for run in runs if run.take()]
        return [self._digest(fresh)] if fresh else []

    def _digest(self, runs: list[Run]) -> str:
        share = self._tokens * CHARS_PER_TOKEN // len(runs)
        return "\n\n".join([HEAD, *(_entry(run, share) for run in runs)])


def _entry(run: Run, room: int) -> str:
    result = run.result
    assert result is not None
    reason = f" ({result.reason})" if result.reason else ""
    error = f"\nerror: {clip(result.error, 300)}" if result.error else ""
    head = f"{result.agent_id} ({run.agent.name}): {result.status.value}{reason}{error}"
    return f"{head}\n{clip(result.response, max(0, room - len(head)))}" if room > len(head) + 80 else head
