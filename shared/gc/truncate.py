"""truncate: the oldest rounds go."""

from __future__ import annotations

from collections.abc import Sequence

from shared.gc.assemble import NOTE_TOKENS, assemble
from shared.gc.base import ContextUsage, GCConfig, GCResult, GCTriggerReason
from shared.gc.rounds import Layout
from shared.gc.strategy import Strategy
from shared.types import Message

_MAKES_ROOM = (GCTriggerReason.THRESHOLD, GCTriggerReason.OVERFLOW)


class TruncateGC(Strategy):
    """Drops the oldest rounds.

    When room is needed it keeps as many rounds as fit the target; when asked for by hand or by the
    turn limit it keeps exactly the recent ones.
    """

    name = "truncate"

    def collect(
        self, history: Sequence[Message], usage: ContextUsage, config: GCConfig, reason: GCTriggerReason
    ) -> tuple[list[Message], GCResult]:
        """Drop old rounds; costs no model call."""
        return self.cut(history, usage, config, reason)

    def cut(
        self,
        history: Sequence[Message],
        usage: ContextUsage,
        config: GCConfig,
        reason: GCTriggerReason,
        *,
        summary: str | None = None,
    ) -> tuple[list[Message], GCResult]:
        """Drop old rounds and put this summary of them in their place (None: the former one)."""
        layout = Layout(history)
        keep = config.preserve_recent_turns
        share = None if usage.target_tokens is None else usage.target_tokens // 4
        if reason in _MAKES_ROOM and usage.target_tokens is not None:
            told = layout.note.summary if summary is None else summary
            reserve = min(share or 0, NOTE_TOKENS + len(told) // 3)
            keep = max(keep, _fitting(layout, usage.target_tokens - reserve))
        draft = assemble(layout, keep, announce=config.notify_on_gc, summary=summary, note_tokens=share)
        return self.report(history, draft, reason)


def _fitting(layout: Layout, room: int) -> int:
    """How many of the last rounds fit into the room that task and pinned messages leave."""
    used = layout.fixed_tokens
    for count, part in enumerate(reversed(layout.rounds)):
        used += layout.tokens(layout.loose(part))
        if used > room:
            return count
    return len(layout.rounds)
