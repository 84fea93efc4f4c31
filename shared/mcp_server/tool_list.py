"""The subagent tools as an MCP client lists them: the schemas of the plugin, with hints on what each does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcp.types import Tool as McpTool
from mcp.types import ToolAnnotations

from shared.tools import Tool

#: title, reads only, may destroy, may be repeated without further effect, reaches the world outside
_HINTS: dict[str, tuple[str, bool, bool, bool, bool]] = {
    "spawn_subagent": ("Spawn a subagent", False, True, False, True),
    "continue_subagent": ("Continue a subagent", False, True, False, True),
    "send_to_subagent": ("Steer a running subagent", False, False, False, False),
    "close_subagent": ("Close a subagent", False, True, True, False),
    "cancel_subagent": ("Cancel a subagent", False, True, True, False),
    "get_subagent_result": ("Read a subagent's result", True, False, True, False),
    "wait_for_subagents": ("Wait for subagents", True, False, True, False),
    "list_active_subagents": ("List subagents", True, False, True, False),
    "list_subagent_profiles": ("List profiles", True, False, True, False),
    "set_shared_state": ("Store a shared value", False, True, False, False),
    "get_shared_state": ("Read a shared value", True, False, True, False),
    "list_shared_state": ("List shared values", True, False, True, False),
}
WAITING = frozenset({"spawn_subagent", "continue_subagent", "get_subagent_result", "wait_for_subagents"})


def listed(tools: Iterable[Tool]) -> list[McpTool]:
    """The tools in their order, for `tools/list`."""
    return [_listed(tool) for tool in tools]


def _listed(tool: Tool) -> McpTool:
    title, reads, destroys, repeats, outside = _HINTS[tool.name]
    hints = ToolAnnotations(
        title=title,
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=repeats,
        open_world_hint=outside,
    )
    schema: dict[str, Any] = dict(tool.schema.parameters)
    return McpTool(
        name=tool.name, title=title, description=tool.schema.description, input_schema=schema, annotations=hints
    )
