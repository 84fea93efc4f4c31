"""Plugin `subagent`: hand tasks to specialised child sessions on the same runtime."""

from __future__ import annotations

from shared.definitions.discovery import discover_profiles
from shared.definitions.profile import SubagentProfile
from shared.plugins.subagent.plugin import SubagentPlugin
from shared.subagents.config import SubagentConfig
from shared.subagents.result import SubagentResult

PLUGIN_KIND = "tool"

__all__ = [
    "SubagentConfig",
    "SubagentPlugin",
    "SubagentProfile",
    "SubagentResult",
    "create_plugin",
    "discover_profiles",
]


def create_plugin() -> SubagentPlugin:
    """A new instance of the plugin."""
    return SubagentPlugin()
