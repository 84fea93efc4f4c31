"""The provider google_genai against a loopback server that speaks Gemini's format."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from support import gemini_wire as wire
from support.speakers import GEMINI, Heard, ask, settings
from support.wire import Answer, Call, Reply, Script, Usage, WireServer, sse

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
from shared.providers.base import ProviderConfig, ToolSet
from shared.providers.google_genai import GoogleGenAIProvider
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
)

PLAIN = Reply(text="It is sunny.")
VARIABLES = (
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_CLOUD_PROJECT",
    "PROJECT_ID",
    "GOOGLE_CLOUD_LOCATION",
    "LOCATION",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_GENAI_USE_ENTERPRISE",
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_VERTEX_BASE_URL",
    "GOOGLE_APPLICATION_CREDENTIALS",
)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


class Talk:
    """A server with a script, and a provider that talks to it."""

    def __init__(self) -> None:
        self.server = WireServer(Script(wire.render))
        self.provider = GEMINI.provider(self.server.url)

    def plays(self, *steps: Any) -> Talk:
        self.server.handler = Script(wire.render, *steps)
        return self

    def ask(self, *messages: Message, heard: Heard | None = None, **fields: Any) -> ProviderResponse:
        return ask(self.provider, GEMINI.request(*messages, **fields), heard=heard)

    @property
    def sent(self) -> Any:
        return self.server.requests[-1].json


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk()
    with made.server:
        yield made
        made.provider.close()


def _history(*model_parts: Part, results: tuple[ToolResult, ...] = ()) -> list[Message]:
    found = [Message.from_text("user", "hi"), Message(Role.MODEL, model_parts)]
    if results:
        found.append(Message(Role.TOOL, tuple(Part(function_response=result) for result in results)))
    return [*found, Message.from_text("user", "go on")]


def test_the_request_on_the_wire(talk: Talk) -> None:
    talk.plays(PLAIN).ask(settings=settings(temperature=0.5, max_output_tokens=99))
    request = talk.server.requests[0]
    assert request.path == "/v1/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == "test-key"
    assert "x-server-timeout" not in request.headers  # it would end long answers
    assert request.json == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "How is the weather in Oslo?"}]}],
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 99},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "weather",
                        "description": "Tells the weather.",
                        "parametersJsonSchema": {
                            "type": "object",
                            "properties": {"city": {"type": "string"}},
                            "required": ["city"],
                        },
                    }
                ]
            }
        ],
    }


def test_signatures_come_back_on_the_parts_they_came_with(talk: Talk) -> None:
    call = Reply(text="Wait.", thought="Hm.", signature="s1+/=", calls=(Call("c1", "weather", {"city": "Oslo"}),))
    first = talk.plays(call, Reply(text="Sunny.", signature="s2"), PLAIN).ask()
    assert [part.signature for part in first.parts if part.function_call] == [Signature("google_genai", b"s1+/=")]
    history = [
        Message.from_text("user", "hi"),
        first.message,
        Message(Role.TOOL, (Part(function_response=ToolResult("c1", "weather", "sunny")),)),
    ]
    second = talk.ask(*history)
    assert second.get_text() == "Sunny."
    talk.ask(*history, second.message, Message.from_text("user", "thanks"))
    assert talk.sent["contents"][1]["parts"] == [
        {"text": "Wait."},
        {
            "functionCall": {"name": "weather", "args": {"city": "Oslo"}, "id": "c1"},
            "thoughtSignature": base64.b64encode(b"s1+/=").decode(),
        },
    ]
    assert talk.sent["contents"][3]["parts"] == [
        {"text": "Sunny."},
        {"text": "", "thoughtSignature": base64.b64encode(b"s2").decode()},
    ]


@pytest.mark.parametrize(("model", "placed"), [("gemini-3.8-flash", True), ("gemini-2.5-pro", False)])
def test_calls_of_other_models_get_the_documented_placeholder(talk: Talk, model: str, placed: bool) -> None:
    calls = [Part(function_call=FunctionCall(f"c{n}", "weather", {"city": "Oslo"})) for n in (1, 2)]
    results = tuple(ToolResult(f"c{n}", "weather", "sunny") for n in (1, 2))
    talk.plays(PLAIN).ask(*_history(*calls, results=results), model=model)
    marks = [part.get("thoughtSignature") for part in talk.sent["contents"][1]["parts"]]
    assert marks == ["skip_thought_signature_validator" if placed else None, None]


def test_calls_without_ids_get_ids_of_ours_that_stay_here(talk: Talk) -> None:
    nameless = Reply(calls=(Call("", "weather", {"city": "Oslo"}), Call("", "weather", {"city": "Rome"})))
    talk.plays(nameless, nameless, PLAIN)
    first, second = talk.ask(), talk.ask()
    calls = [*first.get_function_calls(), *second.get_function_calls()]
    assert len({call.id for call in calls}) == 4
    results = tuple(ToolResult(call.id, call.name, "sunny") for call in calls[:2])
    talk.ask(*_history(*first.parts, results=results))
    assert b"minted" not in talk.server.requests[-1].body
    assert [list(part) for part in talk.sent["contents"][2]["parts"]] == [["functionResponse"], ["functionResponse"]]


def test_an_id_that_came_twice_is_made_unique(talk: Talk) -> None:
    twice = Reply(calls=(Call("same", "weather", {"city": "A"}), Call("same", "weather", {"city": "B"})))
    ids = [call.id for call in talk.plays(twice).ask().get_function_calls()]
    assert ids[0] == "same"
    assert ids[1] != "same"


@pytest.mark.parametrize("model", ["gemini-3.8-flash", "gemini-2.5-flash"])
def test_results_with_images_and_errors(talk: Talk, model: str) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(b"PNG").decode()}}
    results = (
        ToolResult("c1", "weather", {"sky": "blue"}, attachments=(Attachment("image/png", b"PNG"),)),
        ToolResult("c2", "weather", "no such city", is_error=True),
    )
    calls = [Part(function_call=FunctionCall(f"c{n}", "weather", {})) for n in (1, 2)]
    talk.plays(PLAIN).ask(*_history(*calls, results=results), model=model)
    content = talk.sent["contents"][2]
    responses = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
    assert content["role"] == "user"
    assert responses[0]["response"] == {"output": {"sky": "blue"}}
    assert responses[1] == {"name": "weather", "response": {"error": "no such city"}, "id": "c2"}
    nested = model.startswith("gemini-3")
    assert responses[0].get("parts") == ([image] if nested else None)
    assert (image in content["parts"]) is not nested


def test_images_of_the_user_and_of_the_model(talk: Talk) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "UE5H"}}
    chunk = {"candidates": [{"content": {"parts": [image]}, "finishReason": "STOP"}]}
    talk.plays(Answer.of_events(sse([(None, chunk)])))
    response = talk.ask(Message(Role.USER, (Part(text="what?"), Part(inline_data=Attachment("image/png", b"PNG")))))
    assert talk.sent["contents"][0]["parts"] == [{"text": "what?"}, image]
    assert response.parts == (Part(inline_data=Attachment("image/png", b"PNG")),)


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gemini-3.8-flash", "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("gemini-4-argon", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
        ("models/gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ("gemini-2.5-flash", "high", {"includeThoughts": True, "thinkingBudget": 24576}),
        ("gemini-2.0-flash", "high", None),
        ("gemma-3", "high", None),
    ],
)
def test_reasoning_effort(talk: Talk, model: str, effort: str, expected: Any) -> None:
    talk.plays(PLAIN).ask(model=model, settings=settings(reasoning_effort=effort))
    assert talk.sent["generationConfig"].get("thinkingConfig") == expected


def test_a_schema_and_tools_exclude_each_other_before_gemini_3(talk: Talk) -> None:
    schema = {"type": "object"}
    talk.plays(PLAIN, PLAIN, PLAIN)
    wanted = settings(response_schema=schema)
    talk.ask(settings=wanted)
    assert talk.sent["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert "tools" in talk.sent
    talk.ask(settings=wanted, model="gemini-2.5-pro")
    assert "tools" in talk.sent
    assert not talk.sent["generationConfig"]
    talk.ask(settings=wanted, model="gemini-2.5-pro", tool_choice="none")
    assert "tools" not in talk.sent
    assert talk.sent["generationConfig"]["responseJsonSchema"] == schema


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("SAFETY", Refused),
        ("PROHIBITED_CONTENT", Refused),
        ("MALFORMED_FUNCTION_CALL", ServerFailed),
        ("UNEXPECTED_TOOL_CALL", ServerFailed),
        ("MISSING_THOUGHT_SIGNATURE", BadRequest),
        ("CONTINUATION", IncompleteStream),  # without a token there is no way to go on
    ],
)
def test_reasons_that_are_no_answer(talk: Talk, reason: str, kind: type[ProviderError]) -> None:
    with pytest.raises(ProviderError, match=reason) as caught:
        talk.plays(Reply(text="so far", finish=reason)).ask()
    assert type(caught.value) is kind
    assert caught.value.usage == TokenUsage.of(10, 5)


@pytest.mark.filterwarnings("ignore:.*is not a valid FinishReason")
def test_a_reason_nobody_knows_yet(talk: Talk) -> None:
    response = talk.plays(Reply(text="so far", finish="BRAND_NEW")).ask()
    assert (response.get_text(), response.finish_reason) == ("so far", FinishReason.UNKNOWN)


@pytest.mark.parametrize("stream", [True, False])
def test_a_blocked_prompt_is_refused(talk: Talk, stream: bool) -> None:
    feedback = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    answer = wire.blocked() if stream else Answer.of_json(feedback)
    with pytest.raises(Refused, match="PROHIBITED_CONTENT"):
        talk.plays(answer).ask(stream=stream)


@pytest.mark.parametrize("stream", [True, False])
def test_a_very_long_answer_is_continued(talk: Talk, stream: bool) -> None:
    def part(text: str, **candidate: Any) -> Answer:
        chunk = {
            "candidates": [{"content": {"parts": [{"text": text}]}, **candidate}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3},
        }
        return Answer.of_events(sse([(None, chunk)])) if stream else Answer.of_json(chunk)

    token = base64.b64encode(b"from here").decode()
    heard = Heard()
    talk.plays(part("one ", finishReason="CONTINUATION", continuationToken=token), part("two", finishReason="STOP"))
    response = talk.ask(stream=stream, heard=heard)
    assert (response.get_text(), heard.text) == ("one two", "one two")
    assert response.usage == TokenUsage.of(20, 6)
    assert talk.sent["continuationToken"] == token
    assert talk.sent["contents"] == talk.server.requests[0].json["contents"]


def test_a_continuation_that_goes_in_circles_ends(talk: Talk) -> None:
    chunk = {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "CONTINUATION"}]}
    chunk["candidates"][0]["continuationToken"] = "AAAA"
    talk.plays(*[Answer.of_events(sse([(None, chunk)]))] * 5)
    with pytest.raises(IncompleteStream, match="CONTINUATION"):
        talk.ask()
    assert len(talk.server.requests) == 2


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (wire.error(400, "API key not valid.", reason="API_KEY_INVALID"), AuthFailed, "GOOGLE_API_KEY"),
        (
            wire.error(400, "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."),
            ContextOverflow,
            "too long for gemini-3.8-flash",
        ),
        (wire.error(400, "contents must not be empty"), BadRequest, "contents must not be empty"),
        (wire.error(404, "models/x is not found"), ModelNotFound, "no model 'gemini-3.8-flash'"),
    ],
)
def test_errors_by_their_text(talk: Talk, answer: Answer, kind: type[ProviderError], text: str) -> None:
    with pytest.raises(ProviderError, match=text) as caught:
        talk.plays(answer).ask()
    assert type(caught.value) is kind
    assert not caught.value.retryable


def test_googles_own_retry_delay(talk: Talk) -> None:
    talk.plays(wire.error(429, "slow", retry_delay="17.5s"), wire.error(429, "slow", retry_delay="9s", retry_after="3"))
    for expected in (17.5, 3.0):
        with pytest.raises(RateLimited) as caught:
            talk.ask()
        assert caught.value.retry_after == expected


@pytest.mark.parametrize("event", [{"error": {"message": "no number"}}, {"error": "text"}, [1, 2], "7"])
def test_odd_events_are_retryable_errors(talk: Talk, event: Any) -> None:
    with pytest.raises(ProviderError) as caught:
        talk.plays(Answer.of_events(sse([(None, wire.chunks(PLAIN)[0]), (None, event)]))).ask()
    assert caught.value.retryable


def test_cached_and_thinking_tokens(talk: Talk) -> None:
    usage = Usage(input=20, output=30, cache_read=500, thinking=10)
    response = talk.plays(Reply(text="x", usage=usage)).ask()
    assert response.usage == TokenUsage.of(520, 30, cache_read=500)


def test_list_models(talk: Talk) -> None:
    talk.plays(wire.models("gemini-3.8-flash", "gemma-3"), wire.models("gemini-3.8-flash", "gemma-3"))
    assert talk.provider.list_models() == ["gemini-3.8-flash", "gemma-3"]
    assert talk.provider.list_models("gemma") == ["gemma-3"]


def test_list_models_with_a_bad_key(talk: Talk) -> None:
    with pytest.raises(AuthFailed):
        talk.plays(wire.error(403, "denied")).provider.list_models()


def test_a_model_name_cannot_change_the_address(talk: Talk) -> None:
    for name in ("gemini?key=x", "../files/secret", "a&b"):
        with pytest.raises(ModelNotFound):
            talk.plays(PLAIN).ask(model=name)
    assert talk.server.requests == []


def test_context_windows() -> None:
    traits = GoogleGenAIProvider.traits
    assert traits.context_window("gemini-3.8-flash") == 1_048_576
    assert traits.context_window("publishers/google/models/gemini-2.5-pro") == 1_048_576
    assert traits.context_window("gemma-3-27b") == 131_072


# --- which credentials ---


def test_no_credentials_names_what_to_set() -> None:
    with pytest.raises(AuthFailed, match=r"GOOGLE_API_KEY.*GEMINI_API_KEY.*GOOGLE_CLOUD_PROJECT"):
        GoogleGenAIProvider(ProviderConfig())
    with pytest.raises(AuthFailed, match="needs a project"):
        GoogleGenAIProvider(ProviderConfig(use_vertex_ai=True))
    with pytest.raises(AuthFailed, match="no credentials"):
        GoogleGenAIProvider(ProviderConfig(project="p", use_vertex_ai=False))
    with pytest.raises(AuthFailed, match="does not exist"):
        GoogleGenAIProvider(ProviderConfig(project="p", credentials_path="/no/such/file.json"))


@pytest.mark.parametrize("variable", ["GOOGLE_API_KEY", "GEMINI_API_KEY"])
def test_key_and_address_from_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    with WireServer(Script(wire.render, PLAIN)) as server:
        monkeypatch.setenv(variable, "env-key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        provider = GoogleGenAIProvider(ProviderConfig())
        assert ask(provider, GEMINI.request()).get_text() == "It is sunny."
        assert server.requests[0].headers["x-goog-api-key"] == "env-key"
        provider.close()


def _token() -> Any:
    from google.oauth2.credentials import Credentials

    return Credentials(token="fake-token")  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("stream", [True, False])
def test_vertex_addresses_the_project(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "must not be used")
    with WireServer(Script(wire.render, PLAIN)) as server:
        config = ProviderConfig(
            project="my-project", location="europe-west1", base_url=server.url, extra={"credentials": _token()}
        )
        provider = GoogleGenAIProvider(config)
        assert ask(provider, GEMINI.request(stream=stream)).get_text() == "It is sunny."
        request = server.requests[0]
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        assert request.path == (
            "/v1beta1/projects/my-project/locations/europe-west1/publishers/google/models/gemini-3.8-flash:" + method
        )
        assert request.headers["authorization"] == "Bearer fake-token"
        assert "x-goog-api-key" not in request.headers
        provider.close()


def test_vertex_without_usable_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    broken = tmp_path / "key.json"
    broken.write_text("{}")
    with WireServer(Script(wire.render, PLAIN)) as server:
        provider = GoogleGenAIProvider(ProviderConfig(project="p", base_url=server.url, credentials_path=str(broken)))
        with pytest.raises(AuthFailed, match=r"key\.json"):
            ask(provider, GEMINI.request())
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
        provider = GoogleGenAIProvider(ProviderConfig(project="p", base_url=server.url))
        with pytest.raises(AuthFailed, match="application-default"):
            ask(provider, GEMINI.request())
        assert server.requests == []
        provider.close()


def test_vertex_with_a_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with WireServer(Script(wire.render, PLAIN)) as server:
        provider = GoogleGenAIProvider(ProviderConfig(api_key="express", use_vertex_ai=True, base_url=server.url))
        ask(provider, GEMINI.request())
        assert server.requests[0].path.startswith("/v1beta1/publishers/google/models/")
        assert server.requests[0].headers["x-goog-api-key"] == "express"
        provider.close()


def test_an_empty_toolset_sends_no_tools(talk: Talk) -> None:
    talk.plays(PLAIN).ask(tools=ToolSet(), tool_choice="none", system="")
    assert set(talk.sent) - {"generationConfig"} == {"contents"}


def test_the_request_of_two_sessions_begins_with_the_same_bytes(talk: Talk) -> None:
    talk.plays(PLAIN, PLAIN)
    talk.ask(Message.from_text("user", "one"))
    talk.ask(Message.from_text("user", "two"))
    first, second = (request.json for request in talk.server.requests)
    assert {**first, "contents": None} == {**second, "contents": None}
    assert talk.server.requests[0].body.replace(b"one", b"two") == talk.server.requests[1].body


def test_a_whole_answer_has_its_own_method(talk: Talk) -> None:
    assert talk.plays(PLAIN).ask(stream=False).get_text() == "It is sunny."
    assert talk.server.requests[0].path == "/v1/models/gemini-3.8-flash:generateContent"
