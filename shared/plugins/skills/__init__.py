"""Plugin `skills`: instructions that a model, a person or a matching message calls up."""

from __future__ import annotations

from shared.plugins.skills.plugin import SkillsPlugin

PLUGIN_KIND = "tool"

__all__ = ["SkillsPlugin", "create_plugin"]


def create_plugin() -> SkillsPlugin:
    """A new instance of the plugin."""
    return SkillsPlugin()
