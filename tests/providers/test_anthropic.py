"""The Anthropic provider against a loopback server that speaks the Messages API."""

from __future__ import annotations

import itertools
import json
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import anthropic_wire as api
from support.wire import PATIENCE, Answer, Call, Reply, Request, Script, Step, Usage, WireServer, sse

from shared.cancel import CancelToken
from shared.errors import (
    AuthFailed,
    BadRequest,
    CancelledException,
    ConfigError,
    ConnectionFailed,
    ContextOverflow,
    IncompleteStream,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    Refused,
    ServerFailed,
)
from shared.executors.threads import workers
from shared.providers.anthropic import AnthropicProvider
from shared.providers.base import ModelRequest, ModelSettings, Provider, ProviderConfig, ToolSet
from shared.types import (
    Attachment,
    FinishReason,
    FunctionCall,
    Message,
    Part,
    ProviderResponse,
    Role,
    Signature,
    TokenUsage,
    ToolResult,
    ToolSchema,
)

MODEL = "claude-sonnet-5-5"
TOOLS = [
    ToolSchema("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSchema("list", "List files.", {"type": "object", "properties": {}}),
]
FULL = Reply(
    text="It is done, naïve ☃.",
    calls=(Call("toolu_1", "read", {"path": "a b.txt", "n": [1, None]}), Call("toolu_2", "list")),
    thought="Let me see.",
    signature="c2lnbmF0dXJl",
    redacted="cmVkYWN0ZWQ=",
    usage=Usage(input=7, output=40, cache_read=100, cache_write=20, thinking=9),
)


def user(text: str) -> Message:
    return Message.from_text(Role.USER, text)


def request(*messages: Message, **fields: Any) -> ModelRequest:
    defaults: dict[str, Any] = {"model": MODEL, "system": "Be brief.", "tools": ToolSet(TOOLS), "stream": True}
    return ModelRequest(messages=messages or (user("hello"),), **{**defaults, **fields})


class Session:
    """A provider, its server, and what it streamed."""

    def __init__(self, server: WireServer, **config: Any) -> None:
        self.server = server
        self.provider = AnthropicProvider(ProviderConfig(api_key="sk-test", base_url=server.url, **config))
        self.chunks: list[tuple[str, str]] = []

    def ask(self, *messages: Message, cancel: CancelToken | None = None, **fields: Any) -> ProviderResponse:
        return self.provider.generate(
            request(*messages, **fields),
            cancel=cancel or CancelToken(),
            on_chunk=lambda kind, piece: self.chunks.append((kind, piece)),
        )

    def sent(self, index: int = -1) -> dict[str, Any]:
        return dict(self.server.requests[index].json)

    def sent_messages(self) -> list[dict[str, Any]]:
        """The messages of the last request, without cache marks."""
        return list(without_marks(self.sent()["messages"]))


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_marks(item) for key, item in value.items() if key != "cache_control"}
    return [without_marks(item) for item in value] if isinstance(value, list) else value


Open = Callable[..., Session]


@pytest.fixture
def open_session() -> Iterator[Open]:
    """Sessions with a server that plays the given steps (the last one again and again)."""
    opened: list[Session] = []

    def start(*steps: Step, config: dict[str, Any] | None = None, **server: Any) -> Session:
        wire = WireServer(Script(api.render, *steps, repeat=True), **server).__enter__()
        opened.append(Session(wire, **(config or {})))
        return opened[-1]

    yield start
    for session in opened:
        session.provider.close()
        session.server.__exit__()


@pytest.fixture(params=[True, False], ids=["stream", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


# --- answers


def test_a_full_answer_is_the_same_streamed_and_whole(open_session: Open, stream: bool) -> None:
    session = open_session(FULL)
    response = session.ask(stream=stream)
    assert response.parts == (
        Part(thought="Let me see.", signature=Signature("anthropic", "c2lnbmF0dXJl")),
        Part(thought="", signature=Signature("anthropic", "cmVkYWN0ZWQ=", "redacted")),
        Part(text="It is done, naïve ☃."),
        Part(function_call=FunctionCall("toolu_1", "read", {"path": "a b.txt", "n": [1, None]})),
        Part(function_call=FunctionCall("toolu_2", "list", {})),
    )
    assert response.usage == TokenUsage(127, 40, 167, cache_read_tokens=100, cache_write_tokens=20)
    assert response.finish_reason is FinishReason.TOOL_USE
    assert response.structured_output is None
    for kind, whole in (("text", "It is done, naïve ☃."), ("thought", "Let me see.")):
        pieces = [piece for chunk, piece in session.chunks if chunk == kind]
        assert "".join(pieces) == whole
        assert len(pieces) == (3 if stream else 1)
    assert isinstance(session.provider, Provider)


def test_thinking_and_calls_go_back_unchanged_and_images_with_the_results(open_session: Open) -> None:
    session = open_session(FULL, Reply(text="ok"))
    answer = session.ask()
    png = Attachment("image/png", b"\x89PNG")
    results = Message(
        Role.TOOL,
        (
            Part(function_response=ToolResult("toolu_1", "read", {"lines": 3}, attachments=(png,))),
            Part(function_response=ToolResult("toolu_2", "list", "no such folder", is_error=True)),
        ),
    )
    session.ask(user("hello"), answer.message, results)
    assert session.sent_messages()[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmF0dXJl"},
                {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
                {"type": "text", "text": "It is done, naïve ☃."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a b.txt", "n": [1, None]}},
                {"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {"type": "text", "text": '{"lines": 3}'},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
                        },
                    ],
                },
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such folder", "is_error": True},
            ],
        },
    ]


def test_a_thought_whose_text_is_withheld_keeps_its_signature(open_session: Open, stream: bool) -> None:
    session = open_session(Reply(text="hi", signature="abc"))
    answer = session.ask(stream=stream)
    session.ask(user("hello"), answer.message, user("more"))
    assert session.sent_messages()[1]["content"][0] == {"type": "thinking", "thinking": "", "signature": "abc"}


def test_structured_output_sends_the_schema_and_parses_the_answer(open_session: Open, stream: bool) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    session = open_session(Reply(text='{"n": 3}'), Reply(text="sorry"))
    settings = ModelSettings(response_schema=schema)
    assert session.ask(settings=settings, stream=stream).structured_output == {"n": 3}
    sent = session.sent()["output_config"]["format"]
    assert sent["type"] == "json_schema"
    assert sent["schema"]["additionalProperties"] is False
    assert "minimum" not in sent["schema"]["properties"]["n"], "the API does not take limits of numbers"
    assert session.ask(settings=settings, stream=stream).structured_output is None


@pytest.mark.parametrize(
    ("model", "effort", "limit", "thinking", "output"),
    [
        (MODEL, None, None, None, None),
        (MODEL, "low", None, {"type": "adaptive", "display": "summarized"}, {"effort": "low"}),
        ("claude-opus-4-6", "high", 9000, {"type": "adaptive", "display": "summarized"}, {"effort": "high"}),
        ("claude-haiku-4-5", "medium", None, {"type": "enabled", "budget_tokens": 8192}, None),
        ("claude-sonnet-4-5-20250929", "high", 4000, {"type": "enabled", "budget_tokens": 2000}, None),
        ("claude-haiku-4-5", "high", 1500, None, None),
    ],
)
def test_reasoning_effort_becomes_what_the_model_takes(
    open_session: Open, model: str, effort: Any, limit: int | None, thinking: Any, output: Any
) -> None:
    session = open_session(Reply(text="x"))
    settings = ModelSettings(reasoning_effort=effort, max_output_tokens=limit, temperature=0.5)
    session.ask(model=model, settings=settings)
    sent = session.sent()
    assert sent.get("thinking") == thinking
    assert sent.get("output_config") == output
    assert sent["max_tokens"] == (limit or session.provider.traits.default_max_output_tokens)
    assert "temperature" not in sent
    assert not session.provider.traits.accepts_temperature


def test_without_tool_choice_the_tools_stay_in_the_prefix(open_session: Open) -> None:
    session = open_session(Reply(text="x"))
    session.ask(tool_choice="none")
    assert session.sent()["tool_choice"] == {"type": "none"}
    assert [tool["name"] for tool in session.sent()["tools"]] == ["read", "list"]
    session.ask(tools=ToolSet(), system="", tool_choice="none")
    assert not {"tool_choice", "tools", "system"} & set(session.sent())


def test_context_windows_follow_the_model() -> None:
    window = AnthropicProvider.traits.context_window
    assert [window(m) for m in ("claude-opus-5-5", "claude-opus-4-8", "claude-sonnet-4-6")] == [1_000_000] * 3
    assert [window(m) for m in ("claude-haiku-4-5-20251001", "claude-opus-4-5", "other")] == [200_000] * 3


def test_models_are_listed_by_prefix(open_session: Open) -> None:
    session = open_session(Reply())
    assert session.provider.list_models() == ["claude-sonnet-5-5", "claude-haiku-5-5"]
    assert session.provider.list_models("claude-h") == ["claude-haiku-5-5"]
    assert session.server.requests[0].method == "GET"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer.of_json({"data": [{"name": "x"}]}), IncompleteStream),
        (Answer(b"hello", content_type="text/plain"), IncompleteStream),
        (Answer(b"{"), IncompleteStream),
        (api.error("not_found_error", "no such path", 404), ConnectionFailed),
        (api.error("authentication_error", "bad key", 401), AuthFailed),
    ],
)
def test_a_list_of_models_that_is_none_is_an_error(
    open_session: Open, answer: Answer, expected: type[Exception]
) -> None:
    with pytest.raises(expected, match=r"^anthropic: "):
        open_session(answer).provider.list_models()


# --- histories


def test_neighbours_of_one_role_are_merged_with_results_first(open_session: Open) -> None:
    session = open_session(Reply(text="x"))
    call = Message(Role.MODEL, (Part(function_call=FunctionCall("t1", "list")), Part(text=" \n")))
    first = Message(Role.TOOL, (Part(function_response=ToolResult("t1", "list", "")),))
    session.ask(user("one"), user(""), user("two"), call, user("steer"), first, Message(Role.MODEL), user("three"))
    assert session.sent_messages() == [
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "list", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1"},
                {"type": "text", "text": "steer"},
                {"type": "text", "text": "three"},
            ],
        },
    ]


@pytest.mark.parametrize(
    "messages", [(), (Message.from_text("model", "hi"),), (user(" "),), (user("a"), Message.from_text("model", "b"))]
)
def test_a_conversation_always_begins_and_ends_with_the_user(open_session: Open, messages: tuple[Message, ...]) -> None:
    session = open_session(Reply(text="x"))
    session.provider.generate(
        ModelRequest(MODEL, "", ToolSet(), messages), cancel=CancelToken(), on_chunk=lambda kind, piece: None
    )
    sent = session.sent_messages()
    assert sent[0]["role"] == sent[-1]["role"] == "user"
    assert all(message["content"] for message in sent)
    assert all(a["role"] != b["role"] for a, b in itertools.pairwise(sent))


def test_marks_and_thoughts_of_other_providers_are_left_out(open_session: Open) -> None:
    session = open_session(Reply(text="x"))
    foreign = Signature("google_genai", b"\x01\x02")
    reply = Message(
        Role.MODEL,
        (
            Part(thought="hmm", signature=foreign),
            Part(thought="unsigned"),
            Part(text="hi", signature=foreign),
            Part(function_call=FunctionCall("call:1/2", "skill.run", {"x": float("nan")}), signature=foreign),
        ),
    )
    result = Message(Role.TOOL, (Part(function_response=ToolResult("call:1/2", "skill.run", "ok")),))
    session.ask(user("a"), reply, result)
    text, call = session.sent_messages()[1]["content"]
    assert text == {"type": "text", "text": "hi"}
    assert call["id"] == session.sent_messages()[2]["content"][0]["tool_use_id"]
    assert call["id"].replace("_", "").isalnum()
    assert call["input"] == {"x": None}


def test_a_tool_name_the_api_refuses_is_disguised_and_recognised_again(open_session: Open) -> None:
    names = ["skill.run", "skill_run", "x" * 90]
    tools = ToolSet([ToolSchema(name) for name in names])
    seen: list[str] = []

    def answer(request: Request) -> Answer:
        seen[:] = [tool["name"] for tool in request.json["tools"]]
        return api.render(Reply(calls=tuple(Call(f"t{n}", name) for n, name in enumerate(seen))), request)

    response = open_session(answer).ask(tools=tools)
    assert [call.name for call in response.get_function_calls()] == names
    assert len(set(seen)) == 3
    assert all(name.replace("_", "").isalnum() and len(name) <= 64 for name in seen)


def test_files_of_every_kind_reach_the_model_in_a_form_it_takes(open_session: Open) -> None:
    session = open_session(Reply(text="x"))
    kinds = [("image/jpeg", b"j"), ("application/pdf", b"p"), ("text/csv", b"a,b"), ("audio/wav", b"w")]
    session.ask(Message(Role.USER, tuple(Part(inline_data=Attachment(*kind, "f")) for kind in kinds)))
    image, document, text, other = session.sent_messages()[0]["content"]
    assert (image["type"], image["source"]["media_type"]) == ("image", "image/jpeg")
    assert (document["type"], document["source"]["data"]) == ("document", "cA==")
    assert text == {"type": "text", "text": "[f]\na,b"}
    assert "cannot read" in other["text"]


def test_broken_characters_do_not_break_the_request(open_session: Open) -> None:
    session = open_session(Reply(text="x"))
    session.ask(user("half a pair: \ud83d and \x00"))
    assert session.sent_messages()[0]["content"][0]["text"] == "half a pair: ? and \x00"


# --- cache and cost of a turn


def marks(value: Any, path: str = "") -> list[str]:
    """Where the cache marks of a request are."""
    if isinstance(value, dict):
        here = [path] if "cache_control" in value else []
        return here + [mark for key, item in value.items() for mark in marks(item, f"{path}/{key}")]
    if isinstance(value, list):
        return [mark for index, item in enumerate(value) for mark in marks(item, f"{path}/{index}")]
    return []


def test_cache_marks_are_on_tools_system_and_the_growing_history(open_session: Open) -> None:
    session = open_session(Reply(text="ok", signature="s"))
    history = [user("one")]
    places = []
    for n in range(3):
        answer = session.ask(*history)
        places.append(marks(session.sent()))
        history += [answer.message, user(f"more {n}")]
    assert places == [
        ["/tools/1", "/system/0", "/messages/0/content/0"],
        ["/tools/1", "/system/0", "/messages/0/content/0", "/messages/2/content/0"],
        ["/tools/1", "/system/0", "/messages/2/content/0", "/messages/4/content/0"],
    ]


def test_the_prefix_has_the_same_bytes_in_every_session_and_turn(open_session: Open) -> None:
    session = open_session(Reply(text="ok"))
    first, second = request(user("task A")), request(user("task B"), tools=ToolSet(list(TOOLS)))
    history = (user("task A"), Message.from_text("model", "ok"), user("next"))
    for one in (first, second, request(*history)):
        session.provider.generate(one, cancel=CancelToken(), on_chunk=lambda kind, piece: None)
    bodies = [sent.body for sent in session.server.requests]
    heads = {body[: body.index(b'"messages":')] for body in bodies}
    assert len(heads) == 1
    plain = [body.replace(b',"cache_control":{"type":"ephemeral"}', b"") for body in bodies]
    assert plain[2].startswith(plain[0].removesuffix(b"]}"))


def test_cache_marks_can_be_longer_or_off(open_session: Open) -> None:
    long = open_session(Reply(text="x"), config={"extra": {"cache_ttl": "1h"}})
    long.ask()
    assert long.sent()["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    off = open_session(Reply(text="x"), config={"extra": {"cache_ttl": "off"}})
    off.ask()
    assert marks(off.sent()) == []


def test_a_message_and_a_tool_set_are_converted_once(open_session: Open) -> None:
    session = open_session(Reply(text="x"))
    counted = Counted({"x": 1})
    call = Message(Role.MODEL, (Part(function_call=FunctionCall("t", "list", counted)),))
    result = Message(Role.TOOL, (Part(function_response=ToolResult("t", "list", "y")),))
    parameters = Counted({"type": "object", "properties": {}})
    tools = ToolSet([ToolSchema("list", "", parameters)])
    reads = parameters.reads
    for _ in range(3):
        session.ask(user("a"), call, result, tools=tools)
    assert counted.reads == 1
    assert parameters.reads == reads + 1


class Counted(dict[str, Any]):
    """A dict that counts how often it is copied out."""

    reads = 0

    def keys(self) -> Any:
        self.reads += 1
        return super().keys()

    def __iter__(self) -> Iterator[str]:
        self.reads += 1
        return super().__iter__()


# --- ways an answer can end


def test_at_the_token_limit_the_half_finished_call_is_dropped(open_session: Open, stream: bool) -> None:
    calls = (Call("t1", "read", {"path": "a"}), Call("t2", "read", {}, raw_args='{"path": "b'))
    response = open_session(Reply(text="so", calls=calls, finish="max_tokens")).ask(stream=stream)
    assert response.finish_reason is FinishReason.MAX_TOKENS
    assert [call.id for call in response.get_function_calls()] == ["t1"]
    assert response.get_text() == "so"


def test_a_refusal_and_a_full_context_are_errors_with_usage(open_session: Open, stream: bool) -> None:
    session = open_session(Reply(text="no", finish="refusal"), Reply(finish="model_context_window_exceeded"))
    with pytest.raises(Refused, match="declined") as refused:
        session.ask(stream=stream)
    with pytest.raises(ContextOverflow) as overflow:
        session.ask(stream=stream)
    assert refused.value.usage == overflow.value.usage == TokenUsage.of(10, 5)


def test_unknown_blocks_events_and_reasons_are_tolerated(open_session: Open, stream: bool) -> None:
    def answer(request: Request) -> Answer:
        if not request.json.get("stream"):
            whole = api.message(Reply(text="hi", finish="a_new_reason"))
            return Answer.of_json({**whole, "content": [{"type": "hologram", "x": 1}, *whole["content"]]})
        body = api.events(Reply(text="hi", finish="a_new_reason"))
        new = [
            ("a_new_event", {"type": "a_new_event"}),
            ("content_block_start", {"type": "content_block_start", "index": 9, "content_block": {"type": "hologram"}}),
            (
                "content_block_delta",
                {"type": "content_block_delta", "index": 9, "delta": {"type": "hologram_delta", "x": 1}},
            ),
        ]
        head, sep, rest = body.partition(b"event: content_block_start")
        return Answer.of_events(head + sse(new) + sep + rest)

    response = open_session(answer).ask(stream=stream)
    assert response.parts == (Part(text="hi"),)
    assert response.finish_reason is FinishReason.UNKNOWN


# --- errors


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (api.error("rate_limit_error", "slow down", 429, retry_after="3"), RateLimited),
        (api.error("overloaded_error", "busy", 529), Overloaded),
        (api.error("api_error", "oops", 500), ServerFailed),
        (Answer(b"<html>bad gateway</html>", 502, content_type="text/html"), ServerFailed),
        (Answer(b"", 503), Overloaded),
        (api.error("timeout_error", "late", 504), ServerFailed),
        (
            api.error("invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum", 400),
            ContextOverflow,
        ),
        (
            api.error("invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 3", 400),
            ContextOverflow,
        ),
        (api.error("request_too_large", "too large", 413), ContextOverflow),
        (api.error("invalid_request_error", "tools.0: bad\nvery bad", 400), BadRequest),
        (api.error("authentication_error", "invalid key", 401), AuthFailed),
        (api.error("permission_error", "not yours", 403), AuthFailed),
        (api.error("not_found_error", "model: nope", 404), ModelNotFound),
        (Answer(b"<html>nothing here</html>", 404, content_type="text/html"), ConnectionFailed),
        (api.error("brand_new_error", "?", 418), BadRequest),
    ],
)
def test_every_refusal_becomes_one_error_of_one_line(
    open_session: Open, stream: bool, answer: Answer, expected: type[ProviderError]
) -> None:
    session = open_session(answer)
    with pytest.raises(ProviderError) as caught:
        session.ask(stream=stream)
    error = caught.value
    assert type(error) is expected
    assert "\n" not in str(error)
    assert error.provider == "anthropic"
    assert error.status == answer.status
    assert error.retry_after == (3.0 if answer.status == 429 else None)
    assert len(session.server.requests) == 1, "the SDK must not retry by itself"
    assert type(pickle.loads(pickle.dumps(error))) is expected


def test_errors_say_what_to_do(open_session: Open) -> None:
    session = open_session(
        api.error("not_found_error", "model: nope", 404),
        api.error("authentication_error", "bad", 401),
        Answer(b"not found", 404, content_type="text/plain"),
    )
    with pytest.raises(ModelNotFound, match=r"no model 'nope'.*list_models") as caught:
        session.ask(model="nope")
    assert caught.value.request_id == "req_1"
    with pytest.raises(AuthFailed, match="ANTHROPIC_API_KEY"):
        session.ask()
    with pytest.raises(ConnectionFailed, match="check the base URL") as wrong:
        session.ask()
    assert session.server.url in str(wrong.value)
    assert not wrong.value.retryable
    assert "sk-test" not in str(caught.value) + str(wrong.value)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", Overloaded),
        ("rate_limit_error", RateLimited),
        ("api_error", ServerFailed),
        ("invalid_request_error", BadRequest),
        ("authentication_error", AuthFailed),
        ("a_new_error", ServerFailed),
    ],
)
def test_an_error_inside_a_stream_is_classified_and_keeps_the_usage(
    open_session: Open, kind: str, expected: type[ProviderError]
) -> None:
    body = api.events(FULL)
    cut = body.index(b"event: content_block_stop")
    session = open_session(Answer.of_events(body[:cut] + api.error_event(kind, "sorry\nfor that")))
    with pytest.raises(ProviderError) as caught:
        session.ask()
    assert type(caught.value) is expected
    assert caught.value.usage == TokenUsage.of(127, 1, cache_read=100, cache_write=20)
    assert "\n" not in str(caught.value)


def test_a_stream_cut_or_broken_anywhere_is_never_an_answer(open_session: Open) -> None:
    body = api.events(FULL)
    whole_at = body.rindex(b"event: message_stop") + len(b'event: message_stop\ndata: {"type": "message_stop"}')
    offsets = sorted({*range(0, len(body), 41), *range(whole_at - 6, whole_at)})
    faults: list[Answer] = []
    for at in offsets:
        faults += [Answer.of_events(body).cut(at), Answer.of_events(body).drop(at)]
    session = open_session(*faults, FULL)
    for fault in faults:
        with pytest.raises(ConnectionFailed) as caught:
            session.ask()
        assert caught.value.retryable
        assert isinstance(caught.value, IncompleteStream), fault
    assert session.ask().finish_reason is FinishReason.TOOL_USE


def test_a_whole_answer_broken_anywhere_is_never_an_answer(open_session: Open) -> None:
    body = json.dumps(api.message(FULL)).encode()
    faults = [fault for at in range(0, len(body), 29) for fault in (Answer(body).cut(at), Answer(body).drop(at))]
    session = open_session(*faults, FULL)
    for _ in faults:
        with pytest.raises(ConnectionFailed) as caught:
            session.ask(stream=False)
        assert caught.value.retryable
    assert session.ask(stream=False).finish_reason is FinishReason.TOOL_USE


def test_what_happens_after_the_closing_event_does_not_matter(open_session: Open) -> None:
    body = api.events(Reply(text="whole")) + b": comment\n\n"
    session = open_session(
        Answer.of_events(body).drop(len(body)),
        Answer.of_events(body).hang(len(body)),
        Answer.of_events(body + b"event: x\ndata: {\n\n"),
        Answer.of_events(body + api.error_event("api_error", "too late")),
        Answer.of_events(body),
    )
    assert [session.ask().get_text() for _ in range(5)] == ["whole"] * 5


@pytest.mark.parametrize(
    "garbage",
    [
        b'event: message_start\ndata: {"type": "mess\n\n',
        b"event: message_start\ndata: []\n\n",
        b'event: message_start\ndata: {"type": "message_start", "message": 3}\n\n',
        b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 7, "delta": {}}\n\n',
        b"event: message_start\ndata: \xff\xfe\n\n",
        b"event: message_start\ndata: null\n\n",
        b"event: message_start\ndata: " + b"[" * 100_000 + b"\n\n",
        b"<html>captive portal</html>",
        b"",
    ],
)
def test_garbage_is_an_incomplete_answer(open_session: Open, stream: bool, garbage: bytes) -> None:
    session = open_session(Answer.of_events(garbage) if stream else Answer(garbage))
    with pytest.raises(IncompleteStream) as caught:
        session.ask(stream=stream)
    assert caught.value.retryable
    assert "\n" not in str(caught.value)


def test_a_tool_call_that_cannot_be_read_is_an_incomplete_answer(open_session: Open) -> None:
    for raw in ('{"path": ', "[1]", "nonsense", "[" * 100_000):
        session = open_session(Reply(calls=(Call("t", "read", {}, raw_args=raw),)))
        with pytest.raises(IncompleteStream, match="tool call"):
            session.ask()


def test_silence_ends_as_a_failed_connection(open_session: Open, stream: bool) -> None:
    for answer in (Answer().mute(), Answer.of_events(api.events(FULL)).hang(300)):
        session = open_session(answer, config={"timeout_seconds": 0.1})
        with pytest.raises(ConnectionFailed, match="silent") as caught:
            session.ask(stream=stream)
        assert caught.value.retryable


def test_a_slow_drip_arrives_whole(open_session: Open, stream: bool) -> None:
    body = api.events(FULL) if stream else json.dumps(api.message(FULL)).encode()
    answer = Answer.of_events(body) if stream else Answer(body)
    assert open_session(answer.drip(3)).ask(stream=stream).get_text() == FULL.text


def test_a_base_url_without_a_server_is_named(stream: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    provider = AnthropicProvider(ProviderConfig(api_key="k", base_url=url))
    with pytest.raises(ConnectionFailed, match=f"cannot connect to {url}"):
        provider.generate(request(stream=stream), cancel=CancelToken(), on_chunk=lambda kind, piece: None)
    with pytest.raises(ConnectionFailed, match=url):
        provider.list_models()
    provider.close()


# --- cancel and threads


@pytest.mark.parametrize("tls", [False, True], ids=["http", "tls"])
@pytest.mark.parametrize("where", ["headers", "stream", "whole"])
def test_cancel_ends_a_blocked_call_at_once_and_the_pool_stays_usable(
    open_session: Open, tls: bool, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = Answer().mute() if where != "stream" else Answer.of_events(api.events(FULL)).hang(900)
    with WireServer(Script(api.render, blocked, Reply(text="again"), repeat=True), tls=tls) as server:
        if tls:
            (tmp_path / "ca.pem").write_bytes(server.ca_pem)
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        session, token, heard = Session(server), CancelToken(), threading.Event()
        asked = request(stream=where != "whole")
        task = workers.submit(
            lambda: session.provider.generate(asked, cancel=token, on_chunk=lambda kind, piece: heard.set())
        )
        server.wait_hanging(1)
        assert where != "stream" or heard.wait(PATIENCE)
        token.cancel("by the user")
        assert task.wait(PATIENCE)
        with pytest.raises(CancelledException, match="by the user"):
            task.result()
        server.wait_hangups(1)
        assert session.ask().get_text() == "again"
        session.provider.close()


def test_a_cancel_within_a_chunk_stops_the_rest(open_session: Open, stream: bool) -> None:
    session, token, seen = open_session(Reply(text="one two three")), CancelToken(), list[str]()

    def on_chunk(kind: str, piece: str) -> None:
        seen.append(piece)
        token.cancel("heard enough")

    with pytest.raises(CancelledException, match="heard enough"):
        session.provider.generate(request(stream=stream), cancel=token, on_chunk=on_chunk)
    assert len(seen) == 1


def test_a_cancelled_token_sends_nothing(open_session: Open) -> None:
    session, token = open_session(Reply(text="x")), CancelToken()
    token.cancel()
    with pytest.raises(CancelledException):
        session.ask(cancel=token)
    assert session.server.requests == []


def test_an_error_of_the_listener_comes_out_as_it_is(open_session: Open) -> None:
    def on_chunk(kind: str, piece: str) -> None:
        raise ValueError("mine")

    session = open_session(Reply(text="x"))
    with pytest.raises(ValueError, match="mine"):
        session.provider.generate(request(), cancel=CancelToken(), on_chunk=on_chunk)
    assert session.ask().get_text() == "x"


def test_connections_are_reused(open_session: Open, stream: bool) -> None:
    session = open_session(Reply(text="x"))
    for _ in range(5):
        session.ask(stream=stream)
    assert {sent.connection for sent in session.server.requests} == {1}


def test_two_hundred_threads_on_one_provider(open_session: Open) -> None:
    session = open_session(lambda sent: api.render(Reply(text=sent.json["messages"][0]["content"][0]["text"]), sent))
    gate = threading.Barrier(200)

    def ask(n: int) -> str:
        gate.wait(PATIENCE)
        provider = session.provider
        return provider.generate(request(user(f"n{n}")), cancel=CancelToken(), on_chunk=lambda k, p: None).get_text()

    tasks = [workers.submit(partial(ask, n)) for n in range(200)]
    for n, task in enumerate(tasks):
        assert task.wait(PATIENCE)
        assert task.result() == f"n{n}"


# --- settings


def test_credentials_and_address_come_from_the_environment(open_session: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    server = open_session(Reply(text="x")).server
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url + "/")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    for variable in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, f"from-{variable}")
        provider = AnthropicProvider(ProviderConfig())
        provider.generate(request(), cancel=CancelToken(), on_chunk=lambda kind, piece: None)
        assert server.requests[-1].headers["authorization"] == f"Bearer from-{variable}"
        assert server.requests[-1].path == "/v1/messages"
        provider.close()


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(AuthFailed, match="set ANTHROPIC_API_KEY"):
        AnthropicProvider(ProviderConfig())
    monkeypatch.setenv("ANTHROPIC_PROFILE", "nowhere")
    with pytest.raises(AuthFailed, match=r"set ANTHROPIC_API_KEY.*nowhere"):
        AnthropicProvider(ProviderConfig())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"base_url": "localhost:80"}, "base_url 'localhost:80'"),
        ({"extra": {"cache_tll": "1h"}}, "Did you mean 'cache_ttl'"),
        ({"extra": {"cache_ttl": "2h"}}, "5m, 1h, off"),
        ({"extra": {"headers": "x"}}, "headers"),
    ],
)
def test_a_wrong_setting_is_named(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AnthropicProvider(ProviderConfig(api_key="k", **config))


def test_extra_headers_are_sent(open_session: Open) -> None:
    session = open_session(Reply(text="x"), config={"extra": {"headers": {"x-team": "blue"}}})
    session.ask()
    assert session.server.requests[0].headers["x-team"] == "blue"


def test_the_sdk_is_imported_only_when_a_provider_is_made() -> None:
    code = "import sys, shared.providers.anthropic; sys.exit('anthropic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0
