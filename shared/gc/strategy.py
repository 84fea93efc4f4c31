"""Strategy: what the built-in strategies share, and a base that third parties may use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from shared.errors import ConfigError, unknown_name
from shared.gc.assemble import Draft
from shared.gc.base import ContextUsage, GCConfig, GCResult, GCTriggerReason, Summarizer, is_due
from shared.types import Message

#: Checks one setting: None when it is fine, else what was expected.
Check = Callable[[Any], str | None]


class Strategy(ABC):
    """Takes its settings, says when it is time, and reports; `settings` names what `plugin_config` may hold."""

    name: str = ""
    settings: ClassVar[Mapping[str, Check]] = {}

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.summarizer: Summarizer | None = None

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take `plugin_config`; a key that this strategy does not know is an error."""
        given = dict(config or {})
        summarizer = given.pop("summarizer", None)
        if summarizer is not None and not callable(summarizer):
            raise ConfigError(f"gc '{self.name}': summarizer must be a function from text to summary")
        for key, value in given.items():
            if key not in self.settings:
                raise ConfigError(f"gc '{self.name}': {unknown_name('plugin_config key', key, self.settings)}")
            if (expected := self.settings[key](value)) is not None:
                raise ConfigError(f"gc '{self.name}': plugin_config.{key} must be {expected}, not {value!r}")
        self.options, self.summarizer = given, summarizer

    def shutdown(self) -> None:
        """Let go of the summarizer."""
        self.summarizer = None

    def should_collect(self, usage: ContextUsage, config: GCConfig) -> tuple[bool, GCTriggerReason | None]:
        """Whether the threshold or the number of turns is exceeded."""
        return is_due(usage, config)

    @abstractmethod
    def collect(
        self, history: Sequence[Message], usage: ContextUsage, config: GCConfig, reason: GCTriggerReason
    ) -> tuple[list[Message], GCResult]:
        """A shorter history."""

    def report(
        self, history: Sequence[Message], draft: Draft, reason: GCTriggerReason, *, said: str = "", **details: Any
    ) -> tuple[list[Message], GCResult]:
        """The answer of `collect` for what was drafted; `said` is added to the notification."""
        told = f"rounds removed from the context: {draft.removed}" if draft.removed else "nothing to remove"
        return draft.messages, GCResult(
            success=True,
            items_collected=draft.removed,
            tokens_before=sum(message.tokens for message in history),
            tokens_after=sum(message.tokens for message in draft.messages),
            plugin_name=self.name,
            trigger_reason=reason,
            notification=f"{told}; {said}" if said else told,
            details=details,
        )
