"""What context collection is: its settings, its report, and the protocol of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from shared.types import Message

Summarizer = Callable[[str], str]


class GCTriggerReason(StrEnum):
    """Why a collection ran."""

    THRESHOLD = "threshold"
    TURN_LIMIT = "turn_limit"
    OVERFLOW = "overflow"
    MANUAL = "manual"


@dataclass(frozen=True)
class ContextUsage:
    """How full the context is: `total_tokens` of `context_limit`, in `turns` rounds.

    `target_tokens` is what a collection should leave of the history, counted as `Message.tokens`
    counts; None when there is no such aim.
    """

    total_tokens: int
    context_limit: int
    turns: int
    target_tokens: int | None = None

    @property
    def percent_used(self) -> float:
        """Share of the limit that is used."""
        return 100.0 * self.total_tokens / self.context_limit if self.context_limit else 0.0


@dataclass(frozen=True)
class GCConfig:
    """Settings of context collection, as in a profile's `gc` object; a turn is a round (see `rounds`)."""

    type: str = "truncate"
    threshold_percent: float = 80.0
    preserve_recent_turns: int = 5
    notify_on_gc: bool = True
    summarize_middle_turns: int | None = None
    max_turns: int | None = None
    plugin_config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GCResult:
    """What a collection did; `items_collected` counts rounds, `error` says what stays wrong."""

    success: bool
    items_collected: int
    tokens_before: int
    tokens_after: int
    plugin_name: str
    trigger_reason: GCTriggerReason
    notification: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None

    @property
    def tokens_freed(self) -> int:
        """Estimated tokens that became free."""
        return self.tokens_before - self.tokens_after


@runtime_checkable
class GCPlugin(Protocol):
    """A strategy. Third parties publish one under the entry-point group `jaato.gc_plugins`."""

    @property
    def name(self) -> str: ...
    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take `plugin_config`; under the key `summarizer` there is a callable text → summary."""
        ...

    def shutdown(self) -> None: ...
    def should_collect(self, usage: ContextUsage, config: GCConfig) -> tuple[bool, GCTriggerReason | None]:
        """Whether it is time, and why."""
        ...

    def collect(
        self, history: Sequence[Message], usage: ContextUsage, config: GCConfig, reason: GCTriggerReason
    ) -> tuple[list[Message], GCResult]:
        """A shorter, valid history that keeps the task, pinned messages and the recent rounds."""
        ...


def is_due(usage: ContextUsage, config: GCConfig) -> tuple[bool, GCTriggerReason | None]:
    """The usual answer of `should_collect`: by tokens first, then by the number of turns."""
    if usage.percent_used > config.threshold_percent:
        return True, GCTriggerReason.THRESHOLD
    if config.max_turns is not None and usage.turns > config.max_turns:
        return True, GCTriggerReason.TURN_LIMIT
    return False, None
