"""Plugin `sessions`: subagents as the sessions of OpenClaw and Conduit, in five tools."""

from __future__ import annotations

from shared.plugins.sessions.plugin import SessionsPlugin

PLUGIN_KIND = "tool"

__all__ = ["SessionsPlugin", "create_plugin"]


def create_plugin() -> SessionsPlugin:
    """A new instance of the plugin."""
    return SessionsPlugin()
