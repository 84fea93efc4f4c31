"""PluginRegistry: which plugins are exposed, and the tools and texts they bring."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from typing import Any

from shared.errors import JaatoError, PluginError, unknown_name
from shared.plugin import CommandCompletion, PluginConfig, ToolPlugin, UserCommand
from shared.plugin_catalogue import PluginCatalogue
from shared.plugin_loading import checked, plugin_tools, provide_jaato_module, shut_down
from shared.tools import Tool
from shared.types import ToolSchema

log = logging.getLogger(__name__)


@dataclass
class Exposed:
    """One plugin in use: the instance, its settings and the tools it brought when last asked."""

    plugin: ToolPlugin
    config: dict[str, Any] | None
    tools: list[Tool] = field(default_factory=list)

    def load(self) -> None:
        """Ask the plugin for its tools and check them."""
        self.tools = plugin_tools(self.plugin)


class PluginRegistry(PluginCatalogue):
    """Exposes the plugins a host wants, of those that exist, and keeps everything in order of exposure."""

    def __init__(self, model_name: str | None = None) -> None:
        super().__init__()
        self._model_name = model_name
        self._exposed: dict[str, Exposed] = {}
        self._disabled: frozenset[str] = frozenset()
        self._skipped: dict[str, str] = {}
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

    # -- what there is ---------------------------------------------------------------------------

    def list_exposed(self) -> list[str]:
        """Names of the plugins in use, in the order of exposure."""
        return list(self._exposed)

    def is_exposed(self, name: str) -> bool:
        """Whether a plugin is in use."""
        return name in self._exposed

    def list_skipped_plugins(self) -> dict[str, str]:
        """Plugins that were not exposed because they do not suit the model, with the reason."""
        return dict(self._skipped)

    def get_plugin(self, name: str) -> ToolPlugin | None:
        """The instance in use, or the one that would be used."""
        if (entry := self._exposed.get(name)) is not None:
            return entry.plugin
        return self._instance(name) if name in self._factories else None

    def get_plugin_for_tool(self, tool_name: str) -> ToolPlugin | None:
        """The exposed plugin that offers a tool."""
        for entry in self._exposed.values():
            if any(tool.name == tool_name for tool in entry.tools):
                return entry.plugin
        return None

    def tools(self, names: Iterable[str] | None = None) -> list[Tool]:
        """Enabled tools of all exposed plugins, or of these, in order of exposure."""
        chosen = None if names is None else set(names)
        return [
            tool
            for name, entry in self._exposed.items()
            if chosen is None or name in chosen
            for tool in entry.tools
            if tool.name not in self._disabled
        ]

    def get_exposed_tool_schemas(self) -> list[ToolSchema]:
        """Schemas of all tools of exposed plugins, disabled ones included."""
        return [tool.schema for entry in self._exposed.values() for tool in entry.tools]

    def get_enabled_tool_schemas(self) -> list[ToolSchema]:
        """Schemas of all enabled tools."""
        return [tool.schema for tool in self.tools()]

    def get_exposed_executors(self) -> dict[str, Callable[..., Any]]:
        """Callables of all tools of exposed plugins, for host code: a dict, or keywords."""
        return {tool.name: tool.as_executor() for entry in self._exposed.values() for tool in entry.tools}

    def get_system_instructions(self, names: Iterable[str] | None = None) -> str | None:
        """Instructions of the exposed plugins, or of these, separated by blank lines; None when there are none."""
        chosen = None if names is None else set(names)
        entries = [entry for name, entry in self._exposed.items() if chosen is None or name in chosen]
        texts = [text for entry in entries if (text := (entry.plugin.get_system_instructions() or "").strip())]
        return "\n\n".join(texts) or None

    def get_auto_approved_tools(self) -> list[str]:
        """Tools that need no permission; a plugin can say so of its own tools only."""
        return [tool.name for tool in self.tools() if tool.auto_approved]

    # -- single tools ----------------------------------------------------------------------------

    def get_all_tool_names(self) -> list[str]:
        """Names of all tools of exposed plugins, disabled ones included."""
        return [schema.name for schema in self.get_exposed_tool_schemas()]

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

    def is_tool_enabled(self, name: str) -> bool:
        """Whether a tool exists and is switched on."""
        return name in self.get_all_tool_names() and name not in self._disabled

    def list_disabled_tools(self) -> list[str]:
        """Tools that are switched off."""
        return [name for name in self.get_all_tool_names() if name in self._disabled]

    def is_switched_off(self, name: str) -> bool:
        """Whether a tool was disabled, even if its plugin has been taken out of use since."""
        return name in self._disabled

    def get_tool_status(self) -> list[dict[str, Any]]:
        """All tools with name, description, whether they are enabled, and their plugin."""
        return [
            {
                "name": tool.name,
                "description": tool.schema.description,
                "enabled": tool.name not in self._disabled,
                "plugin": name,
            }
            for name, entry in self._exposed.items()
            for tool in entry.tools
        ]

    # -- user commands ---------------------------------------------------------------------------

    def get_exposed_user_commands(self) -> list[UserCommand]:
        """Commands for a person, of all exposed plugins; of two with one name the first counts."""
        found: dict[str, UserCommand] = {}
        for entry in self._exposed.values():
            for command in entry.plugin.get_user_commands():
                found.setdefault(command.name, command)
        return list(found.values())

    def get_plugin_for_command(self, command: str) -> ToolPlugin | None:
        """The exposed plugin that offers a user command."""
        for entry in self._exposed.values():
            if any(each.name == command for each in entry.plugin.get_user_commands()):
                return entry.plugin
        return None

    def get_command_completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]:
        """How the arguments of a user command may be completed."""
        complete = getattr(self.get_plugin_for_command(command), "get_command_completions", None)
        return list(complete(command, list(args))) if complete is not None else []

    # -- model -----------------------------------------------------------------------------------

    def set_model_name(self, model_name: str | None) -> None:
        """Say for which model plugins are exposed from now on."""
        self._model_name = model_name

    def get_model_name(self) -> str | None:
        """The model for which plugins are exposed."""
        return self._model_name

    def config_of(self, name: str) -> dict[str, Any]:
        """The settings with which a plugin was exposed; empty if it was not."""
        entry = self._exposed.get(name)
        return dict(entry.config or {}) if entry is not None else {}

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
