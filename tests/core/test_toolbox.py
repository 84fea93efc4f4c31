"""Toolbox.run never raises: whatever a tool, a gate or a hook does becomes the call's one result."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from shared import Attachment, CancelToken, FunctionCall, Message, Part, Role, ToolContext, ToolOutput, ToolResult
from shared.errors import CancelledException, PluginError, ToolDenied, ToolError
from shared.toolbox import Toolbox, clip
from shared.tools import Tool
from shared.types import unparsed_args


def run(fn: Callable[..., Any], args: Mapping[str, Any] | None = None, **options: Any) -> ToolResult:
    token = options.pop("cancel", None) or CancelToken()
    made = Tool.from_function(
        fn, **{key: options.pop(key) for key in list(options) if key.endswith(("agent", "seconds"))}
    )
    return Toolbox([made], **options).run(FunctionCall("c1", made.name, args or {}), ToolContext("main", token))


def giving(value: Any) -> Callable[[], Any]:
    def give() -> Any:
        return value

    return give


def raising(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


# -- what comes back ---------------------------------------------------------------------------------


class Odd:
    def __repr__(self) -> str:
        return "an odd object"


@pytest.mark.parametrize(
    ("value", "kept", "text"),
    [
        ("text", "text", "text"),
        ("", "", ""),
        (None, None, "null"),
        (True, True, "true"),
        (3, 3, "3"),
        ({"a": [1, "ä"]}, {"a": [1, "ä"]}, '{"a": [1, "ä"]}'),
        ([1, (2, 3)], [1, [2, 3]], "[1, [2, 3]]"),
        (b"plain \xff", "plain \ufffd", "plain \ufffd"),
        (Odd(), "an odd object", "an odd object"),
        ({"when": Odd()}, {"when": "an odd object"}, '{"when": "an odd object"}'),
        ({(1, 2): "x"}, "{(1, 2): 'x'}", "{(1, 2): 'x'}"),
        ({"ratio": float("nan")}, "{'ratio': nan}", "{'ratio': nan}"),
    ],
    ids=repr,
)
def test_any_value_becomes_text_or_plain_json(value: Any, kept: Any, text: str) -> None:
    result = run(giving(value))
    assert not result.is_error
    assert result.result == kept
    assert result.text == text
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_value_that_contains_itself_is_still_a_result() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert run(giving(loop)).text == "[[...]]"


def test_attachments_come_along() -> None:
    image = Attachment("image/png", b"\x89PNG", "plot.png")
    result = run(giving(ToolOutput({"rows": 3}, (image,))))
    assert result.attachments == (image,)
    assert result.result == {"rows": 3}
    failed = run(giving(ToolOutput("no luck", [image], is_error=True)))  # type: ignore[arg-type]
    assert failed.is_error
    assert failed.attachments == (image,), "a list will do"


def test_long_results_keep_their_head_and_their_end() -> None:
    text = "HEAD" + "x" * 100_000 + "TAIL"
    result = run(giving(text), result_chars=1_000)
    assert len(result.text) <= 1_000
    assert result.text.startswith("HEAD")
    assert result.text.endswith("TAIL")
    assert "99,008 of 100,008 characters left out" in result.text


def test_a_huge_object_is_cut_as_text() -> None:
    result = run(giving({"rows": ["row"] * 50_000, "end": "LAST"}), result_chars=2_000)
    assert isinstance(result.result, str)
    assert len(result.text) <= 2_000
    assert "LAST" in result.text


def test_long_errors_are_cut_too() -> None:
    for error in (ValueError("v" * 100_000), ToolError("t" * 100_000)):
        result = run(raising(error), result_chars=1_000)
        assert result.is_error
        assert len(result.text) <= 1_000


@pytest.mark.parametrize("limit", [0, 1, 10, 80, 1_000])
def test_clipping_never_exceeds_its_limit(limit: int) -> None:
    assert len(clip("abc" * 1_000, limit)) <= limit


# -- what can go wrong -------------------------------------------------------------------------------


def test_an_unknown_tool_is_answered_with_what_there_is() -> None:
    def read_file(path: str) -> str:
        return path

    box = Toolbox([Tool.from_function(read_file)])
    result = box.run(FunctionCall("c1", "read_fil", {}), ToolContext("main", CancelToken()))
    assert result.is_error
    assert result.text == "Error: unknown tool 'read_fil'. Did you mean 'read_file'? Known: read_file."
    assert (result.call_id, result.name) == ("c1", "read_fil")


def test_arguments_that_were_not_json_are_told_so_and_nothing_runs() -> None:
    ran: list[str] = []

    def touch() -> None:
        ran.append("x")

    result = run(touch, unparsed_args('{"a": ', "line 1: unexpected end"))
    assert result.is_error
    assert "not valid JSON (line 1: unexpected end)" in result.text
    assert ran == []


def test_a_very_deep_argument_is_refused_or_run_but_never_raises() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(5_000):
        inner["a"] = {}
        inner = inner["a"]

    def take(value: dict[str, dict[str, str]]) -> str:
        return "ran"

    assert run(take, {"value": deep}).is_error


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad luck"), "Error: fail failed: ValueError: bad luck"),
        (ToolError("no such row"), "Error: no such row"),
        (SystemExit(2), "Error: fail failed: SystemExit: 2"),
        (asyncio.CancelledError(), "Error: fail failed: CancelledError: "),
        (GeneratorExit(), "Error: fail failed: GeneratorExit: "),
        (Unspeakable(), "Error: fail failed: Unspeakable"),
        (RecursionError("too deep"), "Error: fail failed: RecursionError: too deep"),
        (MemoryError(), "Error: fail failed: MemoryError: "),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_tool_raises_is_its_result(error: BaseException, text: str) -> None:
    result = run(raising(error))
    assert result.is_error
    assert result.text == text


def test_an_interrupt_or_a_cancel_inside_a_tool_is_a_cancelled_call() -> None:
    for error in (KeyboardInterrupt(), CancelledException("child stopped")):
        result = run(raising(error))
        assert result.is_error
        assert result.text.startswith("Cancelled")


def test_sys_exit_in_a_coroutine_or_a_timed_tool_does_not_end_anything() -> None:
    def leave() -> None:
        sys.exit("bye")

    async def leave_later() -> None:
        raise LookupError("bye")

    assert "bye" in run(leave, timeout_seconds=30).text
    assert "bye" in run(leave_later, timeout_seconds=30).text


def test_a_slow_tool_is_stopped_when_its_time_is_up() -> None:
    cancelled = threading.Event()

    def slow(context: ToolContext) -> str:
        assert context.cancel.wait(60)
        cancelled.set()
        return "too late"

    result = run(slow, timeout_seconds=0.05)
    assert result.is_error
    assert result.text == "Error: slow took longer than 0.05 s and was stopped"
    assert cancelled.wait(60), "the tool is told through its token"


def test_a_timeout_leaves_the_callers_token_alone() -> None:
    token = CancelToken()

    def slow(context: ToolContext) -> None:
        context.cancel.wait(60)

    run(slow, cancel=token, timeout_seconds=0.01)
    assert not token.is_cancelled


def test_cancelled_before_it_began_nothing_runs() -> None:
    token, ran = CancelToken(), []
    token.cancel("enough")

    def touch() -> None:
        ran.append(1)

    result = run(touch, cancel=token)
    assert result.is_error
    assert result.text == "Cancelled (enough): the call did not finish; whether it had effects is unknown."
    assert ran == []


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_cancelled_while_it_runs(seconds: float | None) -> None:
    token, started = CancelToken(), threading.Event()

    async def forever() -> None:
        started.set()
        await asyncio.sleep(3600)

    threading.Thread(target=lambda: started.wait(60) and token.cancel("stop"), daemon=True).start()
    result = run(forever, cancel=token, timeout_seconds=seconds)
    assert result.text.startswith("Cancelled (stop)")


def test_a_tool_with_a_time_limit_that_cannot_be_interrupted_is_left_behind_on_cancel() -> None:
    token, started, release = CancelToken(), threading.Event(), threading.Event()

    def stubborn() -> None:
        started.set()
        release.wait(60)

    threading.Thread(target=lambda: started.wait(60) and token.cancel("stop"), daemon=True).start()
    result = run(stubborn, cancel=token, timeout_seconds=60)
    assert not release.is_set()
    release.set()
    assert result.text.startswith("Cancelled (stop)")


# -- who may call ------------------------------------------------------------------------------------


def test_a_tool_bound_to_an_agent_names_the_agent_needed() -> None:
    def deploy() -> str:
        return "done"

    denied = run(deploy, required_agent="deployer", profile="reviewer")
    assert denied.is_error
    assert "'deployer'" in denied.text
    assert run(deploy, required_agent="deployer", profile="deployer").text == "done"
    assert run(deploy, required_agent="deployer").is_error


class Guard:
    """A gate that answers with what a test tells it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def check(self, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> None:
        self.asked.append((tool.name, dict(args)))
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [ToolDenied("not today"), RuntimeError("the policy is broken")])
def test_a_gate_that_denies_or_fails_keeps_the_tool_from_running(error: Exception) -> None:
    ran: list[int] = []

    def touch(a: int) -> None:
        ran.append(a)

    gate = Guard(error)
    result = run(touch, {"a": 1}, gate=gate)
    assert result.is_error
    assert str(error) in result.text
    assert gate.asked == [("touch", {"a": 1})]
    assert ran == []


def test_bad_arguments_never_reach_the_gate() -> None:
    gate = Guard()

    def touch(a: int) -> None: ...

    run(touch, {"a": "x"}, gate=gate)
    assert gate.asked == []


class Hooks:
    """Hooks that do what a test tells them."""

    def __init__(
        self, before: Callable[[], Any] = lambda: None, after: Callable[[Any], Any] = lambda value: value
    ) -> None:
        self._before, self._after = before, after
        self.seen: list[str] = []

    def before(self, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> None:
        self.seen.append("before")
        self._before()

    def after(self, tool: Tool, args: Mapping[str, Any], result: Any, context: ToolContext) -> Any:
        self.seen.append(f"after {result}")
        return self._after(result)


def test_hooks_see_the_call_and_may_change_its_result() -> None:
    hooks = Hooks(after=lambda value: value + "!")
    assert run(giving("done"), hooks=hooks).text == "done!"
    assert hooks.seen == ["before", "after done"]


def test_a_hook_may_refuse_the_call_or_withhold_its_result() -> None:
    ran: list[int] = []

    def touch() -> str:
        ran.append(1)
        return "secret"

    denied = run(touch, hooks=Hooks(before=raising(ToolDenied("blocked by policy"))))
    assert denied.text == "Error: blocked by policy"
    assert ran == []

    def withhold(value: Any) -> Any:
        raise ToolDenied("not for you")

    withheld = run(touch, hooks=Hooks(after=withhold))
    assert withheld.text == "Error: not for you"
    assert ran == [1]


@pytest.mark.parametrize("error", [ToolError("key: s3cret"), ValueError("s3cret")], ids=["told", "crashed"])
def test_hooks_see_how_a_tool_failed(error: Exception) -> None:
    hooks = Hooks(after=lambda value: replace(value, result=value.result.replace("s3cret", "[hidden]")))
    failed = run(raising(error), hooks=hooks)
    assert failed.is_error
    assert "s3cret" not in failed.text
    assert "[hidden]" in failed.text


def test_a_hook_that_fails_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    def fail(value: Any = None) -> Any:
        raise RuntimeError("broken hook")

    with caplog.at_level(logging.ERROR):
        assert run(giving("done"), hooks=Hooks(before=fail, after=fail)).text == "done"
    assert caplog.text.count("broken hook") >= 2


# -- what the history keeps --------------------------------------------------------------------------


def test_a_tool_that_changes_its_arguments_does_not_change_the_history() -> None:
    def spoil(items: list[Any], options: dict[str, Any]) -> str:
        items.append("added")
        items[0]["inner"].clear()
        options["deep"]["list"].append(1)
        options.clear()
        return "done"

    args = {"items": [{"inner": {"a": 1}}], "options": {"deep": {"list": []}}}
    before = json.dumps(args)
    message = Message(Role.MODEL, (Part(function_call=FunctionCall("c1", "spoil", args)),))
    result = Toolbox([Tool.from_function(spoil)]).run(message.function_calls[0], ToolContext("main", CancelToken()))
    assert result.text == "done"
    assert json.dumps(message.function_calls[0].args) == before


def test_a_tool_that_changes_its_result_later_does_not_change_the_history() -> None:
    state: dict[str, Any] = {"steps": ["one"]}
    result = run(giving(state))
    state["steps"].append("two")
    assert result.result == {"steps": ["one"]}


def test_two_tools_of_one_name_are_refused_and_both_owners_named() -> None:
    def search(query: str) -> str:
        return query

    with pytest.raises(PluginError, match=r"tool 'search' is offered by both 'one' and 'two'"):
        Toolbox([Tool.from_function(search, plugin="one"), Tool.from_function(search, plugin="two")])


def test_names_order_and_lookup() -> None:
    def a() -> None: ...
    def b() -> None: ...

    box = Toolbox([Tool.from_function(b), Tool.from_function(a)])
    assert box.names == ["b", "a"]
    assert [each.name for each in box] == ["b", "a"]
    assert [schema.name for schema in box.toolset.schemas] == ["b", "a"]
    assert box.get("a") is not None
    assert box.get("c") is None
