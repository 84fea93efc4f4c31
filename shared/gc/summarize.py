"""summarize: all but the recent rounds become a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from shared.gc.assemble import NOTE_TOKENS, assemble
from shared.gc.base import ContextUsage, GCConfig, GCResult, GCTriggerReason
from shared.gc.rounds import Layout, Round
from shared.gc.strategy import Check, Strategy
from shared.gc.summary import Summary, summarize
from shared.gc.truncate import TruncateGC
from shared.types import CHARS_PER_TOKEN, Message

_SUMMARY_TOKENS = 4_000


def _name(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "a model name"


def _count(value: Any) -> str | None:
    fine = isinstance(value, int) and not isinstance(value, bool) and value >= 50
    return None if fine else "a whole number of at least 50"


class SummarizeGC(Strategy):
    """Replaces all rounds before the recent ones by a summary; if that fails, truncates and says so.

    `plugin_config`: `model` that writes summaries (the session sees to it), `max_summary_tokens`.
    """

    name = "summarize"
    settings: ClassVar[Mapping[str, Check]] = {"model": _name, "max_summary_tokens": _count}

    def collect(
        self, history: Sequence[Message], usage: ContextUsage, config: GCConfig, reason: GCTriggerReason
    ) -> tuple[list[Message], GCResult]:
        """Summarise old rounds, in as many model calls as their length needs."""
        layout = Layout(history)
        old = layout.rounds[: max(0, len(layout.rounds) - config.preserve_recent_turns)]
        chosen = self.summarized(old, config)
        text = [history[index] for part in chosen for index in layout.loose(part)]
        share = _note_share(usage)
        summary = self._summary(layout, text, usage, share) if text else Summary(layout.note.summary)
        if summary.error is not None:
            return self._truncated(history, usage, config, reason, summary)
        keep, announce = config.preserve_recent_turns, config.notify_on_gc
        draft = assemble(layout, keep, announce=announce, summary=summary.text, note_tokens=share)
        count = len(chosen) if draft.removed else 0
        said = f"summarised: {count}" if count else ""
        return self.report(history, draft, reason, said=said, rounds_summarized=count)

    def summarized(self, old: Sequence[Round], config: GCConfig) -> Sequence[Round]:
        """Which of the old rounds the summary covers."""
        return old

    def _summary(self, layout: Layout, messages: list[Message], usage: ContextUsage, share: int) -> Summary:
        former = layout.note.summary
        if self.summarizer is None:
            return Summary(former, "there is no summarizer")
        first = min(layout.task, default=None)
        limit = min(share - NOTE_TOKENS, self.options.get("max_summary_tokens", _SUMMARY_TOKENS))
        if limit <= 0:
            return Summary(former, "the context window is too small for a summary")
        return summarize(
            messages,
            self.summarizer,
            former=former,
            task="" if first is None else (layout.messages[first].text or ""),
            window_chars=_window(layout, usage) * CHARS_PER_TOKEN // 2,
            summary_chars=limit * CHARS_PER_TOKEN,
        )

    def _truncated(
        self,
        history: Sequence[Message],
        usage: ContextUsage,
        config: GCConfig,
        reason: GCTriggerReason,
        summary: Summary,
    ) -> tuple[list[Message], GCResult]:
        messages, result = TruncateGC().cut(history, usage, config, reason, summary=summary.text)
        told = f"{result.notification}; not summarised: {summary.error}"
        details = {"rounds_summarized": 0, "fallback": "truncate", "summary_error": summary.error}
        return messages, replace(result, plugin_name=self.name, notification=told, details=details)


def _note_share(usage: ContextUsage) -> int:
    """Tokens the note with its summary may take."""
    return _SUMMARY_TOKENS + NOTE_TOKENS if usage.target_tokens is None else usage.target_tokens // 4


def _window(layout: Layout, usage: ContextUsage) -> int:
    """The model's window in estimated tokens; a session without a known limit gets a modest one."""
    if not usage.context_limit:
        return 8 * _SUMMARY_TOKENS
    estimated = sum(message.tokens for message in layout.messages)
    return usage.context_limit * estimated // max(1, usage.total_tokens)
