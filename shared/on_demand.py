"""Built-in plugins that are there when something needs them, whether or not the host exposed them."""

from __future__ import annotations

import threading

from shared.plugin import Plugin, ToolPlugin
from shared.plugin_loading import builtin_factories
from shared.registry import PluginRegistry
from shared.runtime import JaatoRuntime

_first_use = threading.Lock()  # of several threads that need something first, one makes it; our own code runs under it


def registry_of(runtime: JaatoRuntime) -> PluginRegistry:
    """The plugins of a runtime; one that was never given any gets all that there are, with none exposed."""
    if runtime.registry is None:
        registry = PluginRegistry()
        registry.discover(workspace=runtime.workspace, trust_workspace=runtime.vouched)
        with _first_use:
            if runtime.registry is None:
                runtime.configure_plugins(registry)
    assert runtime.registry is not None
    return runtime.registry


def plugin_on_demand(runtime: JaatoRuntime, name: str) -> ToolPlugin:
    """The runtime's own instance of a built-in plugin, attached; it is exposed only if the host has done that."""
    registry = registry_of(runtime)
    if name not in registry.list_available():
        registry.register_plugin(builtin_factories()[name]())
    plugin = registry.get_plugin(name)
    assert plugin is not None
    with _first_use:
        if isinstance(plugin, Plugin):
            plugin.attach(runtime)
    return plugin
