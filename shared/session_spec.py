"""SessionSpec: what makes a session the session it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.gc.base import GCConfig
from shared.gc.loader import gc_config_from
from shared.providers.base import ModelSettings
from shared.tools import Tool

if TYPE_CHECKING:
    from shared.settings import Settings


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

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        system_instructions: str | None = None,
        model: ModelSettings | None = None,
        gc: GCConfig | Mapping[str, Any] | str | None = None,
        max_turns: int | None = None,
    ) -> SessionSpec:
        """The main session's, as code says, and as the settings say where code says nothing."""
        gc = gc if gc is not None else settings.get("gc")
        return cls(
            system_instructions=system_instructions or settings.get("system_instructions"),
            settings=model or ModelSettings(**settings.model_options),
            gc=gc if isinstance(gc, GCConfig) else gc_config_from(gc),
            max_turns=max_turns,
        )
