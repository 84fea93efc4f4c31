"""Inbox: finished background runs, announced to their parent once, in one digest within a token budget."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from shared.mailbox import Told
from shared.subagents.run import Run
from shared.toolbox import clip
from shared.types import CHARS_PER_TOKEN

HEAD = "[Subagents that have finished since your last turn. get_subagent_result(agent_id) gives the whole result.]"
BRIEF = "Finished as well: "
WORTHWHILE = 120  # characters of a response below which none of it is shown
_ERROR_CHARS = 300
_MANY = 64  # runs that may wait before those the parent has read are let go


class Inbox:
    """One per parent; runs wait here until a turn of the parent takes them."""

    def __init__(self, *, tokens: Callable[[], int]) -> None:
        self._tokens = tokens
        self._lock = threading.Lock()
        self._waiting: deque[Run] = deque()
        self._full = _MANY

    def put(self, run: Run) -> None:
        """Announce a run at the parent's next model call, unless the parent reads its result before."""
        with self._lock:
            self._waiting.append(run)
            if len(self._waiting) > self._full:  # a parent that reads results by itself may never take the others
                self._waiting = deque(each for each in self._waiting if not each.told)
                self._full = max(_MANY, 2 * len(self._waiting))

    def take(self) -> list[str]:
        """One digest of all that wait, or nothing; each run is announced exactly once.

        Whoever finds no room in it, not even with a word, is announced at the call after that.
        """
        with self._lock:
            runs, self._waiting = list(self._waiting), deque()
        if not runs:
            return []
        fresh = [run for run in runs if not run.told]
        room = self._tokens() * CHARS_PER_TOKEN
        count = _announceable(fresh, room)
        with self._lock:
            self._waiting.extendleft(reversed(fresh[count:]))
        taken = [run for run in fresh[:count] if run.announce()]
        return [_told(_digest(taken, room), taken)] if taken else []


def _told(text: str, runs: Sequence[Run]) -> str:
    """The digest; where runs are stored, they count as told once the parent's stored history has it."""
    keys = [run.stored for run in runs if run.stored]
    return Told.of(text, keys) if keys else text


def _announceable(runs: Sequence[Run], room: int) -> int:
    """How many of these a digest can at least name; never none, or they would wait for ever."""
    left = room - len(HEAD) - len(BRIEF)
    for count, run in enumerate(runs):
        left -= len(_named(run)) + 2
        if left < 0:
            return max(1, count)
    return len(runs)


def _digest(runs: Sequence[Run], room: int) -> str:
    """As many entries with something of their responses as are worth it; the others by name."""
    left = room - len(HEAD)
    for shown in range(len(runs), -1, -1):
        heads = [_head(run) for run in runs[:shown]]
        rest = BRIEF + ", ".join(map(_named, runs[shown:])) if shown < len(runs) else ""
        spare = left - sum(len(head) + 3 for head in heads) - len(rest) - 2
        if spare >= WORTHWHILE * shown:
            texts = _shared_out([run.result.response if run.result is not None else "" for run in runs[:shown]], spare)
            entries = [f"{head}\n{text}".strip() for head, text in zip(heads, texts, strict=True)]
            return "\n\n".join([HEAD, *entries, *([rest] if rest else [])])
    return "\n\n".join([HEAD, BRIEF + ", ".join(map(_named, runs))])


def _shared_out(texts: Sequence[str], room: int) -> list[str]:
    """The texts clipped to fit together; what a short one leaves over goes to the longer ones."""
    kept = dict.fromkeys(range(len(texts)), "")
    for place, index in enumerate(sorted(kept, key=lambda index: len(texts[index]))):
        kept[index] = clip(texts[index], room // (len(texts) - place))
        room -= len(kept[index])
    return list(kept.values())


def _named(run: Run) -> str:
    return f"{run.agent.agent_id} ({run.status.value})"


def _head(run: Run) -> str:
    result = run.result
    reason = f" ({result.reason})" if result is not None and result.reason else ""
    error = f"\nerror: {clip(result.error, _ERROR_CHARS)}" if result is not None and result.error else ""
    name = f" '{run.agent.name}'" if run.agent.name != run.agent.agent_id else ""
    return f"{run.agent.agent_id}{name}: {run.status.value}{reason}{error}"
