"""PluginRegistry: takes plugins into use and out of it, and switches single tools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

from shared.errors import JaatoError, PluginError, unknown_name
from shared.exposed_plugins import Exposed, ExposedPlugins
from shared.plugin import PluginConfig, ToolPlugin
from shared.plugin_loading import checked, plugin_tools, provide_jaato_module, shut_down
from shared.tools import Tool

log = logging.getLogger(__name__)


class PluginRegistry(ExposedPlugins):
    """Exposes the plugins a host wants, of those that exist, and keeps everything in order of exposure."""

    def __init__(self, model_name: str | None = None) -> None:
        super().__init__(model_name)
        self.attach: Callable[[ToolPlugin], None] = _leave_alone  # introduces plugins to the runtime in use
        self._unsettled: dict[str, Callable[[], object]] = {}
        self.version = 0  # grows with every change, so that others know when to look again

    def register_plugin(self, plugin: ToolPlugin, expose: bool = False, config: PluginConfig | None = None) -> None:
        """Add a plugin object from code; one that is to be exposed and cannot be is not added either."""
        provide_jaato_module()
        name = checked(plugin, getattr(plugin, "name", type(plugin).__name__)).name
        with self._change(name):
            if name in self._exposed:
                raise PluginError(f"plugin '{name}' is exposed already; unexpose it before replacing it")
            former = self._factories.get(name), self._instances.get(name)
            self._factories[name], self._instances[name] = getattr(plugin, "renew", type(plugin)), plugin
            try:
                if expose:
                    self.expose_tool(name, config)
            except BaseException:
                _put(self._factories, name, former[0])
                _put(self._instances, name, former[1])
                raise

    # -- exposure --------------------------------------------------------------------------------

    def expose_tool(self, name: str, config: PluginConfig | None = None) -> bool:
        """Initialise a plugin and offer its tools; False if it does not suit the model.

        Exposed again with other settings, it is initialised anew; a clash of tool names, bad
        settings or a plugin that fails leaves everything as it was.
        """
        with self._change(name):
            current = self._exposed.get(name)
            if current is not None and (not config or dict(config) == current.config):
                return True
            plugin = self._instance(name)
            if reason := self._unsuitable(plugin):
                self._skipped[name] = reason
                return False
            entry = Exposed(plugin, dict(config) if config is not None else None)
            try:
                if current is not None:
                    plugin.shutdown()
                plugin.initialize(entry.config)
                self.attach(plugin)
                entry.load()
                self._commit(name, entry)
            except Exception as error:
                self._restore(name, plugin, current)
                if isinstance(error, JaatoError):
                    raise
                raise PluginError(f"plugin '{name}' failed to start: {type(error).__name__}: {error}") from error
            self._skipped.pop(name, None)
            self._follow(name, plugin)
            return True

    def settle(self) -> None:
        """Give plugins whose tools are still on their way a moment, once; called before a turn begins."""
        if not self._unsettled:
            return
        pending, self._unsettled = self._unsettled, {}
        for wait in pending.values():
            wait()
        self.refresh()

    def unexpose_tool(self, name: str) -> None:
        """Take a plugin out of use and shut it down; one that is not exposed is left alone."""
        if name not in self._factories:
            return
        with self._change(name):
            if (entry := self._exposed.get(name)) is not None:
                self._withdraw(name)
                shut_down(entry.plugin, name)

    def expose_all(self, config: Mapping[str, PluginConfig] | None = None) -> list[str]:
        """Expose every available plugin but those with nothing to offer here; returns the exposed names.

        A drop-in folder that fails to start, without settings given for it, is reported in `problems`.
        """
        given = dict(config or {})
        for name in given:
            if name not in self._factories:
                raise PluginError(unknown_name("plugin", name, self._factories))
        dropped_in = {each.manifest.name for each in self.folders if hasattr(each, "manifest")}
        exposed: list[str] = []
        for name in self.list_available():
            try:
                exposed += [name] if self.expose_tool(name, given.get(name)) else []
            except JaatoError as error:
                if name not in dropped_in or name in given:
                    raise
                self._report(name, str(error))
        return exposed

    def unexpose_all(self) -> None:
        """Take all plugins out of use."""
        for name in self.list_exposed():
            self.unexpose_tool(name)

    def refresh(self) -> None:
        """Ask all exposed plugins again for their tools, for those whose tools come and go."""
        for name in self.list_exposed():
            with self._change(name):
                if (entry := self._exposed.get(name)) is None:
                    continue
                try:
                    tools = plugin_tools(entry.plugin)
                    if tools != entry.tools:
                        self._commit(name, replace(entry, tools=tools))
                except Exception as error:  # foreign code: this plugin keeps the tools it had, the others go on
                    self._report(name, f"plugin '{name}' keeps its former tools: {error}")

    # -- single tools ----------------------------------------------------------------------------

    def disable_tool(self, name: str) -> bool:
        """Switch a tool off; False if there is none of that name."""
        return self._switch(name, on=False)

    def enable_tool(self, name: str) -> bool:
        """Switch a tool on again; False if there is none of that name."""
        return self._switch(name, on=True)

    def disable_all_tools(self) -> int:
        """Switch all tools off; returns how many were on."""
        return sum(self.is_tool_enabled(name) and self.disable_tool(name) for name in self.get_all_tool_names())

    def enable_all_tools(self) -> int:
        """Switch all tools on; returns how many were off."""
        return sum(not self.is_tool_enabled(name) and self.enable_tool(name) for name in self.get_all_tool_names())

    # -- model -----------------------------------------------------------------------------------

    def set_model_name(self, model_name: str | None) -> None:
        """Say for which model plugins are exposed from now on."""
        self._model_name = model_name

    # -- inside ----------------------------------------------------------------------------------

    def _commit(self, name: str, entry: Exposed) -> None:
        with self._lock:
            self._check_clashes(name, entry.tools)
            self._exposed = {**self._exposed, name: entry}
            self.version += 1

    def _withdraw(self, name: str) -> None:
        with self._lock:
            self._exposed = {key: value for key, value in self._exposed.items() if key != name}
            self.version += 1

    def _unsuitable(self, plugin: ToolPlugin) -> str | None:
        globs = getattr(plugin, "get_model_requirements", lambda: None)()
        model = self._model_name
        if not globs or model is None or any(fnmatch(model, glob) for glob in globs):
            return None
        return f"needs a model like {', '.join(globs)}; this one is {model}"

    def _check_clashes(self, name: str, tools: Sequence[Tool]) -> None:
        taken = {tool.name: other for other, entry in self._exposed.items() if other != name for tool in entry.tools}
        for tool in tools:
            if tool.name in taken:
                raise PluginError(
                    f"tool '{tool.name}' of plugin '{name}' is offered by plugin '{taken[tool.name]}' already: "
                    f"expose only one of them"
                )

    def _restore(self, name: str, plugin: ToolPlugin, former: Exposed | None) -> None:
        """After a failed exposure: what was exposed is initialised as before, what was not is shut down."""
        try:
            plugin.shutdown()
            if former is not None:
                plugin.initialize(former.config)
        except Exception:  # the first failure is the one to report
            log.warning("plugin '%s' could not be put back", name, exc_info=True)
            self._withdraw(name)

    def _follow(self, name: str, plugin: ToolPlugin) -> None:
        """Hear of tools that come and go, from plugins that tell."""
        listeners = getattr(plugin, "on_tools_changed", None)
        if isinstance(listeners, list) and self.refresh not in listeners:
            listeners.append(self.refresh)
        if callable(settle := getattr(plugin, "settle", None)):
            self._unsettled[name] = settle

    def _switch(self, name: str, *, on: bool) -> bool:
        with self._lock:
            if name not in self.get_all_tool_names():
                return False
            self._disabled = self._disabled - {name} if on else self._disabled | {name}
            self.version += 1
            return True


def _put(table: dict[str, Any], name: str, former: Any) -> None:
    """Put back what was there before, or nothing."""
    if former is None:
        table.pop(name, None)
    else:
        table[name] = former


def _leave_alone(plugin: ToolPlugin) -> None:
    return None
