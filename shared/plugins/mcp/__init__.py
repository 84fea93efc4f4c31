"""Plugin `mcp`: the tools of Model Context Protocol servers, as `server__tool`."""

from __future__ import annotations

from shared.plugins.mcp.plugin import McpPlugin

PLUGIN_KIND = "tool"

__all__ = ["PLUGIN_KIND", "McpPlugin", "create_plugin"]


def create_plugin() -> McpPlugin:
    """A fresh instance of the plugin, not yet initialised."""
    return McpPlugin()
