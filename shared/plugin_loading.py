"""Where plugins come from, and what is checked before one is used."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shared.errors import PluginError
from shared.plugin import PermissionDisplayInfo, Plugin, ToolPlugin
from shared.tools import Tool

PluginFactory = Callable[[], ToolPlugin]
ENTRY_POINTS = "jaato.plugins"

_MEMBERS = (
    "name",
    "get_tool_schemas",
    "get_executors",
    "initialize",
    "shutdown",
    "get_system_instructions",
    "get_auto_approved_tools",
    "get_user_commands",
)


def builtin_factories() -> dict[str, PluginFactory]:
    """The plugins of this package by folder name; a module is imported when its plugin is made."""
    import shared.plugins

    names = sorted(info.name for info in pkgutil.iter_modules(shared.plugins.__path__) if info.ispkg)
    return {name: _builtin(name) for name in names}


def entry_point_factories() -> list[tuple[str, PluginFactory]]:
    """The plugins that installed packages publish, by name of the entry point."""
    found = sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, entry.value))
    if found:
        _provide_jaato_module()
    return [(entry.name, _published(entry)) for entry in found]


def _builtin(name: str) -> PluginFactory:
    def make() -> ToolPlugin:
        plugin: ToolPlugin = importlib.import_module(f"shared.plugins.{name}").create_plugin()
        return plugin

    return make


def _published(entry: EntryPoint) -> PluginFactory:
    def make() -> ToolPlugin:
        plugin: ToolPlugin = entry.load()()
        return plugin

    return make


def _provide_jaato_module() -> None:
    """Published plugins import their value types from `jaato`; a bare checkout has no such module."""
    if "jaato" not in sys.modules and importlib.util.find_spec("jaato") is None:
        sys.modules["jaato"] = importlib.import_module("shared._jaato")


def checked(plugin: Any, name: str) -> ToolPlugin:
    """The object itself if it has all members of a plugin."""
    if not isinstance(plugin, ToolPlugin):
        missing = [member for member in _MEMBERS if not hasattr(plugin, member)]
        raise PluginError(f"plugin '{name}' lacks {', '.join(missing)}: a plugin has {', '.join(_MEMBERS)}")
    return plugin


def plugin_tools(plugin: ToolPlugin) -> list[Tool]:
    """The tools of any plugin, ours or a third party's, checked: one executor per schema, no name twice."""
    tools = _own_tools(plugin) if isinstance(plugin, Plugin) else _foreign_tools(plugin)
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise PluginError(f"plugin '{plugin.name}' offers the tool '{tool.name}' twice")
        seen.add(tool.name)
    return tools


def _own_tools(plugin: Plugin) -> list[Tool]:
    tools = plugin.tools()
    if not hasattr(plugin, "format_permission_request"):
        return tools
    return [tool if tool.display else replace(tool, display=display_of(plugin, tool.name)) for tool in tools]


def _foreign_tools(plugin: ToolPlugin) -> list[Tool]:
    schemas, executors = plugin.get_tool_schemas(), plugin.get_executors()
    approved = set(plugin.get_auto_approved_tools())
    tools: list[Tool] = []
    for schema in schemas:
        if schema.name not in executors:
            raise PluginError(f"plugin '{plugin.name}': tool '{schema.name}' has a schema but no executor")
        tools.append(
            Tool.from_executor(
                schema,
                executors[schema.name],
                plugin=plugin.name,
                auto_approved=schema.name in approved,
                display=display_of(plugin, schema.name),
            )
        )
    return tools


def display_of(plugin: ToolPlugin, tool_name: str) -> Any:
    """How the plugin shows a call of this tool to the person who decides, if it can."""
    show = getattr(plugin, "format_permission_request", None)
    if show is None:
        return None

    def display(arguments: Any) -> PermissionDisplayInfo | None:
        info: PermissionDisplayInfo | None = show(tool_name, dict(arguments), "console")
        return info

    return display
