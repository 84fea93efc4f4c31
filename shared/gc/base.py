"""What context collection is: its settings, its report, and the protocol of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from shared.types import Message

Summarizer = Callable[[str], str]


class GCTriggerReason(str, Enum):
    """Why a collection ran."""

    THRESHOLD = "threshold"
    TURN_LIMIT = "turn_limit"
    OVERFLOW = "overflow"
    MANUAL = "manual"


@dataclass(frozen=True)
class ContextUsage:
    """How full the context is: `total_tokens` of `context_limit`, in `turns` rounds."""

    total_tokens: int
    context_limit: int
    turns: int

    @property
    def percent_used(self) -> float:
        """Share of the limit that is used."""
        return 100.0 * self.total_tokens / self.context_limit if self.context_limit else 0.0


@dataclass(frozen=True)
class GCConfig:
    """Settings of context collection, as in a profile's `gc` object."""

    type: str = "truncate"
    threshold_percent: float = 80.0
    preserve_recent_turns: int = 5
    notify_on_gc: bool = True
    summarize_middle_turns: int | None = None
    max_turns: int | None = None
    plugin_config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GCResult:
    """What a collection did."""

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
        """A shorter, valid history."""
        ...
