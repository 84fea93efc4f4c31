"""Hooks in a conversation: what is heard, what is said, what subagents do."""

from __future__ import annotations

import queue

from support.tools import steps

from shared.events import AgentOutput
from shared.hooks import HookBus
from shared.plugins.subagent import SubagentPlugin
from shared.registry import PluginRegistry
from shared.testing import Reply, scripted_client


def test_messages_are_changed_on_their_way_in_and_out() -> None:
    script = steps("secret plan")
    with scripted_client(script) as client:
        hooks = client.get_runtime().hooks
        hooks.register("message_received", lambda content: content.upper())
        hooks.register("message_sending", lambda content: content.replace("secret", "open"))
        assert client.send_message("hello") == "open plan"
        assert script.seen[0][0].text == "HELLO"
        hooks.register("message_sending", lambda content: None)
        assert client.send_message("again") == "", "a handler may hold a message back"


def test_nothing_of_an_answer_is_seen_before_its_hook_has_seen_it() -> None:
    said: list[tuple[str, str]] = []
    shown: queue.Queue[str] = queue.Queue()
    script = steps(Reply("Looking.", calls=(("list_shared_state", {}),)), "the secret plan")
    with scripted_client(script, SubagentPlugin()) as client:
        client.get_runtime().bus.subscribe(lambda event: shown.put(event.text), interest={AgentOutput})
        client.get_runtime().hooks.register("message_sending", lambda content: content.replace("secret", "open"))
        answer = client.send_message("hello", lambda source, text, mode: said.append((source, text)))
        assert answer == "the open plan"
        assert said == [("model", "Looking."), ("system", ""), ("model", "the open plan")]
        assert [shown.get(timeout=20) for _ in said] == [text for _, text in said]


def test_what_is_held_back_is_not_streamed_either() -> None:
    said: list[str] = []
    with scripted_client(steps("secret plan")) as client:
        client.get_runtime().hooks.register("message_sending", lambda content: None)
        assert client.send_message("hello", lambda source, text, mode: said.append(text)) == ""
    assert said == []


def test_startup_and_shutdown_are_told_once() -> None:
    seen: list[str] = []
    bus = HookBus()
    bus.register("on_startup", lambda: seen.append("up"))
    bus.register("on_shutdown", lambda: seen.append("down"))
    with scripted_client(steps("ok")) as client:
        client.get_runtime().configure_plugins(PluginRegistry(), permissions="allow", hooks=bus)
        assert seen == ["up"]
    assert seen == ["up", "down"]


def test_subagents_are_told_with_what_they_used() -> None:
    seen: queue.Queue[tuple[str, dict[str, object]]] = queue.Queue()
    plugin = SubagentPlugin()
    with scripted_client(steps("done"), plugin) as client:
        hooks = client.get_runtime().hooks
        hooks.register("subagent_start", lambda **facts: seen.put(("start", facts)))
        hooks.register("subagent_stop", lambda **facts: seen.put(("stop", facts)))
        answer = plugin.get_executors()["spawn_subagent"]({"task": "count"})
        told = dict([seen.get(timeout=20), seen.get(timeout=20)])
    assert told["start"]["agent_id"] == told["stop"]["agent_id"] == answer["agent_id"]
    assert told["start"]["task"] == "count"
    assert told["stop"]["status"] == "completed"
    assert told["stop"]["token_usage"] == answer["token_usage"]


def test_the_system_prompt_is_written_once_and_stays() -> None:
    script = steps("one", "two")
    asked: list[int] = []

    def write(messages: list[object], system_prompt: str) -> dict[str, str]:
        asked.append(len(messages))
        return {"system_prompt": f"Be kind. {system_prompt}".strip()}

    with scripted_client(script) as client:
        client.get_runtime().hooks.register("before_agent_start", write)
        client.send_message("a")
        client.get_session().refresh_tools()
        client.send_message("b")
    assert [request.system for request in script.requests] == ["Be kind.", "Be kind."]
    assert asked == [1]
