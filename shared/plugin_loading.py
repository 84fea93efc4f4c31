"""Where plugins come from, and what is checked before one is used."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeGuard

from shared.errors import PluginError
from shared.plugin import PermissionDisplayInfo, Plugin, ToolPlugin
from shared.tools import Display, Tool, ToolContext

log = logging.getLogger(__name__)

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


def entry_point_factories() -> list[tuple[EntryPoint, PluginFactory]]:
    """The plugins that installed packages publish, in order of their entry points' names."""
    found = sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, entry.value))
    if found:
        provide_jaato_module()
    return [(entry, _published(entry)) for entry in found]


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


def provide_jaato_module() -> None:
    """Published plugins import their value types from `jaato`; a bare checkout has no such module."""
    if "jaato" not in sys.modules and importlib.util.find_spec("jaato") is None:
        sys.modules["jaato"] = importlib.import_module("shared._jaato")


def checked(plugin: Any, name: str) -> ToolPlugin:
    """The object itself if it has all members of a plugin."""
    if not isinstance(plugin, ToolPlugin):
        missing = [member for member in _MEMBERS if not hasattr(plugin, member)]
        raise PluginError(f"plugin '{name}' lacks {', '.join(missing)}: a plugin has {', '.join(_MEMBERS)}")
    if not isinstance(plugin.name, str) or not plugin.name:
        raise PluginError(f"plugin '{name}' has the name {plugin.name!r}: expected a text such as 'my_plugin'")
    return plugin


def plugin_tools(plugin: ToolPlugin) -> list[Tool]:
    """The tools of any plugin, ours or a third party's, checked: one executor per schema, no name twice."""
    tools = _own_tools(plugin) if _made_from_methods(plugin) else _foreign_tools(plugin)
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise PluginError(f"plugin '{plugin.name}' offers the tool '{tool.name}' twice")
        seen.add(tool.name)
    return tools


def _made_from_methods(plugin: ToolPlugin) -> TypeGuard[Plugin]:
    """Whether the plugin leaves schemas to our base class; one that writes its own is taken at its word."""
    return isinstance(plugin, Plugin) and type(plugin).get_tool_schemas is Plugin.get_tool_schemas


def _own_tools(plugin: Plugin) -> list[Tool]:
    tools: list[Tool] = getattr(plugin, "known_tools", plugin.tools)()
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


def display_of(plugin: ToolPlugin, tool_name: str) -> Display | None:
    """How the plugin shows a call of this tool to the person who decides, if it can."""
    show = getattr(plugin, "format_permission_request", None)
    if show is None:
        return None
    wants_context = "context" in inspect.signature(show).parameters

    def display(arguments: Mapping[str, Any], context: ToolContext) -> PermissionDisplayInfo | None:
        extra = {"context": context} if wants_context else {}
        info: PermissionDisplayInfo | None = show(tool_name, dict(arguments), "console", **extra)
        return info

    return display


def shut_down(plugin: ToolPlugin, name: str) -> None:
    """Shut a plugin down; one that fails in it is out of use all the same."""
    try:
        plugin.shutdown()
    except Exception:  # foreign code: the others must still be shut down
        log.warning("plugin '%s' failed to shut down", name, exc_info=True)
