"""ExposedPlugins: which plugins are in use, and what they offer; asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.plugin import CommandCompletion, ToolPlugin, UserCommand
from shared.plugin_catalogue import PluginCatalogue
from shared.plugin_loading import plugin_tools
from shared.tools import Tool
from shared.types import ToolSchema


@dataclass
class Exposed:
    """One plugin in use: the instance, its settings and the tools it brought when last asked."""

    plugin: ToolPlugin
    config: dict[str, Any] | None
    tools: list[Tool] = field(default_factory=list)

    def load(self) -> None:
        """Ask the plugin for its tools and check them."""
        self.tools = plugin_tools(self.plugin)


class ExposedPlugins(PluginCatalogue):
    """The half of the registry that only tells, in order of exposure.

    What is exposed and what is disabled is replaced, never changed in place: it can be asked from any thread.
    """

    def __init__(self, model_name: str | None = None) -> None:
        super().__init__()
        self._model_name = model_name
        self._exposed: dict[str, Exposed] = {}
        self._disabled: frozenset[str] = frozenset()
        self._skipped: dict[str, str] = {}

    # -- what is in use --------------------------------------------------------------------------

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

    def config_of(self, name: str) -> dict[str, Any]:
        """The settings with which a plugin was exposed; empty if it was not."""
        entry = self._exposed.get(name)
        return dict(entry.config or {}) if entry is not None else {}

    def get_model_name(self) -> str | None:
        """The model for which plugins are exposed."""
        return self._model_name

    # -- what it offers to the model -------------------------------------------------------------

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

    def get_plugin_for_tool(self, tool_name: str) -> ToolPlugin | None:
        """The exposed plugin that offers a tool."""
        for entry in self._exposed.values():
            if any(tool.name == tool_name for tool in entry.tools):
                return entry.plugin
        return None

    # -- single tools ----------------------------------------------------------------------------

    def get_all_tool_names(self) -> list[str]:
        """Names of all tools of exposed plugins, disabled ones included."""
        return [schema.name for schema in self.get_exposed_tool_schemas()]

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

    # -- what it offers to a person --------------------------------------------------------------

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
