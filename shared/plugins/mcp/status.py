"""What is known about a server at one moment: immutable, so that any thread may read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from shared.plugins._visible import visible

State = Literal["connecting", "connected", "failed", "disabled"]


@dataclass(frozen=True)
class RemoteTool:
    """A tool as its server lists it."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class ServerStatus:
    """One line of the status report."""

    name: str
    state: State
    source: str = ""
    transport: str = ""
    tool_count: int = 0
    error: str = ""
    stderr: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # tools that cannot be offered, with the reason

    def __str__(self) -> str:
        facts: list[str] = [self.state]
        if self.tool_count:
            facts.append(f"{self.tool_count} tool{'s' if self.tool_count != 1 else ''}")
        if self.transport:
            facts.append(self.transport)
        facts.append(f"from {self.source}")
        lines = [f"{self.name}: {', '.join(facts)}"]
        if self.error:
            lines.append(f"  {self.error}")
        lines += [f"  left out: {reason}" for reason in self.left_out]
        if self.state == "failed":
            lines += [f"  stderr: {line}" for line in self.stderr[-5:]]
        return visible("\n".join(lines))  # much of it was written by the server
