"""ServerSettings: what every conversation of one MCP server is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

USUAL_PLUGINS = ("cli", "file_edit", "todo")
HOW_TO_ALLOW = "start `jaato mcp` with --permissions allow, or allow it in .jaato/permissions.json of the workspace"


@dataclass(frozen=True)
class ServerSettings:
    """Where subagents work, on which model, with which tools, and who may allow what."""

    workspace: Path = field(default_factory=Path.cwd)
    provider: str | None = None  # None: from settings files and JAATO_PROVIDER
    model: str | None = None  # None: from settings files and MODEL_NAME
    base_url: str | None = None
    plugins: tuple[str, ...] = ()  # for subagents without a profile; none: the usual ones
    plugin_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    permissions: str | None = None  # allow, ask, deny or the path of a policy; None: the usual places
    keep_seconds: float = 3600.0  # how long a conversation outlives its last client
    conversation: str | None = None  # the name of the only one, over stdio; None: a new one at each start
