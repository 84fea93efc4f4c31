"""Delegates: the engine of a runtime and its profiles, for everything that is not the subagent plugin itself."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.profile import SubagentProfile
from shared.errors import SubagentConfigError
from shared.on_demand import plugin_on_demand
from shared.runtime import JaatoRuntime
from shared.subagents.config import SubagentConfig
from shared.subagents.engine import Engine
from shared.subagents.plan import OWN_PLUGIN


@runtime_checkable
class Delegates(Protocol):
    """What the subagent plugin has to offer to others: they all share its engine, settings and profiles."""

    settings: SubagentConfig

    @property
    def engine(self) -> Engine: ...
    @property
    def catalogue(self) -> ProfileCatalogue: ...
    def initialize(self, config: dict[str, object] | None = None) -> None: ...
    def add_profile(self, profile: SubagentProfile) -> None: ...
    def remove_profile(self, name: str) -> bool: ...


def delegates_of(runtime: JaatoRuntime) -> Delegates:
    """The one of a runtime, made on first use."""
    plugin = plugin_on_demand(runtime, OWN_PLUGIN)
    if not isinstance(plugin, Delegates):
        raise SubagentConfigError(
            f"the plugin '{OWN_PLUGIN}' of this host is {type(plugin).__name__}, which has no engine to share: "
            f"derive it from SubagentPlugin"
        )
    return plugin


def spares_the_question(delegates: Delegates, profile: str) -> bool:
    """Whether a profile that somebody vouched for may be spawned without asking a person."""
    found = delegates.catalogue.find(profile)
    return found is not None and found.auto_approved and found.source.trusted
