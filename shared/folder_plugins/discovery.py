"""Finding folder plugins for the registry, and what is told about those that cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path

from shared.errors import PluginError
from shared.folder_plugins.opened import OpenedFolder, RefusedFolder, open_folder
from shared.folder_plugins.places import PluginFolder
from shared.folder_plugins.plugin import FolderPlugin

Found = OpenedFolder | RefusedFolder


def open_folders(folders: Iterable[PluginFolder], *, taken: Collection[str], home: Path | None = None) -> list[Found]:
    """All folders, read; of two plugins with one name the stronger place has it, and a name in use is refused.

    Names that differ in upper and lower case only count as one: people would take the one for the other.
    """
    found: list[Found] = []
    held = dict.fromkeys(map(str.casefold, taken), "a plugin that comes with the package or is installed")
    for folder in folders:
        opened = open_folder(folder, home=home)
        if isinstance(opened, OpenedFolder):
            name = opened.manifest.name
            if name.casefold() in held:
                reason = f"the name '{name}' is taken by {held[name.casefold()]}: choose another"
                opened = RefusedFolder(folder, name, reason, opened.problems, version=opened.manifest.version)
            else:
                held[name.casefold()] = str(folder.path)
        found.append(opened)
    return found


def usable(found: Iterable[Found]) -> dict[str, OpenedFolder]:
    """Those that can be made, by the plugin's name."""
    return {each.manifest.name: each for each in found if isinstance(each, OpenedFolder)}


def refused(found: Iterable[Found]) -> list[tuple[str, str]]:
    """Name and reason of each that cannot be made."""
    return [
        (each.name, f"plugin folder {each.folder.path}: {each.reason}")
        for each in found
        if isinstance(each, RefusedFolder)
    ]


def take_over(instance: object, opened: OpenedFolder) -> None:
    """Let an instance know its folder as it is now: the tools follow when it is initialised again."""
    if isinstance(instance, FolderPlugin):
        instance.opened = opened


def factory_of(opened: OpenedFolder) -> Callable[[], FolderPlugin]:
    """What makes an instance of the plugin."""
    return partial(FolderPlugin, opened)


def open_plugin(path: Path | str) -> FolderPlugin:
    """A plugin from a folder that the host vouches for, to be registered; raises PluginError with the reason."""
    folder = PluginFolder(Path(path).absolute(), "extra")
    opened = open_folder(folder)
    if isinstance(opened, RefusedFolder):
        raise PluginError(f"plugin folder {folder.path}: {opened.reason}")
    return FolderPlugin(opened)
