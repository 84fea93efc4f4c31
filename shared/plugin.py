"""The plugin protocol, its value types and the base class of our own plugins: every hook point, on one page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from shared.errors import ConfigError, unknown_name
from shared.types import ToolSchema

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime
    from shared.tools import Tool

Executor = Callable[..., Any]
PluginConfig = Mapping[str, Any]


class CommandParameter(NamedTuple):
    """One parameter of a user command."""

    name: str
    description: str = ""
    required: bool = False
    capture_rest: bool = False


class UserCommand(NamedTuple):
    """A command that a person types; with `share_with_model` its output enters the history."""

    name: str
    description: str
    share_with_model: bool = False
    parameters: Sequence[CommandParameter] | None = None


class CommandCompletion(NamedTuple):
    """One way to complete what a person is typing."""

    value: str
    description: str = ""


@dataclass(frozen=True)
class PermissionDisplayInfo:
    """What a person sees when a tool asks for permission, such as a diff."""

    summary: str
    details: str
    format_hint: str = "text"  # text, diff, json, code
    language: str | None = None
    truncated: bool = False
    original_lines: int | None = None


@runtime_checkable
class ToolPlugin(Protocol):
    """The eight members that every jaato plugin has; third-party plugins need no base class.

    What a plugin may have besides:

    - `attach(runtime)`: is given the runtime that will run its tools
    - `get_command_completions(command, args)`: completions for a user command
    - `format_permission_request(tool_name, arguments, channel_type) -> PermissionDisplayInfo | None`
    - `get_model_requirements()`: globs of the models it works with
    - `known_tools()`, `settle()`, `on_tools_changed`, for tools that come and go: those known now without waiting;
      a short wait before a turn; a list of callables to be called
    - `renew()`: another instance, where the class alone cannot make one
    - `get_agents()`, `get_hooks()`, `get_skills()`, `get_skill_folders()`: what it brings besides tools, in force
      while it is exposed
    """

    @property
    def name(self) -> str: ...
    def get_tool_schemas(self) -> list[ToolSchema]: ...
    def get_executors(self) -> dict[str, Executor]: ...
    def initialize(self, config: dict[str, Any] | None = None) -> None: ...
    def shutdown(self) -> None: ...
    def get_system_instructions(self) -> str | None: ...
    def get_auto_approved_tools(self) -> list[str]: ...
    def get_user_commands(self) -> list[UserCommand]: ...


class Plugin:
    """Base of our own plugins: sensible defaults, tools from methods marked with `@tool`.

    `config_keys` names the settings a plugin takes, with their defaults; another key is an error.
    """

    name: str = ""
    config_keys: ClassVar[Mapping[str, Any]] = {}
    instructions: ClassVar[str | None] = None
    #: Settings that only select or narrow, so that even an untrusted profile may change them.
    harmless_settings: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.config: dict[str, Any] = dict(self.config_keys)

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take settings; called before the first tool call, and again when they change."""
        given = dict(config or {})
        for key in given:
            if key not in self.config_keys and key != "agent_name":
                raise ConfigError(f"plugin '{self.name}': {unknown_name('setting', key, self.config_keys)}")
        self.config = {**self.config_keys, **given}

    def shutdown(self) -> None:
        """Let go of everything; a plugin may be initialised again afterwards."""

    def tools(self) -> list[Tool]:
        """The tools of this plugin, in the order of their definition."""
        from shared.tools import tools_of

        return tools_of(self)

    def get_tool_schemas(self) -> list[ToolSchema]:
        """Schemas of all tools."""
        return [tool.schema for tool in self.tools()]

    def get_executors(self) -> dict[str, Executor]:
        """Callables that take the arguments as a dict or as keywords."""
        return {tool.name: tool.as_executor() for tool in self.tools()}

    def get_system_instructions(self) -> str | None:
        """Text for the system prompt, or None."""
        return self.instructions

    def get_auto_approved_tools(self) -> list[str]:
        """Own tools that need no permission."""
        return [tool.name for tool in self.tools() if tool.auto_approved]

    def get_user_commands(self) -> list[UserCommand]:
        """Commands for a person."""
        return []

    def attach(self, runtime: JaatoRuntime) -> None:
        """Learn which runtime runs the tools."""
