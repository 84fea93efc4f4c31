"""Plan: everything a spawn decides before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.budget import Limits
from shared.definitions.profile import SubagentProfile
from shared.gc.base import GCConfig
from shared.providers.base import ModelSettings
from shared.skills.preload import Preloaded

OWN_PLUGIN = "subagent"
#: Every plugin by which an agent can spawn: given by profiles only, and only where the depth allows.
SPAWN_PLUGINS = (OWN_PLUGIN, "sessions", "spawn_agent")


@dataclass(frozen=True)
class Choice:
    """A value and the level it came from: profile, inline, config default or caller."""

    value: str
    level: str


@dataclass(frozen=True)
class Plan:
    """What a child will be."""

    profile: SubagentProfile
    label: str | None  # the profile's name as the caller gave it; None for a spawn without one
    plugins: tuple[str, ...]
    plugin_configs: Mapping[str, Mapping[str, Any]]
    bounded: bool  # never more than the caller has
    vouched: bool  # a trusted profile, spawned by one who may use all of it
    may_spawn: bool
    model: Choice
    provider: Choice
    settings: ModelSettings
    gc: GCConfig
    budget: Limits
    project: str | None = None  # of the provider's connection; None: what the host connected with
    location: str | None = None
    skills: Preloaded = Preloaded()
