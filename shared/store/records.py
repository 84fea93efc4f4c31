"""Records: what the store holds, as frozen values for those who read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from shared.types import Message, TokenUsage


@dataclass(frozen=True)
class ConversationRecord:
    """A main session and everything below it."""

    id: str
    owner: int
    workspace: str
    created_at: float
    updated_at: float
    title: str = ""  # how it began
    is_live: bool = False  # whether the process that owns it still runs
    agents: int = 0
    messages: int = 0


@dataclass(frozen=True)
class AgentRecord:
    """An agent, the main one included; `spec` is what it was made from."""

    key: int
    conversation: str
    agent_id: str
    parent_id: str | None
    name: str
    depth: int
    path: str
    profile: str | None
    model: str
    provider: str
    spec: Mapping[str, Any]
    created_at: float
    closed_at: float | None = None
    cleanup: int = 0  # 1: removed as soon as its parent has its result

    @property
    def is_main(self) -> bool:
        """Whether this is the conversation with the user."""
        return self.parent_id is None


@dataclass(frozen=True)
class RunRecord:
    """One run of an agent; without `ended_at` it is queued or running in the process that owns it."""

    key: int
    agent: int
    owner: int
    status: str
    background: bool
    message: Message
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    result: Mapping[str, Any] | None = None
    told_at: float | None = None

    @property
    def is_live(self) -> bool:
        """Whether it has no result yet."""
        return self.ended_at is None


@dataclass(frozen=True)
class StoredMessage:
    """A message and when it was said; keys only grow within one conversation."""

    key: int
    message: Message
    at: float


@dataclass(frozen=True)
class ToolCallRecord:
    """A tool call; without `ended_at` its outcome is unknown."""

    key: int
    call_id: str
    name: str
    started_at: float
    ended_at: float | None = None
    is_error: bool = False
    error_kind: str | None = None
    result: str | None = None
    tells: tuple[int, ...] = ()  # runs whose results it hands to its agent


@dataclass(frozen=True)
class Cost:
    """Sums over the model calls of an agent, or of several."""

    calls: int = 0
    usage: TokenUsage = TokenUsage()
    cost_usd: Decimal = Decimal(0)
    unpriced_calls: int = 0


@dataclass(frozen=True)
class StateRecord:
    """A shared value as JSON text; `expires_at` is on the wall clock."""

    name: str
    value: str
    version: int
    expires_at: float | None = None


@dataclass(frozen=True)
class Request:
    """What another process asks of the one that owns a run: to cancel it, or to pass on a message."""

    id: int
    agent: int
    kind: str
    body: Mapping[str, Any] = field(default_factory=dict)
