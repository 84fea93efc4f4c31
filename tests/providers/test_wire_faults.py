"""What must hold for Gemini and chat completions alike: cancels, broken lines, errors, many threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.speakers import GEMINI, OPENAI, WEATHER, Heard, Speaker, ask, settings
from support.wire import Answer, Call, Handler, Reply, Request, Script, Usage, WireServer

from shared.cancel import CancelToken
from shared.errors import (
    AuthFailed,
    BadRequest,
    CancelledException,
    ConnectionFailed,
    IncompleteStream,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    Refused,
    ServerFailed,
)
from shared.providers.base import Provider, ProviderConfig, ToolSet
from shared.types import (
    Attachment,
    FinishReason,
    FunctionCall,
    Message,
    Part,
    ProviderResponse,
    Role,
    Signature,
    ToolResult,
    ToolSchema,
)

RICH = Reply(
    text="Let me look.",
    thought="They ask about Oslo.",
    calls=(Call("c1", "weather", {"city": "Oslo"}), Call("c2", "weather", {"city": "Rome"})),
    usage=Usage(input=20, output=9, cache_read=100, thinking=4),
)
PLAIN = Reply(text="It is sunny.")


@pytest.fixture(params=[GEMINI, OPENAI], ids=lambda speaker: speaker.name)
def speaker(request: pytest.FixtureRequest) -> Speaker:
    found: Speaker = request.param
    return found


@pytest.fixture(params=[True, False], ids=["stream", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class _Talk:
    def __init__(self, speaker: Speaker, handler: Handler, **config: Any) -> None:
        self.server = WireServer(handler)
        self.provider: Provider = speaker.provider(self.server.url, **config)


@pytest.fixture
def talk(speaker: Speaker) -> Iterator[Any]:
    opened: list[_Talk] = []

    def begin(*steps: Any, repeat: bool = False, **config: Any) -> _Talk:
        made = _Talk(speaker, Script(speaker.render, *steps, repeat=repeat), **config)
        made.server.__enter__()
        opened.append(made)
        return made

    yield begin
    for made in opened:
        made.provider.close()
        made.server.__exit__()


def _shape(response: ProviderResponse) -> tuple[Any, ...]:
    calls = [(call.id, call.name, dict(call.args)) for call in response.get_function_calls()]
    return response.get_text(), calls, response.usage, response.finish_reason


def test_a_rich_answer_is_the_same_streamed_and_whole(speaker: Speaker, talk: Any, stream: bool) -> None:
    heard = Heard()
    response = ask(talk(RICH).provider, speaker.request(stream=stream), heard=heard)
    assert heard == Heard(text="Let me look.", thought="They ask about Oslo.")
    assert [part.thought for part in response.parts if part.thought] == ["They ask about Oslo."]
    assert [(c.id, c.name, c.args) for c in response.get_function_calls()] == [
        ("c1", "weather", {"city": "Oslo"}),
        ("c2", "weather", {"city": "Rome"}),
    ]
    assert response.finish_reason is FinishReason.TOOL_USE
    assert response.usage.as_dict() == {
        "prompt_tokens": 120,
        "output_tokens": 9,
        "cache_read_tokens": 100,
        "cache_write_tokens": 0,
        "total_tokens": 129,
    }


@pytest.mark.parametrize("piece", [1, 7])
def test_a_slow_drip_is_an_answer(speaker: Speaker, talk: Any, stream: bool, piece: int) -> None:
    def drip(request: Request) -> Answer:
        return speaker.render(RICH, request).drip(piece)

    made = talk(RICH, drip)
    request = speaker.request(stream=stream)
    assert _shape(ask(made.provider, request)) == _shape(ask(made.provider, request))


def test_a_line_dropped_at_any_byte_is_never_half_an_answer(speaker: Speaker, talk: Any) -> None:
    made = talk(RICH)
    request = speaker.request()
    whole = ask(made.provider, request)
    body = speaker.render(RICH, made.server.requests[0]).body
    offsets = sorted({*range(0, len(body), max(1, len(body) // 40)), len(body) - 1})
    outcomes = set()
    for at in offsets:
        made.server.handler = lambda sent, at=at: speaker.render(RICH, sent).drop(at)
        outcomes.add(_outcome(made.provider, speaker, whole))
    assert IncompleteStream in outcomes
    assert outcomes <= {ConnectionFailed, IncompleteStream, None}
    made.server.handler = lambda sent: speaker.render(RICH, sent)
    assert _shape(ask(made.provider, request)) == _shape(whole)


def test_a_clean_end_at_any_byte_is_never_half_an_answer(speaker: Speaker, talk: Any) -> None:
    made = talk(RICH)
    whole = ask(made.provider, speaker.request())
    body = speaker.render(RICH, made.server.requests[0]).body
    for at in range(0, len(body), max(1, len(body) // 40)):
        made.server.handler = lambda sent, at=at: speaker.render(RICH, sent).cut(at)
        assert _outcome(made.provider, speaker, whole) in (IncompleteStream, None)
    assert at > body.rindex(b"data: ") - 200


def _outcome(provider: Provider, speaker: Speaker, whole: ProviderResponse) -> type[Exception] | None:
    try:
        got = ask(provider, speaker.request())
    except ConnectionFailed as error:
        return type(error) if error.retryable else AssertionError
    # The finish reason had come: nothing of the answer may be missing (usage is estimated if it has not come).
    assert (got.get_text(), got.finish_reason) == (whole.get_text(), whole.finish_reason)
    assert [c.args for c in got.get_function_calls()] == [c.args for c in whole.get_function_calls()]
    assert got.usage.total_tokens > 0
    return None


def test_a_whole_answer_cut_short_is_an_error(speaker: Speaker, talk: Any) -> None:
    made = talk(PLAIN)
    request = speaker.request(stream=False)
    ask(made.provider, request)
    for fault in ("cut", "drop"):
        made.server.handler = lambda sent, fault=fault: getattr(speaker.render(PLAIN, sent), fault)(25)
        with pytest.raises((ServerFailed, ConnectionFailed)) as caught:
            ask(made.provider, request)
        assert caught.value.retryable


def test_garbage_is_a_retryable_error_and_frees_the_connection(speaker: Speaker, talk: Any, stream: bool) -> None:
    garbage = speaker.garbage_stream(PLAIN) if stream else Answer(b"<html>hello</html>", content_type="text/html")
    made = talk(garbage, garbage, PLAIN, max_connections=1, connect_timeout_seconds=2)
    errors = []
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            ask(made.provider, speaker.request(stream=stream))
        errors.append(caught.value)  # kept, so that nothing is freed by garbage collection
    assert all(error.retryable for error in errors)
    assert ask(made.provider, speaker.request(stream=stream)).get_text() == "It is sunny."


def test_an_error_inside_a_200_stream(speaker: Speaker, talk: Any) -> None:
    made = talk(speaker.broken_stream(RICH), PLAIN, max_connections=1, connect_timeout_seconds=2)
    with pytest.raises(ServerFailed, match="it broke"):
        ask(made.provider, speaker.request())
    assert ask(made.provider, speaker.request()).get_text() == "It is sunny."


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, AuthFailed),
        (403, AuthFailed),
        (404, ModelNotFound),
        (429, RateLimited),
        (500, ServerFailed),
        (502, ServerFailed),
        (503, Overloaded),
        (529, Overloaded),
    ],
)
def test_status_becomes_an_error_of_ours(
    speaker: Speaker, talk: Any, stream: bool, status: int, kind: type[ProviderError]
) -> None:
    with pytest.raises(ProviderError, match="because of this") as caught:
        ask(talk(speaker.error(status, "because of this")).provider, speaker.request(stream=stream))
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.provider) == (status, speaker.name)
    assert "\n" not in str(caught.value)


def test_an_error_page_of_a_proxy_is_read_too(speaker: Speaker, talk: Any, stream: bool) -> None:
    page = Answer(b"<html>\xff bad gateway</html>", 502, content_type="text/html")
    with pytest.raises(ServerFailed):
        ask(talk(page).provider, speaker.request(stream=stream))


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("0.5", 0.5), (None, None)])
def test_retry_after(speaker: Speaker, talk: Any, header: str | None, seconds: float | None) -> None:
    headers = {"retry_after": header} if header else {}
    made = talk(speaker.error(429, "slow down", **headers), PLAIN)
    with pytest.raises(RateLimited) as caught:
        ask(made.provider, speaker.request())
    assert caught.value.retry_after == seconds
    assert len(made.server.requests) == 1  # the SDK did not retry by itself


def test_silence_before_and_within_the_answer(speaker: Speaker, talk: Any) -> None:
    made = talk(Answer().mute(), lambda sent: speaker.render(RICH, sent).hang(60), timeout_seconds=0.2)
    for _ in range(2):
        with pytest.raises(ConnectionFailed, match="silent"):
            ask(made.provider, speaker.request())


def test_silence_after_a_whole_answer_does_not_hold_it_back(speaker: Speaker, talk: Any) -> None:
    def never_ends(sent: Request) -> Answer:
        answer = speaker.render(PLAIN, sent)
        return answer.hang(len(answer.body))

    made = talk(never_ends, PLAIN)
    assert ask(made.provider, speaker.request()).get_text() == "It is sunny."
    assert ask(made.provider, speaker.request()).get_text() == "It is sunny."


@pytest.mark.parametrize("fault", ["drop", "hang"])
def test_a_line_that_breaks_after_the_finish_reason_has_said_everything(
    speaker: Speaker, talk: Any, fault: str
) -> None:
    def breaks(sent: Request) -> Answer:
        answer = speaker.render(PLAIN, sent)
        at = answer.body.index(b"\n\n", answer.body.lower().rindex(b'"stop"')) + 2
        faulty: Answer = getattr(answer, fault)(at)
        return faulty

    made = talk(breaks, PLAIN)
    response = ask(made.provider, speaker.request())
    assert (response.get_text(), response.finish_reason) == ("It is sunny.", FinishReason.STOP)
    assert response.usage.total_tokens > 0
    assert ask(made.provider, speaker.request()).get_text() == "It is sunny."


def test_waiting_for_a_connection_has_its_own_limit(speaker: Speaker, talk: Any) -> None:
    made = talk(Answer().mute(), max_connections=1, connect_timeout_seconds=0.2, timeout_seconds=300)
    token = CancelToken()

    def occupy() -> None:
        with pytest.raises(CancelledException):
            ask(made.provider, speaker.request(), cancel=token)

    first = threading.Thread(target=occupy)
    first.start()
    made.server.wait_hanging(1)
    with pytest.raises(ConnectionFailed, match="max_connections"):
        ask(made.provider, speaker.request())
    token.cancel()
    first.join(10)
    assert not first.is_alive()


def test_nobody_listens(speaker: Speaker) -> None:
    with WireServer(Script(speaker.render)) as server:
        url = server.url
    provider = speaker.provider(url)
    with pytest.raises(ConnectionFailed, match="cannot connect to"):
        ask(provider, speaker.request())
    provider.close()


@pytest.mark.parametrize("moment", ["before headers", "mid-stream"])
def test_cancel_from_another_thread_and_the_pool_stays_usable(speaker: Speaker, talk: Any, moment: str) -> None:
    stuck = Answer().mute() if moment == "before headers" else None
    step = stuck or (lambda sent: speaker.render(RICH, sent).hang(len(speaker.render(RICH, sent).body) // 2))
    made = talk(step, step, step, PLAIN, max_connections=3, connect_timeout_seconds=2)
    outcomes: list[BaseException] = []
    token = CancelToken()

    def run() -> None:
        try:
            ask(made.provider, speaker.request(), cancel=token.child())
        except BaseException as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    made.server.wait_hanging(3)
    token.cancel("enough")
    for thread in threads:
        thread.join(10)
    assert [(type(error), str(error)) for error in outcomes] == [(CancelledException, "enough")] * 3
    made.server.wait_hangups(3)
    assert ask(made.provider, speaker.request()).get_text() == "It is sunny."


def test_cancelled_before_it_began_sends_nothing(speaker: Speaker, talk: Any) -> None:
    made, token = talk(PLAIN), CancelToken()
    token.cancel("no need")
    with pytest.raises(CancelledException, match="no need"):
        ask(made.provider, speaker.request(), cancel=token)
    assert made.server.requests == []


def test_cancel_from_within_on_chunk(speaker: Speaker, talk: Any) -> None:
    made, token = talk(RICH, PLAIN, max_connections=1, connect_timeout_seconds=2), CancelToken()
    with pytest.raises(CancelledException, match="seen enough"):
        made.provider.generate(
            speaker.request(), cancel=token, on_chunk=lambda kind, text: token.cancel("seen enough") and None
        )
    assert ask(made.provider, speaker.request()).get_text() == "It is sunny."


def test_an_error_of_the_host_passes_unchanged_and_frees_the_connection(speaker: Speaker, talk: Any) -> None:
    made = talk(RICH, PLAIN, max_connections=1, connect_timeout_seconds=2)

    def explode(kind: str, text: str) -> None:
        raise LookupError("of the host")

    with pytest.raises(LookupError, match="of the host"):
        made.provider.generate(speaker.request(), cancel=CancelToken(), on_chunk=explode)
    assert ask(made.provider, speaker.request()).get_text() == "It is sunny."


def test_200_threads_share_one_client(speaker: Speaker, talk: Any) -> None:
    gate = threading.Barrier(200, timeout=60)

    def answer(sent: Request) -> Answer:
        gate.wait()  # opens only when all are in flight at once
        return speaker.render(PLAIN, sent)

    made = talk(answer, repeat=True, connect_timeout_seconds=60)
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(ask(made.provider, speaker.request()).get_text()))
        for _ in range(200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert texts == ["It is sunny."] * 200
    assert made.server.peak == 200


def test_structured_output(speaker: Speaker, talk: Any, stream: bool) -> None:
    schema = {"type": "object", "properties": {"sky": {"type": "string"}}}
    made = talk(Reply(text='{"sky": "blue"}'), Reply(text="no JSON"))
    request = speaker.request(stream=stream, settings=settings(response_schema=schema))
    assert ask(made.provider, request).structured_output == {"sky": "blue"}
    assert ask(made.provider, request).structured_output is None
    assert '"sky"' in made.server.requests[0].body.decode()


def test_length_limit_and_refusal(speaker: Speaker, talk: Any, stream: bool) -> None:
    made = talk(Reply(text="It is su", finish="max_tokens"), Reply(text="I will not.", finish="refusal"))
    request = speaker.request(stream=stream)
    cut = ask(made.provider, request)
    assert (cut.get_text(), cut.finish_reason) == ("It is su", FinishReason.MAX_TOKENS)
    with pytest.raises(Refused) as caught:
        ask(made.provider, request)
    assert caught.value.usage is not None
    assert caught.value.usage.total_tokens == 15


def test_messages_and_tools_are_converted_once(speaker: Speaker, talk: Any) -> None:
    made = talk(PLAIN, repeat=True)
    history = [Message.from_text("user", "hi")]
    tools = ToolSet([WEATHER])
    ask(made.provider, speaker.request(*history, tools=tools))
    memos = dict(history[0]._memo), dict(tools.memo)
    ask(made.provider, speaker.request(*history, Message.from_text("user", "more"), tools=tools))
    assert all(history[0]._memo[key] is value for key, value in memos[0].items())
    assert all(tools.memo[key] is value for key, value in memos[1].items())
    assert any(key.startswith(speaker.name) for key in memos[0])


def test_hostile_content_makes_a_readable_request(speaker: Speaker, talk: Any) -> None:
    made = talk(PLAIN)
    call = FunctionCall("id with spaces/" + "x" * 80, "srv.tool/ünï" + "y" * 80, {"n": float("nan"), "s": "\ud800"})
    history = [
        Message.from_text("user", "half a character: \ud83d"),
        Message(Role.MODEL, (Part(text=""), Part(function_call=call))),
        Message(
            Role.TOOL, (Part(function_response=ToolResult(call.id, call.name, {"at": object, "f": float("inf")})),)
        ),
        Message(Role.MODEL, ()),
        Message.from_text("user", "go on"),
    ]
    assert ask(made.provider, speaker.request(*history, system="\udfff")).get_text() == "It is sunny."
    sent = made.server.requests[0].body
    assert json.loads(sent, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert b"\\ud83d" not in sent.lower()


def test_tool_names_come_back_as_ours(speaker: Speaker, talk: Any) -> None:
    odd = ToolSchema("files.read all", "Reads.")

    def call_first_tool(sent: Request) -> Answer:
        declared = sent.json["tools"][0]
        declared = declared.get("function") or declared["functionDeclarations"][0]
        return speaker.render(Reply(calls=(Call("c1", declared["name"]),)), sent)

    response = ask(talk(call_first_tool).provider, speaker.request(tools=ToolSet([odd])))
    assert [call.name for call in response.get_function_calls()] == ["files.read all"]


def test_other_providers_thoughts_and_marks_are_not_sent(speaker: Speaker, talk: Any) -> None:
    made = talk(PLAIN)
    mark = Signature("anthropic", "secret-mark")
    history = [
        Message.from_text("user", "hi"),
        Message(Role.MODEL, (Part(thought="foreign thought", signature=mark), Part(text="hello", signature=mark))),
        Message(Role.MODEL, (Part(thought="foreign thought"),)),
        Message.from_text("user", "go on"),
    ]
    ask(made.provider, speaker.request(*history))
    assert b"foreign thought" not in made.server.requests[0].body
    assert b"secret-mark" not in made.server.requests[0].body
    assert b"hello" in made.server.requests[0].body


def test_a_result_in_two_messages_stays_next_to_its_calls(speaker: Speaker, talk: Any) -> None:
    made = talk(PLAIN)
    calls = tuple(Part(function_call=FunctionCall(f"c{n}", "weather", {"city": "Oslo"})) for n in (1, 2))
    image = (Attachment("image/png", b"PNG"),)
    history = [
        Message.from_text("user", "hi"),
        Message(Role.MODEL, calls),
        Message(Role.TOOL, (Part(function_response=ToolResult("c1", "weather", "a", attachments=image)),)),
        Message(Role.TOOL, (Part(function_response=ToolResult("c2", "weather", "b")),)),
        Message.from_text("user", "and now?"),
    ]
    ask(made.provider, speaker.request(*history))
    sent = made.server.requests[0].json
    if speaker is GEMINI:
        responses = [part["functionResponse"]["id"] for part in sent["contents"][2]["parts"]]
        assert responses == ["c1", "c2"]
    else:
        assert [m["role"] for m in sent["messages"]][2:] == ["assistant", "tool", "tool", "user", "user"]


def test_tool_choice_none_keeps_the_tools_but_forbids_them(speaker: Speaker, talk: Any) -> None:
    made = talk(PLAIN)
    ask(made.provider, speaker.request(tool_choice="none"))
    sent = made.server.requests[0].json
    assert sent["tools"]
    choice = sent.get("tool_choice") or sent["toolConfig"]["functionCallingConfig"]["mode"]
    assert choice.lower() == "none"


def test_close_lets_go_and_the_next_call_reconnects(speaker: Speaker, talk: Any) -> None:
    made = talk(PLAIN, repeat=True)
    for _ in range(2):
        assert ask(made.provider, speaker.request()).get_text() == "It is sunny."
        made.provider.close()
    assert made.server.connections == 2


def test_unknown_extra_and_bad_base_url(speaker: Speaker) -> None:
    from shared.errors import ConfigError

    with pytest.raises(ConfigError, match="colour"):
        speaker.factory(ProviderConfig(api_key="k", extra={"colour": 1}))
    with pytest.raises(ConfigError, match="ftp://nowhere"):
        speaker.factory(ProviderConfig(api_key="k", base_url="ftp://nowhere"))


def test_no_model_is_an_error_that_says_so(speaker: Speaker, talk: Any) -> None:
    made = talk(PLAIN)
    with pytest.raises(ModelNotFound, match="model"):
        ask(made.provider, replace(speaker.request(), model=" "))
    assert made.server.requests == []
