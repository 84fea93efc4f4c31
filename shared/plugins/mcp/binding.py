"""The tools of one server as our own: named, checked, ready to be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import ConfigError
from shared.plugins.mcp.input_schema import usable_schema
from shared.plugins.mcp.names import tool_names
from shared.plugins.mcp.status import RemoteTool
from shared.toolbox import clip
from shared.tools import Tool, ToolContext
from shared.types import ToolSchema

DESCRIPTION_CHARS = 8_000  # a server must not be able to fill the prompt by describing itself
Call = Callable[[str, Mapping[str, Any], ToolContext], Any]


@dataclass(frozen=True)
class Binding:
    """What one listing of a server became."""

    remote: tuple[RemoteTool, ...]
    tools: tuple[Tool, ...] = ()
    left_out: tuple[str, ...] = ()


def bind(prefix: str, remote: tuple[RemoteTool, ...], call: Call) -> Binding:
    """Tools for a listing; one that cannot be offered is left out with the reason, the others stay."""
    tools: dict[str, Tool] = {}
    left_out: list[str] = []
    names = tool_names(prefix, [tool.name for tool in remote])
    for tool in remote:
        name = names[tool.name]
        try:
            if name in tools:
                raise ConfigError(f"its name '{name}' is taken by another tool of the server")
            schema = ToolSchema(name, clip(tool.description, DESCRIPTION_CHARS), usable_schema(tool.schema))
            tools[name] = Tool(schema, _invoke(tool.name, call), plugin="mcp")
        except ConfigError as error:
            left_out.append(f"{tool.name}: {error}")
    return Binding(remote, tuple(tools.values()), tuple(left_out))


def _invoke(remote_name: str, call: Call) -> Callable[[Mapping[str, Any], ToolContext], Any]:
    return lambda args, context: call(remote_name, args, context)
