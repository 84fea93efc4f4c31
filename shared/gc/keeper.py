"""ContextKeeper: the object by which a session keeps its history within the context."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shared.errors import CancelledException
from shared.gc.base import ContextUsage, GCConfig, GCPlugin, GCResult, GCTriggerReason, Summarizer, is_due
from shared.gc.check import faults
from shared.gc.fit import Fitted, fit
from shared.gc.gauge import Gauge
from shared.gc.truncate import TruncateGC
from shared.history import History
from shared.types import Message, Role

log = logging.getLogger(__name__)

_TARGET = 0.6  # share of the threshold that a collection aims at
_CEILING = 0.7  # share that task, pinned and recent rounds may take before they are shortened
_RETRY = 0.05  # share of the limit by which a history must grow before a vain collection is repeated


@dataclass(frozen=True)
class _Aim:
    """What a collection must reach, in estimated tokens of the history; None where the limit is unknown."""

    threshold: int | None
    target: int | None
    ceiling: int | None


class ContextKeeper:
    """Watches one session's history and collects when its strategy says so.

    It vouches for the outcome whatever the strategy does: a valid history, no longer than before, with
    the task, pinned messages and the last round in it, and below the threshold wherever that is possible.
    """

    def __init__(
        self,
        strategy: GCPlugin,
        config: GCConfig,
        context_limit: int,
        summarizer: Summarizer | None = None,
        *,
        overhead: int = 0,
    ) -> None:
        self._strategy = strategy
        self._config = config
        self._gauge = Gauge(context_limit)
        self._overhead = overhead
        self._vain: ContextUsage | None = None
        strategy.initialize({**config.plugin_config, "summarizer": summarizer})

    def observe(self, prompt_tokens: int, estimated: int) -> None:
        """Take the real size of a prompt whose estimate (history, system prompt, tools) was `estimated`."""
        self._gauge.observe(prompt_tokens, estimated)

    def usage(self, history: History, *, overhead: int | None = None) -> ContextUsage:
        """How full the context is; `overhead` is the estimate of system prompt and tools (None: as given before)."""
        if overhead is not None:
            self._overhead = overhead
        return self._gauge.usage(history, self._overhead)

    def tokens(self, history: History) -> int:
        """Tokens in the context now, with system prompt and tools."""
        return self._gauge.real(history.tokens + self._overhead)

    @property
    def context_limit(self) -> int:
        """Tokens that the model takes."""
        return self._gauge.limit

    def before_call(self, history: History, *, overhead: int | None = None) -> GCResult | None:
        """Collect if it is time; None, at constant cost, if it is not."""
        if not self._gauge.is_same(history):
            self._vain = None
        usage = self.usage(history, overhead=overhead)
        due, reason = self._due(usage)
        if not due or self._is_vain(usage):
            return None
        return self.collect(history, reason or GCTriggerReason.THRESHOLD)

    def collect(
        self, history: History, reason: GCTriggerReason = GCTriggerReason.MANUAL, *, overhead: int | None = None
    ) -> GCResult:
        """Collect now; the history changes only when all is done, so a cancelled collection leaves it whole."""
        self._overhead = self._overhead if overhead is None else overhead
        if reason is GCTriggerReason.OVERFLOW:
            self._gauge.overflowed(history.tokens + self._overhead)
        before = self.usage(history)
        messages = history.snapshot()
        aim = self._aim()
        fitted = self._fit(messages, self._preserved(reason), aim)
        fresh, result = self._run(fitted, aim, reason)
        if len(fresh) != len(messages) or any(new is not old for new, old in zip(fresh, messages, strict=True)):
            late = history.snapshot()[len(messages) :]  # what arrived while a summary was written
            history.replace([*fresh, *late])
        after = self.usage(history)
        self._vain = after if self._due(after)[0] else None
        return self._told(result, before, after, fitted)

    def close(self) -> None:
        """Let go of the strategy."""
        self._strategy.shutdown()

    def _due(self, usage: ContextUsage) -> tuple[bool, GCTriggerReason | None]:
        try:
            due, reason = self._strategy.should_collect(usage, self._config)
        except Exception:  # foreign code: a broken question must not end the session's turn
            log.warning("gc strategy '%s' cannot say whether to collect", self._strategy.name, exc_info=True)
            return is_due(usage, self._config)
        return bool(due), reason

    def _is_vain(self, usage: ContextUsage) -> bool:
        """Whether the last collection could not help and too little has changed since."""
        if self._vain is None:
            return False
        tokens = usage.total_tokens - self._vain.total_tokens
        turns = usage.turns - self._vain.turns
        return tokens < _RETRY * usage.context_limit and turns < max(1, (self._config.max_turns or 40) // 4)

    def _aim(self) -> _Aim:
        if not self._gauge.limit:
            return _Aim(None, None, None)
        limit = self._gauge.estimate(self._gauge.limit)
        room = int(limit * self._config.threshold_percent / 100) - self._overhead
        if self._overhead and room < limit * _RETRY:
            # System prompt and tools alone fill the threshold: no use in cutting the history to nothing.
            room = (limit - self._overhead) // 2
        room = max(1, room)
        return _Aim(room, int(room * _TARGET), int(room * _CEILING))

    def _preserved(self, reason: GCTriggerReason) -> int:
        keep = max(1, self._config.preserve_recent_turns)
        if reason is GCTriggerReason.TURN_LIMIT and self._config.max_turns is not None:
            return min(keep, max(1, self._config.max_turns - 1))
        return keep

    def _fit(self, messages: Sequence[Message], keep: int, aim: _Aim) -> Fitted:
        if aim.ceiling is None:
            return Fitted(list(messages), keep)
        return fit(messages, keep=keep, ceiling=aim.ceiling)

    def _run(self, fitted: Fitted, aim: _Aim, reason: GCTriggerReason) -> tuple[list[Message], GCResult]:
        """Let the strategy work; where it breaks a promise, truncate instead."""
        config = replace(self._config, preserve_recent_turns=fitted.keep)
        usage = self._usage_of(fitted.messages, aim)
        try:
            fresh, result = self._strategy.collect(list(fitted.messages), usage, config, reason)
            wrong = faults(fitted.messages, fresh) if isinstance(result, GCResult) else "it gave no GCResult"
        except CancelledException:
            raise
        except Exception as error:  # foreign code: the session must go on whatever it raises
            wrong = f"{type(error).__name__}: {error}"
        if not wrong and not _exceeds(fresh, aim):
            return fresh, result
        cut, instead = TruncateGC().collect(fitted.messages, usage, config, reason)
        if not wrong and _exceeds(cut, aim):
            return fresh, result  # truncating would not help either
        return cut, self._instead(instead, wrong or "it left too much")

    def _usage_of(self, messages: Sequence[Message], aim: _Aim) -> ContextUsage:
        tokens = sum(message.tokens for message in messages) + self._overhead
        turns = sum(message.role is Role.MODEL for message in messages)
        return ContextUsage(self._gauge.real(tokens), self._gauge.limit, turns, aim.target)

    def _instead(self, result: GCResult, why: str) -> GCResult:
        details = {**result.details, "fallback": "truncate", "strategy_error": why}
        told = f"{result.notification}; truncated because strategy '{self._strategy.name}' failed: {why}"
        return replace(result, plugin_name=self._strategy.name, notification=told, details=details)

    def _told(self, result: GCResult, before: ContextUsage, after: ContextUsage, fitted: Fitted) -> GCResult:
        """The strategy's report in the session's own figures, with what is still wrong."""
        details = {**result.details, "rounds_preserved": fitted.keep, "results_shortened": fitted.shrunk}
        told = f"{result.notification}; {before.total_tokens:,} → {after.total_tokens:,} tokens"
        error = None
        if after.percent_used > self._config.threshold_percent:
            error = (
                f"the context holds {after.total_tokens:,} tokens, more than {self._config.threshold_percent:g}% of "
                f"{after.context_limit:,}: the task, pinned messages, the last round, system prompt and tools leave "
                "nothing to remove; shorten them or use a model with a larger context"
            )
        freed = after.total_tokens < before.total_tokens
        return replace(
            result,
            success=freed or error is None,
            tokens_before=before.total_tokens,
            tokens_after=after.total_tokens,
            notification=told,
            details=details,
            error=error,
        )


def _exceeds(messages: Sequence[Message], aim: _Aim) -> bool:
    return aim.threshold is not None and sum(message.tokens for message in messages) > aim.threshold
