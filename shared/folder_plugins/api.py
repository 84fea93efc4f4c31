"""PluginAPI: what `register(api)` of a plugin's Python code may do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.definitions.manifest_entries import TOOL_NAME
from shared.errors import PluginError, unknown_name
from shared.hooks import EVENTS, Handler
from shared.tools import Tool
from shared.types import ToolSchema

_PERMISSIONS = ("ask", "none")


@dataclass(frozen=True)
class SkillText:
    """A skill that code brings instead of a folder."""

    name: str
    description: str
    content: str


class PluginAPI:
    """Collects what a plugin registers; it takes effect when `register` has returned without an error."""

    def __init__(self, id: str, config: Mapping[str, Any]) -> None:  # noqa: A002 - the name that plugins know
        self.id = id
        self.config = dict(config)
        self._tools: dict[str, Tool] = {}
        self._hooks: list[tuple[str, Handler]] = []
        self._skills: dict[str, SkillText] = {}
        self._log = logging.getLogger(f"shared.folder_plugins.{id}")

    def register_tool(
        self,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        handler: Callable[..., Any] | None = None,
        permission: str = "ask",
        *,
        required_agent: str | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Add a tool; without `parameters` they are read from the handler's signature.

        The handler, plain or async, takes keywords or one dict. With permission "none" the tool runs
        without a question.
        """
        if handler is None or not callable(handler):
            raise PluginError(f"plugin '{self.id}': register_tool('{name}') needs handler=, a function")
        if permission not in _PERMISSIONS:
            raise PluginError(f"plugin '{self.id}': {unknown_name('permission', str(permission), _PERMISSIONS)}")
        if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            raise PluginError(f"plugin '{self.id}': tool name {name!r} must be letters, digits, '-' and '_'")
        if name in self._tools:
            raise PluginError(f"plugin '{self.id}' registers the tool '{name}' twice")
        options: dict[str, Any] = {
            "plugin": self.id,
            "auto_approved": permission == "none",
            "required_agent": required_agent,
            "timeout_seconds": timeout_seconds,
        }
        if parameters is None:
            self._tools[name] = Tool.from_function(handler, name=name, description=description or None, **options)
        else:
            schema = ToolSchema(name, description, {"type": "object", "properties": {}, **parameters})
            self._tools[name] = Tool.from_executor(schema, handler, **options)

    def register_hook(self, event: str, handler: Handler) -> None:
        """Call a function, plain or async, at one of the points that `shared.hooks` lists."""
        if event not in EVENTS:
            raise PluginError(f"plugin '{self.id}': {unknown_name('hook', str(event), EVENTS)}")
        if not callable(handler):
            raise PluginError(f"plugin '{self.id}': the handler of '{event}' is not a function")
        self._hooks.append((event, handler))

    def register_skill(self, name: str, description: str, content: str) -> None:
        """Add a skill from text instead of a SKILL.md."""
        if not all(isinstance(each, str) and each.strip() for each in (name, description, content)):
            raise PluginError(f"plugin '{self.id}': a skill needs a name, a description and content, all of them text")
        if name in self._skills:
            raise PluginError(f"plugin '{self.id}' registers the skill '{name}' twice")
        self._skills[name] = SkillText(name, description, content)

    def log(self, level: str, message: str) -> None:
        """Log a message under the plugin's name: debug, info, warning or error."""
        number = logging.getLevelNamesMapping().get(str(level).upper(), logging.INFO)
        self._log.log(number, "%s", message)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools so far."""
        return tuple(self._tools.values())

    @property
    def hooks(self) -> tuple[tuple[str, Handler], ...]:
        """The hooks so far, in the order of registration."""
        return tuple(self._hooks)

    @property
    def skills(self) -> tuple[SkillText, ...]:
        """The skills so far."""
        return tuple(self._skills.values())
