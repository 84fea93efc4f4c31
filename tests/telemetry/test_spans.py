"""What agents do as spans: the tree, errors, cancels, background work, content only for those who want it."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra 'otel' is not installed")

from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode
from support.engine import in_thread, profiles
from support.labs import DIALECTS, Dialect, WireLab
from support.spans import attributes, spans_of
from support.stress import run_threads, wait_for
from support.subagents import Hold, Play, calling, last_answer, spawning, staged, task_of
from support.tools import Lab

from shared import JaatoClient
from shared.errors import AuthFailed
from shared.plugins.subagent import SubagentProfile
from shared.providers.script import Reply
from shared.testing import scripted_client

DEEP = {"max_depth": 3, "max_children": 64, "max_concurrent": 64}


def nested(request: Any) -> Any:
    """A child that spawns a grandchild, once, if its task says so; grandchildren add."""
    if request.messages[-1].results:
        return f"{task_of(request)} is done"
    if task_of(request) == "middle":
        return spawning("leaf", name="leaf", inline_config={"plugins": ["lab"]})
    return calling(("add", {"a": 1, "b": 2}))


def test_a_tree_of_three_levels() -> None:
    config = {**DEEP, **profiles(SubagentProfile(name="boss", description="leads", plugins=("lab", "subagent")))}
    play = Play([spawning("middle", profile="boss", name="middle"), "all done"], nested)
    with staged(play, Lab(), config=config) as stage, spans_of(stage.client) as spans:
        assert stage.ask() == "all done"
        assert spans.path(spans.one("execute_tool add")) == [
            "invoke_agent main",
            "execute_tool spawn_subagent",
            "invoke_agent middle",
            "execute_tool spawn_subagent",
            "invoke_agent leaf",
            "execute_tool add",
        ]
        assert len({span.context.trace_id for span in spans.all}) == 1
        assert len(spans.named("chat script-model")) == 6
        assert {spans.path(span)[-2] for span in spans.named("chat")} == {
            "invoke_agent main",
            "invoke_agent middle",
            "invoke_agent leaf",
        }
        assert spans.open == []
        for span in spans.all:
            assert span.start_time <= span.end_time
        assert len({attributes(span)["gen_ai.conversation.id"] for span in spans.all}) == 1


def test_names_and_attributes() -> None:
    with staged(Play([spawning("x", name="helper"), "done"], "hi")) as stage, spans_of(stage.client) as spans:
        stage.ask()
        main, helper = spans.one("invoke_agent main"), spans.one("invoke_agent helper")
        tool, [first, *_] = spans.one("execute_tool"), spans.named("chat")
    told = attributes(helper)
    assert told["gen_ai.operation.name"] == "invoke_agent"
    assert (told["gen_ai.provider.name"], told["gen_ai.request.model"]) == ("script", "script-model")
    assert told["gen_ai.agent.name"] == "helper"
    assert told["gen_ai.agent.id"] != "helper"
    assert told["jaato.run.status"] == "completed"
    assert told["jaato.agent.parent_id"] == "main"
    assert told["jaato.run.turns"] == 1
    assert told["gen_ai.usage.output_tokens"] > 0
    assert attributes(main)["gen_ai.usage.input_tokens"] > 0
    assert attributes(tool)["gen_ai.tool.name"] == "spawn_subagent"
    assert attributes(tool)["gen_ai.tool.call.id"].startswith("call_")
    assert attributes(tool)["gen_ai.tool.type"] == "function"
    chat = attributes(first)
    assert chat["gen_ai.operation.name"] == "chat"
    assert chat["gen_ai.response.finish_reasons"] == ("tool_use",)
    assert chat["gen_ai.usage.input_tokens"] > 0
    assert {span.kind for span in (main, helper, tool, first)} == {SpanKind.INTERNAL}
    assert all(span.status.status_code is StatusCode.UNSET for span in (main, helper, tool, first))


def test_parallel_children_hang_under_their_own_calls() -> None:
    three = calling(*(("spawn_subagent", {"task": f"t{n}", "name": f"c{n}"}) for n in range(3)))
    with staged(Play([three, "done"], "hi")) as stage, spans_of(stage.client) as spans:
        stage.ask()
        tools = {span.context.span_id: span for span in spans.named("execute_tool")}
        parents = [tools[span.parent.span_id] for span in spans.named("invoke_agent c")]
        assert len({span.context.span_id for span in parents}) == 3
        assert spans.open == []


def test_a_failing_tool_and_a_denied_one() -> None:
    both = calling(("crash", {"text": "token=sk-secret-123456"}), ("add", {"a": "no number"}))
    with scripted_client([both, "sorry"], Lab()) as client, spans_of(client) as spans:
        client.send_message("go")
        crash, add = spans.one("execute_tool crash"), spans.one("execute_tool add")
        assert (crash.status.status_code, attributes(crash)["error.type"]) == (StatusCode.ERROR, "tool_error")
        assert "RuntimeError" in (crash.status.description or "")
        assert "sk-secret-123456" not in (crash.status.description or "")
        assert attributes(add)["error.type"] == "tool_error"
        assert spans.one("invoke_agent").status.status_code is StatusCode.UNSET
    refused = [calling(("add", {"a": 1})), "no"]
    with scripted_client(refused, Lab(), permissions="deny") as client, spans_of(client) as spans:
        client.send_message("go")
        assert attributes(spans.one("execute_tool add"))["error.type"] == "denied"


def test_a_failing_model() -> None:
    with scripted_client([AuthFailed("no key")]) as client, spans_of(client) as spans:
        with pytest.raises(AuthFailed):
            client.send_message("go")
        for span in (spans.one("chat"), spans.one("invoke_agent main")):
            assert span.status.status_code is StatusCode.ERROR
            assert attributes(span)["error.type"] == "AuthFailed"
        assert attributes(spans.one("invoke_agent"))["jaato.run.status"] == "failed"
        assert spans.open == []


def test_a_failing_child() -> None:
    play = Play([spawning("x", name="helper"), "done"], AuthFailed("no key"))
    with staged(play) as stage, spans_of(stage.client) as spans:
        stage.ask()
        helper = attributes(spans.one("invoke_agent helper"))
        assert (helper["jaato.run.status"], helper["error.type"]) == ("failed", "AuthFailed")
        assert spans.one("invoke_agent main").status.status_code is StatusCode.UNSET


def test_cancel_of_a_tree() -> None:
    def waits(request: Any) -> Any:
        return calling(("wait", {}))

    lab = Lab()
    parent = [spawning("x", name="helper", inline_config={"plugins": ["lab"]}), "done"]
    with staged(Play(parent, waits), lab) as stage, spans_of(stage.client) as spans:
        turn = in_thread(stage.ask)
        assert lab.entered.acquire(timeout=20)
        stage.client.stop()
        turn()
        wait_for(lambda: not spans.open)
        ended = {span.name: attributes(span) for span in spans.all}
        assert ended["invoke_agent main"]["error.type"] == "cancelled"
        assert ended["invoke_agent helper"]["error.type"] == "cancelled"
        assert ended["execute_tool wait"]["error.type"] == "cancelled"


def test_a_tool_that_ignores_its_cancel_leaves_no_open_span() -> None:
    lab = Lab()
    with scripted_client([calling(("stubborn", {})), "done"], lab) as client, spans_of(client) as spans:
        turn = in_thread(lambda: client.send_message("go"))
        assert lab.entered.acquire(timeout=20)
        client.stop()
        turn()
        assert spans.open == []
        assert attributes(spans.one("execute_tool stubborn"))["error.type"] == "cancelled"
        lab.release.set()
        wait_for(lambda: lab.ran == ["stubborn"])
        assert spans.open == []


def test_background_children_outlive_the_turn_and_stay_in_its_trace() -> None:
    hold = Hold("late")
    play = Play([spawning("x", name="helper", background=True), "on its way"], hold)
    with staged(play) as stage, spans_of(stage.client) as spans:
        stage.ask()
        hold.wait_entered()
        wait_for(lambda: spans.open == ["invoke_agent helper"])
        hold.release()
        wait_for(lambda: not spans.open)
        helper = spans.one("invoke_agent helper")
        assert spans.path(helper) == ["invoke_agent main", "execute_tool spawn_subagent", "invoke_agent helper"]
        assert attributes(helper)["jaato.run.background"] is True
        assert spans.path(spans.named("chat")[-1])[-2:] == ["invoke_agent helper", "chat script-model"]


def test_a_continued_child_is_a_second_run_under_the_second_call() -> None:
    def parent(request: Any) -> Any:
        if not request.messages[-1].results:
            return spawning("x", name="helper")
        answer = last_answer(request)
        said = sum(bool(message.results) for message in request.messages)
        return (
            calling(("continue_subagent", {"agent_id": answer["agent_id"], "message": "more"})) if said == 1 else "done"
        )

    with staged(Play(parent, "hi")) as stage, spans_of(stage.client) as spans:
        stage.ask()
        paths = [spans.path(span) for span in spans.named("invoke_agent helper")]
    assert [path[1] for path in paths] == ["execute_tool spawn_subagent", "execute_tool continue_subagent"]


def test_spawns_by_the_host_are_roots() -> None:
    with staged() as stage, spans_of(stage.client) as spans:
        assert stage.spawn("x", name="helper")["success"]
        wait_for(lambda: bool(spans.named("invoke_agent helper")))
        assert spans.path(spans.one("invoke_agent helper")) == ["invoke_agent helper"]


def test_fifty_at_once() -> None:
    def child(request: Any) -> Any:
        return "sum" if request.messages[-1].results else calling(("add", {"a": 1}), ("add", {"a": 2}))

    inline = {"inline_config": {"plugins": ["lab"]}}
    fifty = calling(*(("spawn_subagent", {"task": f"t{n}", "name": f"c{n}", **inline}) for n in range(50)))
    with staged(Play([fifty, "done"], child), Lab(), config=DEEP) as stage, spans_of(stage.client) as spans:
        stage.ask()
        assert spans.open == []
        assert len(spans.named("invoke_agent c")) == 50
        assert len(spans.named("execute_tool add")) == 100
        for span in spans.named("execute_tool add"):
            path = spans.path(span)
            assert (path[0], path[1], len(path)) == ("invoke_agent main", "execute_tool spawn_subagent", 4)
        by_id = {span.context.span_id: span for span in spans.all}
        for span in spans.all:
            if span.parent is not None:
                assert by_id[span.parent.span_id].start_time <= span.start_time


def test_many_clients_at_once_do_not_mix() -> None:
    def work(number: int) -> None:
        with staged(Play([spawning("x", name=f"h{number}"), "done"], "hi")) as stage, spans_of(stage.client) as spans:
            stage.ask()
            assert [span.name for span in spans.named("invoke_agent h")] == [f"invoke_agent h{number}"]
            assert spans.open == []

    run_threads(8, work)


def test_nothing_that_was_said_is_told_unless_asked_for() -> None:
    script = [calling(("add", {"a": 987654321, "b": 1}), text="a private thought"), "a private answer"]
    with scripted_client(script, Lab()) as client, spans_of(client) as spans:
        client.send_message("a private question")
        said = json.dumps([attributes(span) for span in spans.all])
    assert "private" not in said
    assert "987654321" not in said


def test_content_for_those_who_want_it() -> None:
    script = [
        Reply("a thought", (("add", {"a": 41, "b": 1}),), thought="hm"),
        "the key is sk-secret-123456789",
    ]
    with scripted_client(script, Lab()) as client, spans_of(client, content=True) as spans:
        client.send_message("a question")
        main, tool = attributes(spans.one("invoke_agent")), attributes(spans.one("execute_tool"))
        first = attributes(spans.named("chat")[0])
    assert json.loads(main["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "a question"}]}
    ]
    [answer] = json.loads(main["gen_ai.output.messages"])
    assert answer["finish_reason"] == "stop"
    assert "sk-secret" not in json.dumps(answer)
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"a": 41, "b": 1}
    assert tool["gen_ai.tool.call.result"] == "42"
    [said] = json.loads(first["gen_ai.output.messages"])
    assert [part["type"] for part in said["parts"]] == ["reasoning", "text", "tool_call"]


class Broken(SpanExporter):
    """An exporter that raises, always."""

    def export(self, spans: Any) -> Any:
        raise RuntimeError("no collector")


def test_a_broken_exporter_harms_nobody() -> None:
    with staged(Play([spawning("x"), "done"], "hi")) as stage, spans_of(stage.client, Broken()) as spans:
        assert stage.ask() == "done"
        assert len(spans.named("invoke_agent")) == 2
        assert spans.open == []


class Slow(SpanExporter):
    """An exporter that waits for the test."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def export(self, spans: Any) -> Any:
        assert self.release.wait(20)
        return SpanExportResult.SUCCESS


def test_a_slow_exporter_holds_nobody_up() -> None:
    slow = Slow()
    with scripted_client(["one", "two"]) as client, spans_of(client, slow) as spans:
        assert [client.send_message("a"), client.send_message("b")] == ["one", "two"]
        assert not slow.release.is_set()
        slow.release.set()
        wait_for(lambda: len(spans.named("invoke_agent")) == 2)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_the_model_that_answered_is_told_by_every_vendor(dialect: Dialect) -> None:
    names = {"anthropic": "anthropic", "google_genai": "gcp.gen_ai", "openai_compatible": "openai"}
    with ExitStack() as stack:
        lab = WireLab(dialect, stack)
        client = JaatoClient(provider_name=dialect.name)
        client.register_provider(dialect.name, lab.answering(Reply("hi")))
        client.connect(model=dialect.model)
        spans = stack.enter_context(spans_of(client))
        client.send_message("go")
        chat = spans.one("chat")
    told = attributes(chat)
    assert chat.name == f"chat {dialect.model}"
    assert chat.kind is SpanKind.CLIENT
    assert told["gen_ai.provider.name"] == names[dialect.name]
    assert told["gen_ai.response.model"]
    assert told["gen_ai.response.finish_reasons"] == ("stop",)


def test_leaving_ends_what_is_open_and_tells_no_more() -> None:
    hold = Hold()
    play = Play([spawning("x", name="helper", background=True), "on its way"], hold)
    with staged(play) as stage, spans_of(stage.client) as spans:
        stage.ask()
        hold.wait_entered()
        spans.detach()
        assert spans.open == []
        assert attributes(spans.one("invoke_agent helper"))["jaato.run.status"] == "interrupted"
        told = len(spans.all)
        hold.release()
        stage.call("wait_for_subagents", timeout_seconds=20)
        assert len(spans.all) == told


def test_two_turns_are_two_traces_of_one_conversation() -> None:
    with scripted_client(["one", "two"]) as client, spans_of(client) as spans:
        client.send_message("a")
        client.send_message("b")
        first, second = spans.named("invoke_agent")
    assert first.context.trace_id != second.context.trace_id
    assert attributes(first)["gen_ai.conversation.id"] == attributes(second)["gen_ai.conversation.id"]


def test_a_summary_is_told_with_its_purpose() -> None:
    with scripted_client(["a summary"]) as client, spans_of(client) as spans:
        client.get_session().generate("Summarise this.", purpose="summary")
        [chat] = spans.named("chat")
    assert attributes(chat)["jaato.call.purpose"] == "summary"
