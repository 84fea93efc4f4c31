"""UI hooks: events as calls of `on_…` methods on an object that has any subset of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from shared.bus import EventBus
from shared.events import (
    AgentCompleted,
    AgentCreated,
    AgentOutput,
    ContextUpdated,
    Event,
    HistoryUpdated,
    StatusChanged,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnCompleted,
)

Arguments = Callable[[Any], dict[str, Any]]


def _created(event: AgentCreated) -> dict[str, Any]:
    return {
        "agent_name": event.name,
        "agent_type": event.kind,
        "profile_name": event.profile,
        "parent_agent_id": event.parent_id,
        "icon_lines": list(event.icon) if event.icon else None,
        "created_at": datetime.fromtimestamp(event.created_at),
    }


def _completed(event: AgentCompleted) -> dict[str, Any]:
    return {
        "completed_at": datetime.fromtimestamp(event.completed_at),
        "success": event.success,
        "token_usage": event.usage.as_dict(),
        "turns_used": event.turns_used,
    }


def _turn(event: TurnCompleted) -> dict[str, Any]:
    return {
        "turn_number": event.turn_number,
        "prompt_tokens": event.usage.prompt_tokens,
        "output_tokens": event.usage.output_tokens,
        "total_tokens": event.usage.total_tokens,
        "duration_seconds": event.duration_seconds,
        "function_calls": [dict(call) for call in event.function_calls],
    }


def _context(event: ContextUpdated) -> dict[str, Any]:
    fields = ("total_tokens", "prompt_tokens", "output_tokens", "turns", "percent_used")
    return {name: getattr(event, name) for name in fields}


#: type of event → (method of the hooks object, its keyword arguments besides agent_id)
HOOKS: dict[type[Event], tuple[str, Arguments]] = {
    AgentCreated: ("on_agent_created", _created),
    AgentOutput: ("on_agent_output", lambda e: {"source": e.source, "text": e.text, "mode": e.mode}),
    StatusChanged: ("on_agent_status_changed", lambda e: {"status": e.status, "error": e.error}),
    AgentCompleted: ("on_agent_completed", _completed),
    TurnCompleted: ("on_agent_turn_completed", _turn),
    ContextUpdated: ("on_agent_context_updated", _context),
    HistoryUpdated: ("on_agent_history_updated", lambda e: {"history": list(e.history)}),
    ToolStarted: (
        "on_tool_call_start",
        lambda e: {"tool_name": e.tool_name, "tool_args": dict(e.args), "call_id": e.call_id},
    ),
    ToolEnded: (
        "on_tool_call_end",
        lambda e: {
            "tool_name": e.tool_name,
            "success": e.success,
            "duration_seconds": e.duration_seconds,
            "error_message": e.error,
            "call_id": e.call_id,
        },
    ),
    ToolProgress: ("on_tool_output", lambda e: {"call_id": e.call_id, "chunk": e.chunk}),
}


def subscribe_hooks(bus: EventBus, hooks: Any) -> Callable[[], None]:
    """Call the methods that `hooks` has, in the order of events; returns a function that ends it."""
    found = {kind: (getattr(hooks, name, None), make) for kind, (name, make) in HOOKS.items()}
    methods = {kind: (method, make) for kind, (method, make) in found.items() if callable(method)}

    def deliver(event: Event) -> None:
        method, make = methods[type(event)]
        method(agent_id=event.agent_id, **make(event))

    return bus.subscribe(deliver, interest=frozenset(methods))
