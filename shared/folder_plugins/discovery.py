"""Finding folder plugins for the registry, and what is told about those that cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from shared.definitions.profile import SubagentProfile
from shared.errors import ConfigError
from shared.folder_plugins.opened import OpenedFolder, RefusedFolder, open_folder
from shared.folder_plugins.places import PluginFolder
from shared.folder_plugins.plugin import FolderPlugin
from shared.folder_plugins.scoping import profile_of

Found = OpenedFolder | RefusedFolder


def open_folders(folders: Iterable[PluginFolder], *, taken: Collection[str], home: Path | None = None) -> list[Found]:
    """All folders, read; of two plugins with one name the stronger place has it, and a name in use is refused."""
    found: list[Found] = []
    held = {name: "a plugin that comes with the package or is installed" for name in taken}
    for folder in folders:
        opened = open_folder(folder, home=home)
        if isinstance(opened, OpenedFolder):
            name = opened.manifest.name
            if name in held:
                reason = f"the name '{name}' is taken by {held[name]}: choose another"
                opened = RefusedFolder(folder, name, reason, opened.problems, version=opened.manifest.version)
            else:
                held[name] = str(folder.path)
        found.append(opened)
    return found


def factory_of(opened: OpenedFolder) -> Callable[[], FolderPlugin]:
    """What makes an instance of the plugin."""
    return partial(FolderPlugin, opened)


def profiles_of_plugins(registry: Any) -> dict[str, tuple[SubagentProfile, ...]]:
    """The agents of all exposed plugins as profiles, by plugin; recomputed when the tools in use change."""
    exposed = {name: registry.get_plugin(name) for name in registry.list_exposed()}
    bringing = {name: plugin for name, plugin in exposed.items() if isinstance(plugin, FolderPlugin)}
    if not bringing:
        return {}
    core_names = registry.core_names()
    tools = {name: frozenset(tool.name for tool in registry.tools([name])) for name in exposed}
    core = {name: tools[name] for name in tools if name in core_names}
    others = {name: tools[name] for name in tools if name not in core_names}
    return {name: _profiles(plugin, core, others) for name, plugin in bringing.items()}


def _profiles(
    plugin: FolderPlugin, core: Mapping[str, frozenset[str]], others: Mapping[str, frozenset[str]]
) -> tuple[SubagentProfile, ...]:
    made = []
    for agent in plugin.get_agents():
        try:
            made.append(profile_of(agent, plugin.name, core=core, others=others))
        except ConfigError:  # cannot happen for fields that were converted before; one agent must not cost the others
            continue
    return tuple(made)
