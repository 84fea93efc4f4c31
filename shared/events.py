"""What a run reports: frozen events, delivered by the bus to hooks, trace and live views."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.types import Message, Part, TokenUsage

_UNTRACED = {"traced": False}  # of fields that the trace leaves out: what was said, and what it writes anyway


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an agent, at a time (in seconds, as `time.time()` gives it)."""

    agent_id: str
    at: float = field(default_factory=time.time, kw_only=True, compare=False, metadata=_UNTRACED)


@dataclass(frozen=True, slots=True)
class AgentCreated(Event):
    """An agent exists; nothing has run yet."""

    name: str = ""
    kind: str = "main"  # main or subagent
    profile: str | None = None
    parent_id: str | None = None
    icon: tuple[str, ...] | None = None
    created_at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class AgentOutput(Event):
    """Text for a person; mode is write (a new block), append, or flush."""

    source: str = "model"
    text: str = ""
    mode: str = "append"


@dataclass(frozen=True, slots=True)
class StatusChanged(Event):
    """The agent's status is another one."""

    status: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AgentCompleted(Event):
    """A run reached its final status; exactly one per run."""

    success: bool = True
    usage: TokenUsage = TokenUsage()
    turns_used: int = 0
    completed_at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class RunQueued(Event):
    """A run of a subagent was asked for: by the call `call_id` of its parent, or by the host (no call)."""

    name: str = ""
    profile: str | None = None
    parent_id: str = ""
    root_id: str = ""  # the main session of its tree
    call_id: str = ""
    background: bool = False
    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class TurnStarted(Event):
    """A user turn begins; without a message the model goes on from where the history ends."""

    name: str = ""
    provider: str = ""
    model: str = ""
    message: Message | None = field(default=None, metadata=_UNTRACED)


@dataclass(frozen=True, slots=True)
class TurnCompleted(Event):
    """A user turn ended; status is completed, failed, or why the answer is not whole."""

    turn_number: int = 0
    usage: TokenUsage = TokenUsage()
    duration_seconds: float = 0.0
    function_calls: tuple[Mapping[str, Any], ...] = ()
    status: str = "completed"


@dataclass(frozen=True, slots=True)
class ContextUpdated(Event):
    """How full the context is now."""

    total_tokens: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0
    percent_used: float = 0.0


@dataclass(frozen=True, slots=True)
class HistoryUpdated(Event):
    """The history after a turn."""

    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolStarted(Event):
    """A tool call begins."""

    tool_name: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolEnded(Event):
    """A tool call has its result."""

    tool_name: str = ""
    success: bool = True
    duration_seconds: float = 0.0
    error: str | None = None
    call_id: str = ""
    error_kind: str | None = None  # denied, cancelled, budget; None for any other failure
    result: Any = field(default=None, metadata=_UNTRACED)


@dataclass(frozen=True, slots=True)
class ToolProgress(Event):
    """Live output of a running tool."""

    call_id: str = ""
    chunk: str = ""


@dataclass(frozen=True, slots=True)
class ModelCallEnded(Event):
    """A model call ended, well or badly, after all its attempts."""

    provider: str = ""
    model: str = ""
    purpose: str = "turn"
    usage: TokenUsage = TokenUsage()
    duration_seconds: float = 0.0
    retries: int = 0
    error: str | None = None
    finish_reason: str | None = None
    response_model: str | None = None
    parts: tuple[Part, ...] = field(default=(), metadata=_UNTRACED)


@dataclass(frozen=True, slots=True)
class RetryScheduled(Event):
    """A model call failed and will be tried again after `delay` seconds."""

    message: str = ""
    attempt: int = 0
    max_attempts: int = 0
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class ContextCollected(Event):
    """Context collection shortened the history."""

    strategy: str = ""
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    notification: str | None = None


@dataclass(frozen=True, slots=True)
class PermissionAsked(Event):
    """A person is asked for permission."""

    request_id: str = ""
    tool_name: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PermissionResolved(Event):
    """A question was answered, timed out or was withdrawn."""

    request_id: str = ""
    tool_name: str = ""
    granted: bool = False
    method: str = ""


@dataclass(frozen=True, slots=True)
class StoreFailed(Event):
    """Runs cannot be stored at the moment; the work goes on."""

    error: str = ""
