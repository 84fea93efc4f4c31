"""SessionSpec: what makes a session the session it is."""

from __future__ import annotations

from dataclasses import dataclass

from shared.gc.base import GCConfig
from shared.providers.base import ModelSettings
from shared.tools import Tool


@dataclass(frozen=True)
class SessionSpec:
    """What makes a session the session it is; fixed when it is created."""

    agent_id: str = "main"
    agent_name: str = "main"
    agent_path: str = "main"
    profile: str | None = None
    system_instructions: str | None = None
    settings: ModelSettings = ModelSettings()
    gc: GCConfig = GCConfig()
    max_turns: int | None = None
    tool_names: frozenset[str] | None = None  # None: all tools of the view
    extra_tools: tuple[Tool, ...] = ()  # besides those of the view
    project: str | None = None  # of the provider's connection; None: what the runtime connected with
    location: str | None = None
