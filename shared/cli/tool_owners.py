"""Which plugins are installed, and to which of them each tool belongs."""

from __future__ import annotations

import logging

from shared import plugin_catalogue
from shared.folder_plugins.opened import RefusedFolder
from shared.registry import PluginRegistry
from shared.subagents.known_tools import known_tools


def surveyed() -> PluginRegistry:
    """A registry that knows all plugins; what is wrong with them is for `problems` to tell, and not logged."""
    plugin_catalogue.log.addHandler(logging.NullHandler())
    plugin_catalogue.log.propagate = False
    registry = PluginRegistry()
    registry.discover()
    return registry


def known_plugins(registry: PluginRegistry) -> set[str]:
    """The names of all plugins that are there, also of those that cannot be used as things are."""
    folders = {each.name if isinstance(each, RefusedFolder) else each.manifest.name for each in registry.folders}
    return {*registry.list_available(), *registry.problems, *folders}


def tool_owners(registry: PluginRegistry | None = None) -> dict[str, str]:
    """The plugin of every tool that any installed plugin has; nothing is set up for that."""
    return dict(known_tools(registry or surveyed()))
