"""Which tools there are at all, and whose they are."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from shared.plugin_loading import plugin_tools
from shared.registry import PluginRegistry

log = logging.getLogger(__name__)


def known_tools(registry: PluginRegistry | None) -> Mapping[str, str]:
    """The plugin of every tool that any available plugin has, exposed or not."""
    found: dict[str, str] = {}
    for name in registry.list_available() if registry is not None else ():
        plugin = registry.get_plugin(name) if registry is not None else None
        try:
            tools = plugin_tools(plugin) if plugin is not None else []
        except Exception:  # foreign code that may not even be set up
            log.debug("the tools of plugin '%s' are not known", name, exc_info=True)
            tools = []
        found |= dict.fromkeys((tool.name for tool in tools), name)
    return found
