"""Gauge: how full a session's context is, at a cost that does not grow with the history."""

from __future__ import annotations

from collections.abc import Sequence

from shared.gc.base import ContextUsage
from shared.history import History
from shared.types import Message, Role

_LOWEST, _HIGHEST = 0.25, 8.0  # beyond this a reported figure is broken, not informative
_PRIOR = 50  # an estimate of 1/50 of the window weighs as much as the reported figure


class Gauge:
    """Counts rounds as they are appended, and corrects token estimates by what the provider reports."""

    def __init__(self, context_limit: int) -> None:
        self.limit = max(0, context_limit)
        self.scale = 1.0
        self._observed = False
        self._counted: tuple[Sequence[Message], int, int] = ((), 0, 0)  # messages, how many of them, turns in those

    def observe(self, prompt_tokens: int, estimated: int) -> None:
        """Learn that a prompt estimated at `estimated` tokens really had `prompt_tokens`.

        Short prompts say little, since fixed costs dominate them: they move the scale less.
        """
        if prompt_tokens <= 0 or estimated <= 0:
            return
        prior = self.limit / _PRIOR
        self.scale = min(_HIGHEST, max(_LOWEST, (prompt_tokens + prior) / (estimated + prior)))
        self._observed = True

    def overflowed(self, estimated: int) -> None:
        """Learn that a prompt estimated at `estimated` tokens was more than the model takes.

        Without any reported figure the estimate is the likelier culprit, else the limit is.
        """
        if not self._observed and estimated:
            self.scale = min(_HIGHEST, max(self.scale, self.limit / estimated))
        believed = max(1, int(self.scale * estimated))
        self.limit = min(self.limit or believed, believed)

    def usage(self, history: History, overhead: int) -> ContextUsage:
        """Tokens and turns now; `overhead` is the estimate of system prompt and tools."""
        return ContextUsage(self.real(history.tokens + overhead), self.limit, self._count(history))

    def real(self, estimated: int) -> int:
        """Real tokens of an estimate."""
        return round(self.scale * estimated)

    def estimate(self, real: float) -> int:
        """The estimate that stands for so many real tokens."""
        return int(real / self.scale)

    def is_same(self, history: History) -> bool:
        """Whether the history still is the sequence that was counted last, perhaps longer."""
        return history.messages is self._counted[0]

    def _count(self, history: History) -> int:
        """Rounds so far; only messages that are new since the last call are looked at.

        The state is read and written as one tuple, so that a view in another thread may ask as well.
        """
        messages = history.messages
        counted, done, turns = self._counted
        length = len(messages)
        if messages is not counted or length < done:
            done, turns = 0, 0
        for index in range(done, length):
            turns += messages[index].role is Role.MODEL
        self._counted = (messages, length, turns)
        return turns
