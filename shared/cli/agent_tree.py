"""AgentTree: the agents at work, as a tree that is drawn anew while they run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.tree import Tree

MARKS = {
    "queued": "[dim]…[/]",
    "running": "[cyan]●[/]",
    "completed": "[green]✓[/]",
    "partial": "[yellow]◐[/]",
    "cancelled": "[yellow]■[/]",
}


@dataclass
class Node:
    """What is known of one agent."""

    name: str
    parent: str | None
    status: str = "running"
    tool: str = ""
    turns: int = 0
    tokens: int = 0
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def line(self) -> str:
        """The agent in one line: mark, name, status, what it does, turns, tokens, time."""
        seconds = (self.ended or time.monotonic()) - self.begun
        doing = f" [dim]{escape(self.tool)}[/]" if self.tool and self.ended is None else ""
        mark = MARKS.get(self.status, "[red]✗[/]")
        calls = f"{self.turns} model calls, " if self.turns else ""
        figures = f"{calls}{self.tokens:,} tokens, {seconds:.1f} s"
        return f"{mark} [bold]{escape(self.name)}[/] {escape(self.status)}{doing} [dim]({figures})[/]"


class AgentTree:
    """Follows agents through UI hooks and renders itself with rich."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def on_agent_created(self, agent_id: str, agent_name: str, parent_agent_id: str | None, **more: Any) -> None:
        """A new node."""
        self._nodes[agent_id] = Node(agent_name, parent_agent_id)

    def on_agent_status_changed(self, agent_id: str, status: str, **more: Any) -> None:
        """A node stands elsewhere."""
        self._node(agent_id).status = status

    def on_agent_completed(self, agent_id: str, token_usage: Mapping[str, int], turns_used: int, **more: Any) -> None:
        """A node has ended."""
        node = self._node(agent_id)
        node.ended = time.monotonic()
        node.turns, node.tokens = turns_used, token_usage["total_tokens"]

    def on_tool_call_start(self, agent_id: str, tool_name: str, **more: Any) -> None:
        """A node is busy with a tool."""
        self._node(agent_id).tool = tool_name

    def on_tool_call_end(self, agent_id: str, **more: Any) -> None:
        """It is no more."""
        self._node(agent_id).tool = ""

    def on_agent_turn_completed(self, agent_id: str, total_tokens: int, **more: Any) -> None:
        """A turn of a node has ended."""
        node = self._node(agent_id)
        node.tokens = total_tokens
        if node.parent is None:
            node.status, node.ended = "completed", time.monotonic()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn: dict[str, Tree] = {}
        for agent_id, node in list(self._nodes.items()):
            above = drawn.get(node.parent or "")
            drawn[agent_id] = above.add(node.line()) if above is not None else Tree(node.line())
        yield from (drawn[agent_id] for agent_id, node in list(self._nodes.items()) if node.parent not in drawn)

    def _node(self, agent_id: str) -> Node:
        return self._nodes.setdefault(agent_id, Node(agent_id, None))
