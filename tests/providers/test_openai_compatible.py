"""The provider openai_compatible against a loopback server that speaks chat completions."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from support import openai_wire as wire
from support.speakers import OPENAI, WEATHER, Heard, ask, settings
from support.wire import Answer, Call, Reply, Script, Usage, WireServer, sse

from shared.cancel import CancelToken
from shared.errors import (
    AuthFailed,
    BadRequest,
    ContextOverflow,
    IncompleteStream,
    ModelNotFound,
    ProviderError,
    RateLimited,
    Refused,
    ServerFailed,
)
from shared.history import problems
from shared.providers.base import ProviderConfig, ToolSet
from shared.providers.openai_compatible import OpenAICompatibleProvider
from shared.providers.openai_messages import body, dialect
from shared.toolbox import Toolbox
from shared.tools import Tool, ToolContext
from shared.types import (
    Attachment,
    FinishReason,
    FunctionCall,
    Message,
    Part,
    ProviderResponse,
    Role,
    TokenUsage,
    ToolResult,
    ToolSchema,
)

PLAIN = Reply(text="It is sunny.")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


class Talk:
    """A server with a script, and a provider that talks to it."""

    def __init__(self) -> None:
        self.server = WireServer(Script(wire.render))
        self.provider = OPENAI.provider(self.server.url + "/v1")

    def plays(self, *steps: Any) -> Talk:
        self.server.handler = Script(wire.render, *steps)
        return self

    def ask(self, *messages: Message, heard: Heard | None = None, **fields: Any) -> ProviderResponse:
        return ask(self.provider, OPENAI.request(*messages, **fields), heard=heard)

    def hears(self, *deltas: dict[str, Any], finish: str | None = "tool_calls") -> ProviderResponse:
        """What becomes of a stream of these deltas."""
        events = [wire.chunk(delta) for delta in deltas]
        return self.plays(wire.stream(*events, wire.chunk({}, finish=finish))).ask()

    @property
    def sent(self) -> Any:
        return self.server.requests[-1].json


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk()
    with made.server:
        yield made
        made.provider.close()


def _calls(response: ProviderResponse) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.args)) for call in response.get_function_calls()]


def _delta(
    index: int | None = 0, *, call_id: str | None = None, name: str | None = None, args: Any = None
) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "function", "function": {}}
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry["id"] = call_id
    if name is not None:
        entry["function"]["name"] = name
    if args is not None:
        entry["function"]["arguments"] = args
    return {"tool_calls": [entry]}


def test_the_request_on_the_wire(talk: Talk) -> None:
    talk.plays(PLAIN).ask(settings=settings(temperature=0.5, max_output_tokens=99))
    request = talk.server.requests[0]
    assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", "Bearer test-key")
    assert request.headers["content-type"] == "application/json"
    assert request.json == {
        "model": "gpt-oss",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 99,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How is the weather in Oslo?"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "Tells the weather.",
                    "parameters": dict(WEATHER.parameters),
                },
            }
        ],
    }


def test_history_with_calls_results_and_images(talk: Talk) -> None:
    png = Attachment("image/png", b"PNG")
    history = [
        Message(Role.USER, (Part(text="look"), Part(inline_data=png))),
        Message(
            Role.MODEL, (Part(text="I will."), Part(function_call=FunctionCall("c1", "weather", {"city": "Oslo"})))
        ),
        Message(Role.TOOL, (Part(function_response=ToolResult("c1", "weather", {"sky": "blue"}, attachments=(png,))),)),
        Message(Role.USER, (Part(inline_data=Attachment("application/pdf", b"PDF", "a.pdf")),)),
        Message(Role.USER, (Part(inline_data=Attachment("text/plain", "ü".encode())),)),
        Message(Role.USER, (Part(inline_data=Attachment("audio/x-odd", b"123")),)),
    ]
    talk.plays(PLAIN).ask(*history)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(b"PNG").decode()}}
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
    assert talk.sent["messages"][1:5] == [
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
        {"role": "assistant", "content": "I will.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"sky": "blue"}'},
        {"role": "user", "content": [{"type": "text", "text": "Attached to the result of weather:"}, image]},
    ]
    kinds = [message["content"][0] for message in talk.sent["messages"][5:]]
    assert kinds[0]["file"] == {"filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"}
    assert "ü" in kinds[1]["text"]
    assert "audio/x-odd" in kinds[2]["text"]


# --- calls as different servers stream them ---


def test_missing_ids_are_minted(talk: Talk) -> None:
    response = talk.hears(_delta(0, name="weather", args="{}"), _delta(1, name="weather", args='{"city": "Rome"}'))
    assert _calls(response) == [("weather", {}), ("weather", {"city": "Rome"})]
    ids = [call.id for call in response.get_function_calls()]
    assert all(ids)
    assert len(set(ids)) == 2


def test_arguments_in_pieces_interleaved_by_index(talk: Talk) -> None:
    response = talk.hears(
        _delta(0, call_id="a", name="weather", args=""),
        _delta(1, call_id="b", name="weather", args='{"ci'),
        _delta(0, args='{"city":'),
        _delta(1, args='ty": "Rome"}'),
        _delta(0, args=' "Oslo"}'),
    )
    assert _calls(response) == [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]


def test_arguments_as_an_object(talk: Talk) -> None:
    assert _calls(talk.hears(_delta(0, call_id="a", name="weather", args={"city": "Oslo"}))) == [
        ("weather", {"city": "Oslo"})
    ]


@pytest.mark.parametrize("ids", [("a", "b"), (None, None), ("", "")])
def test_several_calls_all_with_index_0(talk: Talk, ids: tuple[str | None, str | None]) -> None:
    response = talk.hears(
        _delta(0, call_id=ids[0], name="weather", args='{"city": "Oslo"}'),
        _delta(0, call_id=ids[1], name="weather", args='{"city": "Rome"}'),
    )
    assert _calls(response) == [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]
    assert len({call.id for call in response.get_function_calls()}) == 2


def test_no_index_at_all_and_a_name_repeated_with_each_piece(talk: Talk) -> None:
    response = talk.hears(
        _delta(None, name="weather", args='{"city":'),
        _delta(None, name="weather", args=' "Oslo"}'),
        _delta(None, name="weather", args='{"city": "Rome"}'),
    )
    assert _calls(response) == [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]


def test_the_same_id_with_each_piece(talk: Talk) -> None:
    response = talk.hears(
        _delta(0, call_id="a", name="weather", args='{"city":'), _delta(0, call_id="a", name="weather", args=' "Oslo"}')
    )
    assert _calls(response) == [("weather", {"city": "Oslo"})]


def test_a_call_reported_as_stop_is_still_a_call(talk: Talk) -> None:
    response = talk.hears(_delta(0, call_id="a", name="weather", args="null"), finish="stop")
    assert _calls(response) == [("weather", {})]
    assert response.finish_reason is FinishReason.TOOL_USE


def test_arguments_encoded_twice(talk: Talk) -> None:
    assert _calls(talk.hears(_delta(0, call_id="a", name="weather", args='"{\\"city\\": \\"Oslo\\"}"'))) == [
        ("weather", {"city": "Oslo"})
    ]


def test_half_finished_calls_are_dropped_at_the_length_limit(talk: Talk) -> None:
    response = talk.hears(
        _delta(0, call_id="a", name="weather", args='{"city": "Oslo"}'),
        _delta(1, call_id="b", name="weather", args='{"city": "Ro'),
        _delta(2, call_id="c", name="weather", args=""),
        finish="length",
    )
    assert _calls(response) == [("weather", {"city": "Oslo"})]
    assert response.finish_reason is FinishReason.MAX_TOKENS


@pytest.mark.parametrize(
    ("garbage", "problem"),
    [('{"city": Oslo}', "Expecting value"), ("[1]", "expected a JSON object"), ("[" * 100_000, "recursion")],
)
@pytest.mark.parametrize("stream", [True, False])
def test_garbage_arguments_reach_the_model_as_an_error(talk: Talk, garbage: str, problem: str, stream: bool) -> None:
    ran: list[Any] = []

    def lenient(args: Any, context: ToolContext) -> str:
        ran.append(args)
        return "ran"

    reply = Reply(calls=(Call("c1", "lenient", raw_args=garbage),))
    response = talk.plays(reply, PLAIN).ask(stream=stream)
    (call,) = response.get_function_calls()
    tool = Tool(ToolSchema("lenient", "Takes anything.", {"type": "object"}), lenient)
    result = Toolbox([tool]).run(call, ToolContext("main", CancelToken()))
    assert ran == []
    assert result.is_error
    assert "not valid JSON" in result.text
    assert problem in result.text
    history = [
        Message.from_text("user", "hi"),
        response.message,
        Message(Role.TOOL, (Part(function_response=result),)),
    ]
    assert problems(history) == []
    talk.ask(*history)
    assert talk.sent["messages"][2]["tool_calls"][0]["id"] == talk.sent["messages"][3]["tool_call_id"]


# --- thoughts ---


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_go_back_in_the_field_they_came_in(talk: Talk, field: str) -> None:
    response = talk.hears({field: "Let me "}, {field: "think."}, {"content": "Sunny."}, finish="stop")
    assert [part.thought for part in response.parts] == ["Let me think.", None]
    talk.plays(PLAIN).ask(Message.from_text("user", "hi"), response.message, Message.from_text("user", "and?"))
    assert talk.sent["messages"][2] == {"role": "assistant", "content": "Sunny.", field: "Let me think."}
    to_openai = body(
        OPENAI.request(Message.from_text("user", "hi"), response.message), dialect("gpt-4o", official=True)
    )
    assert b"think" not in to_openai


def test_thoughts_sent_twice_are_heard_once(talk: Talk) -> None:
    response = talk.hears({"reasoning": "hm", "reasoning_content": "hm"}, {"content": "x"}, finish="stop")
    assert [part.thought for part in response.parts if part.thought] == ["hm"]


# --- how an answer ends ---


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([wire.chunk({"content": "Sunny."}), wire.chunk({}, finish="stop")], "Sunny."),
        ([wire.chunk({"content": [{"type": "text", "text": "Sunny."}]}, finish="stop")], "Sunny."),
        ([{"choices": None}, {"object": "ping"}, wire.chunk({"content": "Sunny."}, finish="stop")], "Sunny."),
    ],
)
def test_no_done_mark_is_fine_once_the_finish_reason_came(talk: Talk, events: list[Any], text: str) -> None:
    response = talk.plays(Answer.of_events(sse([(None, event) for event in events]))).ask()
    assert (response.get_text(), response.finish_reason) == (text, FinishReason.STOP)


@pytest.mark.parametrize("events", [[], [wire.chunk({"content": "Sun"})]])
def test_a_done_mark_without_a_finish_reason_is_no_answer(talk: Talk, events: list[Any]) -> None:
    with pytest.raises(IncompleteStream):
        talk.plays(wire.stream(*events)).ask()


def test_usage_is_estimated_where_the_server_does_not_tell(talk: Talk) -> None:
    reply = Reply(text="x" * 300)
    told, untold = wire.chunks(reply), wire.chunks(reply, usage_told=False)
    empty = {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    talk.plays(wire.stream(*told), wire.stream(*untold), wire.stream(*untold, empty), wire.stream(*untold))
    assert talk.ask().usage == TokenUsage.of(10, 5)
    for _ in range(2):
        estimated = talk.ask().usage
        assert 100 <= estimated.output_tokens <= 120
        assert estimated.prompt_tokens > 10
    assert talk.ask(prompt_tokens=4321).usage.prompt_tokens == 4321


def test_cached_tokens_as_deepseek_tells_them(talk: Talk) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 64}
    talk.plays(wire.stream(wire.chunk({"content": "x"}, finish="stop"), {"choices": [], "usage": usage}))
    assert talk.ask().usage == TokenUsage.of(100, 5, cache_read=64)


def test_content_filter_and_broken_off_by_the_server(talk: Talk) -> None:
    talk.plays(Reply(text="so far", finish="content_filter"), Reply(text="so far", finish="error"))
    with pytest.raises(Refused, match="content filter"):
        talk.ask()
    with pytest.raises(ServerFailed):
        talk.ask()


def test_the_refusal_is_told(talk: Talk) -> None:
    with pytest.raises(Refused, match=r"I will not\.") as caught:
        talk.plays(Reply(text="I will not.", finish="refusal")).ask()
    assert not caught.value.retryable


def test_a_whole_answer_without_a_reason(talk: Talk) -> None:
    answer = wire.whole(PLAIN)
    answer["choices"][0]["finish_reason"] = None
    assert talk.plays(Answer.of_json(answer)).ask(stream=False).finish_reason is FinishReason.STOP


@pytest.mark.parametrize("answer", [{}, {"choices": []}, [], "text", None])
def test_a_whole_answer_of_another_kind(talk: Talk, answer: Any) -> None:
    with pytest.raises(ServerFailed) as caught:
        talk.plays(Answer.of_json(answer)).ask(stream=False)
    assert caught.value.retryable


# --- errors ---


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (wire.error(400, "too long", code="context_length_exceeded"), ContextOverflow),
        (wire.error(400, "This model's maximum context length is 8192 tokens."), ContextOverflow),
        (
            wire.error(400, "the request exceeds the available context size", kind="exceed_context_size_error"),
            ContextOverflow,
        ),
        (
            wire.error(429, "Request too large for gpt-4o on tokens per min", code="rate_limit_exceeded"),
            ContextOverflow,
        ),
        (wire.error(413, "too big"), ContextOverflow),
        (wire.error(400, "bad", code="invalid_value"), BadRequest),
        (wire.error(401, "Incorrect API key", code="invalid_api_key"), AuthFailed),
        (wire.error(404, "no such model", code="model_not_found"), ModelNotFound),
        (
            wire.error(429, "You exceeded your current quota", kind="insufficient_quota", code="insufficient_quota"),
            AuthFailed,
        ),
        (wire.error(402, "pay first"), AuthFailed),
        (wire.error(400, "filtered", code="content_filter"), Refused),
        (wire.error(400, "filtered", code="content_policy_violation"), Refused),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_errors_that_are_not_worth_a_retry(talk: Talk, answer: Answer, kind: type[ProviderError], stream: bool) -> None:
    with pytest.raises(ProviderError) as caught:
        talk.plays(answer).ask(stream=stream)
    assert type(caught.value) is kind
    assert not caught.value.retryable
    assert len(talk.server.requests) == 1


def test_retry_after_in_milliseconds(talk: Talk) -> None:
    talk.plays(wire.error(429, "slow", code="rate_limit_exceeded", retry_after_ms="1500", retry_after="2"))
    with pytest.raises(RateLimited) as caught:
        talk.ask()
    assert caught.value.retry_after == 1.5


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "m", "type": "server_error"}, ServerFailed),
        ({"message": "m", "code": 429}, RateLimited),
        ({"message": "m", "code": "rate_limit_exceeded"}, RateLimited),
        ({"message": "m", "type": "exceed_context_size_error", "code": 400}, ContextOverflow),
        ({"message": "m", "code": 502}, ServerFailed),
        ("plain text", ServerFailed),
    ],
)
def test_errors_within_a_stream_or_a_200(talk: Talk, error: Any, kind: type[ProviderError]) -> None:
    events = [(None, wire.chunk({"content": "so far"})), (None, {"error": error})]
    talk.plays(Answer.of_events(sse(events)), Answer.of_json({"error": error}))
    for stream in (True, False):
        with pytest.raises(ProviderError) as caught:
            talk.ask(stream=stream)
        assert type(caught.value) is kind


def test_the_error_of_a_wrong_base_url_names_it(talk: Talk) -> None:
    with pytest.raises(ModelNotFound, match=talk.server.url):
        talk.plays(Answer(b"404 page not found", 404, content_type="text/plain")).ask()


# --- settings as data ---


def _official(model: str, *, tools: bool = True, **fields: Any) -> dict[str, Any]:
    import json

    request = OPENAI.request(model=model, settings=settings(**fields), tools=ToolSet([WEATHER] if tools else []))
    found: dict[str, Any] = json.loads(body(request, dialect(model, official=True)))
    return found


def test_openai_itself_takes_other_fields() -> None:
    sent = _official("gpt-4o", temperature=0.1, max_output_tokens=9, reasoning_effort="low")
    assert (sent["max_completion_tokens"], sent["temperature"]) == (9, 0.1)
    assert "max_tokens" not in sent
    assert "reasoning_effort" not in sent  # it does not think


@pytest.mark.parametrize("model", ["o3-mini", "gpt-5-mini", "gpt-5.6-terra", "o1"])
def test_reasoning_models_refuse_a_temperature(model: str) -> None:
    assert "temperature" not in _official(model, temperature=0.1)
    assert "temperature" in _official("gpt-5.1-chat-latest", temperature=0.1)


def test_effort_and_tools_exclude_each_other_on_newer_models_of_openai() -> None:
    assert _official("gpt-5-mini", reasoning_effort="high")["reasoning_effort"] == "high"
    assert _official("gpt-5.6-terra", reasoning_effort="high")["reasoning_effort"] == "none"
    assert _official("gpt-5.6-terra")["reasoning_effort"] == "none"
    assert _official("gpt-5.6-terra", reasoning_effort="high", tools=False)["reasoning_effort"] == "high"


def test_effort_and_schema_for_other_servers(talk: Talk) -> None:
    schema = {"type": "object", "properties": {"sky": {"type": "string"}}}
    talk.plays(PLAIN).ask(settings=settings(reasoning_effort="low", response_schema=schema))
    assert talk.sent["reasoning_effort"] == "low"
    assert talk.sent["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def test_extra_body_headers_and_no_usage_option() -> None:
    with WireServer(Script(wire.render, PLAIN)) as server:
        extra = {"body": {"num_ctx": 8192}, "headers": {"X-Team": "blue"}, "stream_usage": False}
        provider = OPENAI.provider(server.url, extra=extra)
        assert ask(provider, OPENAI.request()).usage.output_tokens > 0
        assert server.requests[0].json["num_ctx"] == 8192
        assert "stream_options" not in server.requests[0].json
        assert server.requests[0].headers["x-team"] == "blue"
        provider.close()


# --- credentials, models ---


def test_openai_needs_a_key_and_says_how_to_give_it() -> None:
    with pytest.raises(AuthFailed, match=r"OPENAI_API_KEY.*OPENAI_BASE_URL"):
        OpenAICompatibleProvider(ProviderConfig())
    OpenAICompatibleProvider(ProviderConfig(api_key="k")).close()


def test_other_servers_need_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with WireServer(Script(wire.render, PLAIN, PLAIN)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        provider = OpenAICompatibleProvider(ProviderConfig())
        assert ask(provider, OPENAI.request()).get_text() == "It is sunny."
        assert server.requests[0].headers["authorization"].startswith("Bearer ")
        provider.close()
        monkeypatch.setenv("OPENAI_API_KEY", "env-key")
        provider = OpenAICompatibleProvider(ProviderConfig())
        ask(provider, OPENAI.request())
        assert server.requests[1].headers["authorization"] == "Bearer env-key"
        provider.close()


def test_list_models(talk: Talk) -> None:
    talk.plays(wire.models("llama", "qwen"), wire.models("llama", "qwen"), Answer.of_json([]), wire.error(401, "no"))
    assert talk.provider.list_models() == ["llama", "qwen"]
    assert talk.provider.list_models("q") == ["qwen"]
    assert talk.provider.list_models() == []
    with pytest.raises(AuthFailed):
        talk.provider.list_models()


def test_context_windows() -> None:
    traits = OpenAICompatibleProvider.traits
    assert traits.context_window("gpt-4o-mini") == 128_000
    assert traits.context_window("gpt-4") == 8_192
    assert traits.context_window("some-llama") == 128_000


def test_cached_usage(talk: Talk) -> None:
    response = talk.plays(Reply(text="x", usage=Usage(input=20, output=5, cache_read=500))).ask()
    assert response.usage == TokenUsage.of(520, 5, cache_read=500)
