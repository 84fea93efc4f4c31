"""UI hooks: any subset of methods, called in order, by keyword, with the arguments that hosts know."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from shared import Message, Role, TokenUsage
from shared import events as ev
from shared.bus import EventBus
from shared.events import Event
from shared.testing import Reply, scripted_client
from shared.ui_hooks import HOOKS, subscribe_hooks

USAGE = TokenUsage.of(10, 5)
HISTORY = (Message.from_text(Role.USER, "hi"),)

EXPECTED: list[tuple[Event, str, dict[str, Any]]] = [
    (
        ev.AgentCreated("a", "Ada", "subagent", "reviewer", "main", ("/\\", "||", "\\/"), 0.0),
        "on_agent_created",
        {
            "agent_name": "Ada",
            "agent_type": "subagent",
            "profile_name": "reviewer",
            "parent_agent_id": "main",
            "icon_lines": ["/\\", "||", "\\/"],
            "created_at": datetime.fromtimestamp(0),
        },
    ),
    (
        ev.AgentOutput("a", "model", "Hi", "write"),
        "on_agent_output",
        {"source": "model", "text": "Hi", "mode": "write"},
    ),
    (ev.StatusChanged("a", "error", "no luck"), "on_agent_status_changed", {"status": "error", "error": "no luck"}),
    (
        ev.AgentCompleted("a", True, USAGE, 3, 0.0),
        "on_agent_completed",
        {
            "completed_at": datetime.fromtimestamp(0),
            "success": True,
            "token_usage": USAGE.as_dict(),
            "turns_used": 3,
        },
    ),
    (
        ev.TurnCompleted("a", 2, USAGE, 1.5, ({"name": "t"},)),
        "on_agent_turn_completed",
        {
            "turn_number": 2,
            "prompt_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "duration_seconds": 1.5,
            "function_calls": [{"name": "t"}],
        },
    ),
    (
        ev.ContextUpdated("a", 15, 10, 5, 2, 0.5),
        "on_agent_context_updated",
        {"total_tokens": 15, "prompt_tokens": 10, "output_tokens": 5, "turns": 2, "percent_used": 0.5},
    ),
    (ev.HistoryUpdated("a", HISTORY), "on_agent_history_updated", {"history": list(HISTORY)}),
    (
        ev.ToolStarted("a", "search", {"q": "x"}, "c1"),
        "on_tool_call_start",
        {"tool_name": "search", "tool_args": {"q": "x"}, "call_id": "c1"},
    ),
    (
        ev.ToolEnded("a", "search", False, 0.25, "broken", "c1"),
        "on_tool_call_end",
        {
            "tool_name": "search",
            "success": False,
            "duration_seconds": 0.25,
            "error_message": "broken",
            "call_id": "c1",
        },
    ),
    (ev.ToolProgress("a", "c1", "50%"), "on_tool_output", {"call_id": "c1", "chunk": "50%"}),
]


class Everything:
    """Has every method there is, and keeps what it is called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda **arguments: self.calls.append((name, arguments))


def test_every_hook_gets_its_keywords() -> None:
    bus, hooks = EventBus(), Everything()
    subscribe_hooks(bus, hooks)
    for event, _, _ in EXPECTED:
        bus.emit(event)
    bus.emit(ev.RetryScheduled("a", "not for hooks"))
    assert bus.flush(60)
    assert hooks.calls == [(name, {"agent_id": "a", **arguments}) for _, name, arguments in EXPECTED]
    assert {name for _, name, _ in EXPECTED} == {name for name, _ in HOOKS.values()}


def test_a_subset_is_enough_and_what_is_none_is_left_out() -> None:
    class Few:
        on_agent_output = None

        def __init__(self) -> None:
            self.seen: list[str] = []

        def on_tool_output(self, agent_id: str, call_id: str, chunk: str) -> None:
            self.seen.append(chunk)

    bus, few = EventBus(), Few()
    end = subscribe_hooks(bus, few)
    assert bus.wants(ev.ToolProgress)
    assert not bus.wants(ev.AgentOutput)
    bus.emit(ev.AgentOutput("a"))
    bus.emit(ev.ToolProgress("a", "c", "one"))
    assert bus.flush(60)
    end()
    bus.emit(ev.ToolProgress("a", "c", "two"))
    assert bus.flush(60)
    assert few.seen == ["one"]
    assert not bus.wants(ev.ToolProgress)


def test_an_object_without_hooks_hears_nothing() -> None:
    bus = EventBus()
    subscribe_hooks(bus, object())
    assert not bus.wants(ev.AgentOutput)


def test_a_hook_that_fails_does_not_end_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Partly:
        def __init__(self) -> None:
            self.ended = 0

        def on_tool_call_start(self, **arguments: Any) -> None:
            raise RuntimeError("view is gone")

        def on_tool_call_end(self, **arguments: Any) -> None:
            self.ended += 1

    bus, partly = EventBus(), Partly()
    subscribe_hooks(bus, partly)
    for _ in range(3):
        bus.emit(ev.ToolStarted("a", "t"))
        bus.emit(ev.ToolEnded("a", "t"))
    assert bus.flush(60)
    assert partly.ended == 3
    assert "view is gone" in caplog.text


def test_a_turn_is_reported_in_order_from_the_main_agent_on() -> None:
    hooks = Everything()
    with scripted_client([Reply("Let me see.", calls=(("nothing", {}),)), "Done."]) as client:
        client.set_ui_hooks(hooks)
        assert client.send_message("go") == "Done."
        assert client.get_runtime().bus.flush(60)
    names = [name for name, _ in hooks.calls]
    start, end = names.index("on_tool_call_start"), names.index("on_tool_call_end")
    assert names[0] == "on_agent_created"
    assert names.index("on_agent_output") < start < end < names.index("on_agent_turn_completed")
    assert all(arguments["agent_id"] == "main" for _, arguments in hooks.calls)
    assert hooks.calls[end][1]["success"] is False
