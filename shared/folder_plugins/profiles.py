"""PluginProfiles: the agents of the plugins in use, as profiles."""

from __future__ import annotations

from collections.abc import Mapping

from shared.definitions.profile import SubagentProfile
from shared.registry import PluginRegistry

Profiles = Mapping[str, tuple[SubagentProfile, ...]]


class PluginProfiles:
    """Asks the exposed plugins for their agents, again whenever plugins or tools come or go.

    Only instances that are exposed count, so that agents leave with their plugin.
    """

    def __init__(self, registry: PluginRegistry) -> None:
        self._registry = registry
        self._version: int | None = None
        self._found: Profiles = {}

    def __call__(self) -> Profiles:
        """The profiles by plugin; the same object as long as nothing has changed."""
        version = self._registry.version
        if version != self._version:
            self._found, self._version = self._look(), version
        return self._found

    def _look(self) -> Profiles:
        registry = self._registry
        exposed = {name: registry.get_plugin(name) for name in registry.list_exposed()}
        agents = {name: ask() for name, plugin in exposed.items() if (ask := getattr(plugin, "get_agents", None))}
        if not any(agents.values()):
            return {}
        from shared.folder_plugins.scoping import profile_of

        core_names = registry.core_names()
        tools = {name: frozenset(tool.name for tool in registry.tools([name])) for name in exposed}
        core = {name: held for name, held in tools.items() if name in core_names}
        others = {name: held for name, held in tools.items() if name not in core_names}
        return {
            name: tuple(profile_of(agent, name, core=core, others=others) for agent in brought)
            for name, brought in agents.items()
        }
