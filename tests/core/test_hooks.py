"""The hook bus: order, transforms, refusals, and handlers that fail or hang and hurt nobody."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.tools import Lab, steps

from shared import CancelToken, FunctionCall, Plugin, PluginRegistry, ToolContext
from shared.errors import PluginError, ToolDenied
from shared.hooks import EVENTS, HookBus
from shared.toolbox import Toolbox, ToolOutput
from shared.types import ToolResult


class Hooked(Plugin):
    """A plugin with hooks."""

    name = "hooked"

    def __init__(self, *hooks: tuple[str, Callable[..., Any]]) -> None:
        super().__init__()
        self.hooks = hooks

    def get_hooks(self) -> tuple[tuple[str, Callable[..., Any]], ...]:
        return self.hooks


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def run(bus: HookBus, tool: str = "add", cancel: CancelToken | None = None, **args: Any) -> ToolResult:
    registry = PluginRegistry()
    registry.register_plugin(Lab(), expose=True)
    box = Toolbox(registry.tools(), hooks=bus)
    return box.run(FunctionCall("1", tool, args or {"a": 1}), ToolContext("main", cancel or CancelToken()))


def test_handlers_run_in_order_plain_and_async_and_see_what_the_one_before_made() -> None:
    bus = HookBus()

    async def second(content: str, conversation_id: str) -> str:
        await asyncio.sleep(0)
        return f"{content} second@{conversation_id}"

    bus.register("message_received", lambda content: f"{content} first")
    bus.register("message_received", second)
    bus.register("message_received", lambda content: None)
    assert bus.message_received("hi", "c1") == "hi first second@c1"


def test_an_unknown_point_is_answered_with_the_known_ones() -> None:
    with pytest.raises(PluginError, match="Did you mean 'after_tool_call'"):
        HookBus().register("after_tool_cal", print)


def test_the_system_prompt_can_be_changed() -> None:
    bus = HookBus()
    bus.register("before_agent_start", lambda messages, system_prompt: {"system_prompt": f"{system_prompt}+{messages}"})
    bus.register("before_agent_start", lambda messages, system_prompt: "not an object")
    bus.register("before_agent_start", lambda system_prompt: {"system_prompt": f"{system_prompt}!"})
    assert bus.before_agent_start(["m"], "base") == "base+['m']!"


def test_a_message_is_changed_or_held_back() -> None:
    bus = HookBus()
    remove = bus.register("message_sending", lambda content: content.upper())
    assert bus.message_sending("secret") == "SECRET"
    bus.register("message_sending", lambda content: None if "SECRET" in content else content)
    seen: list[str] = []
    bus.register("message_sending", lambda content: seen.append(content) or content)
    assert bus.message_sending("secret") is None
    assert seen == [], "nobody is asked about a message that is held back"
    remove()
    assert bus.message_sending("secret") == "secret"


@pytest.mark.parametrize("answer", [False, {"block": True, "reason": "not on Sundays"}])
def test_a_tool_call_is_refused_before_it_runs(answer: Any) -> None:
    bus, after = HookBus(), list[str]()
    bus.register("before_tool_call", lambda tool_name, args: answer if args == {"a": 1} else None)
    bus.register("after_tool_call", lambda tool_name, args, result: after.append(result))
    result = run(bus)
    assert result.error_kind == "denied"
    assert "refused by a hook" in str(result.result)
    assert after == []
    assert run(bus, a=2).result == 3


def test_a_refusal_may_be_raised_and_names_the_reason() -> None:
    def refuse(tool_name: str) -> None:
        raise ToolDenied(f"{tool_name} is not for today")

    bus = HookBus()
    bus.register("before_tool_call", refuse)
    assert "add is not for today" in str(run(bus).result)


def test_a_result_is_replaced_and_its_attachments_stay() -> None:
    bus = HookBus()
    bus.register("after_tool_call", lambda tool_name, args, result: f"{tool_name}({args['a']}) = {result}")
    bus.register("after_tool_call", lambda **facts: None)
    assert run(bus).result == "add(1) = 2"
    lab = next(iter(Toolbox(Lab().tools())))
    changed = bus.after(lab, {"a": 1}, ToolOutput("x", is_error=True), ToolContext("main", CancelToken()))
    assert changed == ToolOutput("add(1) = x", is_error=True)


def test_a_handler_cannot_change_the_arguments_behind_the_permission() -> None:
    bus = HookBus()
    bus.register("before_tool_call", lambda args: args.update(a=100))
    assert run(bus).result == 2


def test_one_that_raises_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    def broken(**facts: Any) -> None:
        raise RuntimeError("hook is broken")

    async def broken_later(**facts: Any) -> None:
        raise SystemExit(3)

    bus = HookBus()
    for event in EVENTS:
        bus.register(event, broken)
        bus.register(event, broken_later)
    bus.register("message_sending", lambda content: content + "!")
    with caplog.at_level(logging.WARNING):
        bus.start()
        assert run(bus).result == 2
        assert bus.message_received("hi") == "hi"
        assert bus.message_sending("hi") == "hi!"
        assert bus.before_agent_start([], "prompt") == "prompt"
        bus.subagent_start(agent_id="a")
        bus.subagent_stop(agent_id="a")
        bus.stop()
    assert "hook is broken" in caplog.text


def test_one_that_hangs_is_cut_off_and_not_called_while_it_hangs(release: threading.Event) -> None:
    bus, calls = HookBus(timeout=1), list[str]()

    def hang(content: str) -> str:
        calls.append(content)
        release.wait(20)
        return "late"

    bus.register("message_received", hang)
    bus.register("message_received", lambda content: content + "!")
    assert bus.message_received("one") == "one!"
    assert bus.message_received("two") == "two!"
    assert calls == ["one"]


def test_an_async_handler_that_hangs_is_cancelled() -> None:
    bus, ended = HookBus(timeout=1), threading.Event()

    async def hang(content: str) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "late"

    bus.register("message_sending", hang)
    assert bus.message_sending("hi") == "hi"
    assert ended.wait(20)


def test_a_cancel_ends_the_wait_for_a_handler(release: threading.Event) -> None:
    bus, token, entered = HookBus(timeout=60), CancelToken(), threading.Event()

    def hang(tool_name: str) -> None:
        entered.set()
        release.wait(20)

    bus.register("before_tool_call", hang)
    results: list[ToolResult] = []
    thread = threading.Thread(target=lambda: results.append(run(bus, cancel=token)))
    thread.start()
    assert entered.wait(20)
    token.cancel("enough")
    thread.join(20)
    assert results[0].error_kind == "cancelled"


def test_hooks_of_a_plugin_are_in_force_while_it_is_exposed() -> None:
    told: list[str] = []
    registry = PluginRegistry()
    bus = HookBus(registry)
    bus.register("message_received", lambda content: content + " own")
    bus.start()
    plugin = Hooked(
        ("on_startup", lambda: told.append("up")),
        ("on_shutdown", lambda: told.append("down")),
        ("message_received", lambda content: content + " theirs"),
    )
    registry.register_plugin(plugin, expose=True)
    assert bus.message_received("hi") == "hi own theirs"
    assert told == ["up"]
    registry.unexpose_tool("hooked")
    assert bus.message_received("hi") == "hi own"
    assert told == ["up", "down"]


def test_start_and_stop_tell_each_plugin_once() -> None:
    told: list[str] = []
    registry = PluginRegistry()
    hooks = (("on_startup", lambda: told.append("up")), ("on_shutdown", lambda: told.append("down")))
    registry.register_plugin(Hooked(*hooks), expose=True)
    bus = HookBus(registry)
    bus.stop()
    bus.start()
    bus.start()
    bus.stop()
    bus.stop()
    registry.unexpose_all()
    assert not bus.has("on_startup")
    assert told == ["up", "down"]


def test_facts_reach_handlers_by_name() -> None:
    bus, seen = HookBus(), list[Any]()
    bus.register("subagent_start", lambda agent_id, profile=None: seen.append((agent_id, profile)))
    bus.register("subagent_stop", lambda **facts: seen.append(facts))
    bus.subagent_start(agent_id="a1", profile="p", task="t")
    bus.subagent_stop(agent_id="a1", status="completed", token_usage={"total_tokens": 3})
    assert seen == [("a1", "p"), {"agent_id": "a1", "status": "completed", "token_usage": {"total_tokens": 3}}]


def test_registering_while_events_are_under_way_is_safe() -> None:
    bus, stop, failures = HookBus(), threading.Event(), list[BaseException]()

    def churn() -> None:
        try:
            while not stop.is_set():
                bus.register("message_received", lambda content: content)()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    answers = {bus.message_received("x") for _ in range(100)}
    stop.set()
    for thread in threads:
        thread.join()
    assert answers == {"x"}
    assert failures == []


def test_hooks_work_in_a_conversation() -> None:
    from shared.testing import Reply, scripted_client

    bus = HookBus()
    bus.register("after_tool_call", lambda result: f"hooked {result}")
    script = steps(Reply(calls=(("add", {"a": 1}),)), "done")
    with scripted_client(script, Lab()) as client:
        runtime = client.get_runtime()
        assert runtime.registry is not None
        runtime.configure_plugins(runtime.registry, permissions="allow", hooks=bus)
        session = runtime.create_session("m")
        assert session.send_message("go") == "done"
        results = [part.function_response for message in session.get_history() for part in message.parts]
        assert [each.result for each in results if each is not None] == ["hooked 2"]


def test_a_handler_for_one_agent_or_for_those_that_a_function_picks() -> None:
    bus = HookBus()
    heard: list[str] = []
    bus.register("message_received", lambda content: heard.append(f"a:{content}"), agent_id="a")
    bus.register("message_received", lambda content: heard.append(f"b:{content}"), agent_id=lambda each: each == "b")
    for agent in ("a", "b", "c"):
        bus.message_received(agent, agent)
    bus.register("subagent_stop", lambda agent_id: heard.append(agent_id), agent_id="parent")
    bus.subagent_stop(agent_id="mine", parent_id="parent")
    bus.subagent_stop(agent_id="theirs", parent_id="other")
    assert heard == ["a:a", "b:b", "mine"]


def test_a_handler_with_a_time_limit_of_its_own_is_told_when_nobody_waits_any_more(release: threading.Event) -> None:
    bus = HookBus(timeout=0.5)
    tokens: list[CancelToken] = []

    def slow(content: str, cancel: CancelToken) -> str:
        tokens.append(cancel)
        cancel.wait(20)
        return "late"

    bus.register("message_received", lambda content: release.wait(0.8) or f"{content}!", timeout=20)
    assert bus.message_received("patient") == "patient!"
    bus.register("message_received", slow)
    assert bus.message_received("x") == "x!"
    assert tokens[0].is_cancelled
