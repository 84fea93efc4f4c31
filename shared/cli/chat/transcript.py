"""Transcript: what has happened, as it is printed for good; and the answer that is still being written."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from shared.cli.agent_board import AgentBoard
from shared.cli.agent_tree import mark_of, used
from shared.cli.chat.blocks import BlockStream
from shared.cli.figures import count, precise
from shared.cli.plain_text import plain, plain_line
from shared.cli.view import brief
from shared.events import (
    AgentCompleted,
    AgentOutput,
    ContextCollected,
    Event,
    PermissionResolved,
    RetryScheduled,
    ToolEnded,
    ToolStarted,
)

SLOW_SECONDS = 1.0
EVENTS = frozenset(
    {AgentCompleted, AgentOutput, ContextCollected, PermissionResolved, RetryScheduled, ToolEnded, ToolStarted}
)
#: How a question ended without the person at this terminal.
_WITHOUT_ANSWER = {
    "timeout": "nobody answered in time, so it was denied",
    "cancelled": "withdrawn, because the agent was stopped",
    "closed": "denied, because the conversation ends",
}


class Transcript:
    """Turns events into what a person reads. Subagents speak through the tree; here only their end is told."""

    def __init__(self, board: AgentBoard) -> None:
        self._board = board
        self._lock = threading.Lock()
        self._stream = BlockStream()

    @property
    def tail(self) -> str:
        """The part of the answer that is not printed yet."""
        with self._lock:
            return self._stream.tail

    def take(self, event: Event) -> Sequence[RenderableType]:
        """What an event adds."""
        match event:
            case AgentOutput(agent_id="main"):
                return self._output(event)
            case ToolStarted(agent_id="main"):
                args = Text(f" {plain_line(brief(event.args), 120)}", style="dim")
                return [*self.end(), Text("  → ", style="cyan").append(plain_line(event.tool_name)).append_text(args)]
            case ToolEnded(agent_id="main"):  # one that went well and fast needs no second line
                return [] if event.success and event.duration_seconds < SLOW_SECONDS else [_ended(event)]
            case AgentCompleted():
                return self._completed(event)
            case PermissionResolved() if event.method in _WITHOUT_ANSWER:
                text = f"  {self._name(event.agent_id)}: {plain_line(event.tool_name)}: {_WITHOUT_ANSWER[event.method]}"
                return [Text(text, style="yellow")]
            case RetryScheduled():
                text = f"  ↻ {self._name(event.agent_id)}: {plain_line(event.message)}"
                return [Text(text, style="yellow")]
            case ContextCollected():
                saved = f"{count(event.tokens_before)} → {count(event.tokens_after)} tokens"
                return [Text(f"  {self._name(event.agent_id)}: older turns were collected ({saved})", style="dim")]
        return []

    def end(self) -> Sequence[RenderableType]:
        """What is left of an answer that goes no further."""
        with self._lock:
            rest = self._stream.finish()
        return _spaced(rest)

    def _output(self, event: AgentOutput) -> Sequence[RenderableType]:
        if event.source != "model":
            return self.end() if event.mode == "flush" else []
        with self._lock:
            blocks = self._stream.feed(plain(event.text))
        return _spaced(blocks)

    def _completed(self, event: AgentCompleted) -> Sequence[RenderableType]:
        node = self._board.find(event.agent_id)
        if node is None or node.parent_id is None:
            return []
        mark, colour = mark_of(node)
        line = Text("  ").append(mark, style=colour).append(f" {plain_line(node.name, 60)} {node.status}")
        return [line.append(f"  {used(node, event.completed_at)}", style="dim")]

    def _name(self, agent_id: str) -> str:
        node = self._board.find(agent_id)
        return plain_line(node.name if node is not None else agent_id, 60)


def _spaced(blocks: Sequence[str]) -> list[RenderableType]:
    from shared.cli.chat.answer import Answer

    return [thing for block in blocks for thing in (Text(""), Answer(block))]


def _ended(event: ToolEnded) -> Text:
    mark, colour = ("✓", "green") if event.success else ("✗", "red")
    line = Text("  ").append(mark, style=colour).append(f" {plain_line(event.tool_name)} ")
    line.append(precise(event.duration_seconds), style="dim")
    return line.append(f" {plain_line(event.error or '', 160)}", style="red") if event.error else line
