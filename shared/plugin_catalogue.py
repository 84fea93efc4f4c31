"""PluginCatalogue: which plugins exist, and how to make one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import JaatoError, PluginError, unknown_name
from shared.plugin import ToolPlugin
from shared.plugin_loading import PluginFactory, builtin_factories, checked, entry_point_factories

if TYPE_CHECKING:
    from shared.folder_plugins.discovery import Found

log = logging.getLogger(__name__)


class PluginCatalogue:
    """Built-in plugins, those that installed packages publish, drop-in folders, and those that code adds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards tables; never held while a plugin's code runs
        self._changes: dict[str, threading.RLock] = {}  # by plugin: one change at a time
        self._factories: dict[str, PluginFactory] = {}
        self._instances: dict[str, ToolPlugin] = {}
        self._published: dict[str, EntryPoint] = {}
        self._builtin: frozenset[str] = frozenset()
        self.folders: list[Found] = []  # drop-in plugins, with those that cannot be used
        self.problems: dict[str, str] = {}

    def discover(
        self,
        plugin_kind: str = "tool",
        include_directory: bool = True,
        *,
        workspace: Path | str | None = None,
        trust_workspace: bool | None = None,
    ) -> list[str]:
        """Find plugins: built-ins, entry points, drop-in folders; one that cannot be loaded is in `problems`.

        The project's folders count only if its workspace (default: the current folder) is trusted; with
        `trust_workspace` None the record of `jaato trust` decides.
        """
        if plugin_kind != "tool":
            raise PluginError(unknown_name("plugin kind", plugin_kind, ["tool"]))
        builtin = builtin_factories()
        self._builtin = frozenset(builtin)
        if include_directory:
            for name, factory in builtin.items():
                self._factories.setdefault(name, factory)
        for entry, factory in entry_point_factories():
            self._discover_entry(entry, factory, reserved=builtin)
        if include_directory:
            self._discover_folders(Path(workspace) if workspace is not None else None, trust_workspace)
        return self.list_available()

    def core_names(self) -> frozenset[str]:
        """The plugins that come with this package."""
        return self._builtin

    def _discover_folders(self, workspace: Path | None, trust_workspace: bool | None) -> None:
        from shared.folder_plugins.places import plugin_folders

        folders = plugin_folders(workspace, trust_workspace=trust_workspace)
        if not folders and not self.folders:
            return
        from shared.folder_plugins.discovery import factory_of, open_folders, refused, take_over, usable

        former = usable(self.folders)
        self.folders = open_folders(folders, taken=self._factories.keys() - former.keys())
        found = usable(self.folders)
        for name in former.keys() - found.keys():
            self._factories.pop(name, None)
            self._instances.pop(name, None)
        for name, opened in found.items():
            self._factories[name] = factory_of(opened)
            take_over(self._instances.get(name), opened)
            self.problems.pop(name, None)
        for name, problem in refused(self.folders):
            self._report(name, problem)

    def _discover_entry(self, entry: EntryPoint, factory: PluginFactory, *, reserved: Iterable[str]) -> None:
        name = entry.name
        try:
            plugin = checked(factory(), name)
        except (Exception, SystemExit) as error:  # foreign code: one broken plugin must not stop the others
            self._report(name, f"plugin '{name}' ({entry.value}) could not be loaded: {type(error).__name__}: {error}")
            return
        owner = self._published.get(plugin.name)
        if plugin.name in reserved or (plugin.name in self._factories and owner != entry):
            taken = f"by entry point '{owner.name}' ({owner.value})" if owner is not None else "by another plugin"
            self._report(
                name, f"entry point '{name}' ({entry.value}) calls its plugin '{plugin.name}', which is taken {taken}"
            )
            return
        self._published[plugin.name] = entry
        self._factories[plugin.name] = factory
        self._instances.setdefault(plugin.name, plugin)
        self.problems.pop(name, None)

    def _report(self, name: str, problem: str) -> None:
        self.problems[name] = problem
        log.warning("%s", problem)

    def list_available(self) -> list[str]:
        """Names of all plugins known, in the order of discovery."""
        return list(self._factories)

    def fresh_plugin(self, name: str) -> ToolPlugin:
        """A new instance of a plugin, not initialised, for a session with settings of its own."""
        if name not in self._factories:
            raise PluginError(unknown_name("plugin", name, self._factories))
        try:
            return checked(self._factories[name](), name)
        except JaatoError:
            raise
        except Exception as error:
            raise PluginError(f"plugin '{name}' cannot be made: {type(error).__name__}: {error}") from error

    def _instance(self, name: str) -> ToolPlugin:
        if name not in self._factories:
            if name in self.problems:
                raise PluginError(f"plugin '{name}' cannot be used: {self.problems[name]}")
            hint = "" if self._factories else "Call discover() first."
            raise PluginError(unknown_name("plugin", name, self._factories, hint=hint))
        if (found := self._instances.get(name)) is not None:
            return found
        with self._change(name):
            if name not in self._instances:
                self._instances[name] = self.fresh_plugin(name)
            return self._instances[name]

    def _change(self, name: str) -> threading.RLock:
        """The right to change one plugin; its own code runs under it, so it guards nothing else."""
        with self._lock:
            return self._changes.setdefault(name, threading.RLock())
