"""Plugin `spawn_agent`: one tool that hands a task to a named agent, and an advert of all agents in the prompt."""

from __future__ import annotations

from shared.plugins.spawn_agent.plugin import SpawnAgentPlugin

PLUGIN_KIND = "tool"

__all__ = ["SpawnAgentPlugin", "create_plugin"]


def create_plugin() -> SpawnAgentPlugin:
    """A new instance of the plugin."""
    return SpawnAgentPlugin()
