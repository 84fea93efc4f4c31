"""The same conversation on every provider, over the real SDKs and the real wire."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.labs import ANTHROPIC, DIALECTS, Dialect, WireLab, on_the_wire
from support.tools import Lab, results_of
from support.wire import Answer, Reply, Request, Script, Usage

from shared import JaatoClient, JaatoRuntime, PluginRegistry
from shared.errors import AuthFailed, ConnectionFailed, ContextOverflow
from shared.governor import RetryPolicy
from shared.providers.script import Reply as Said
from shared.testing import check_history

EVERY = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _registry(lab: Lab | None = None) -> PluginRegistry:
    registry = PluginRegistry()
    registry.register_plugin(lab or Lab(), expose=True)
    return registry


def _client(dialect: Dialect, stack: ExitStack, *steps: object, lab: Lab | None = None) -> tuple[JaatoClient, WireLab]:
    wire = WireLab(dialect, stack)
    said = [on_the_wire(step) if isinstance(step, Said) else step for step in steps]
    server = wire.serve(Script(dialect.render, *said, repeat=True))
    client = stack.enter_context(JaatoClient(provider_name=dialect.name))
    client.register_provider(dialect.name, dialect.config(server))
    client.connect(None, None, dialect.model)
    client.configure_tools(_registry(lab), permissions="allow")
    return client, wire


@EVERY
def test_the_host_example(dialect: Dialect, stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Word for word as a host writes it, with keys and addresses from the vendors' own variables."""
    server = WireLab(dialect, stack).serve(Script(dialect.render, Reply("All analysed."), repeat=True))
    url = server.url + dialect.path
    for variable in ("ANTHROPIC", "OPENAI", "GOOGLE"):
        monkeypatch.setenv(f"{variable}_API_KEY", "key")
    for variable in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(variable, url)
    project_id, location, model = None, None, dialect.model

    registry = PluginRegistry()
    registry.discover()
    for name in ("cli", "mcp", "subagent"):
        registry.expose_tool(name)
    client = JaatoClient(provider_name=dialect.name)
    client.connect(project_id, location, model)
    client.configure_tools(registry)
    answer = client.send_message("Spawn a subagent to analyse the code")

    assert answer == "All analysed."
    client.close()


def test_the_host_example_with_the_scripted_model() -> None:
    project_id, location, model = None, None, None
    registry = PluginRegistry()
    registry.discover()
    for name in ("cli", "mcp", "subagent"):
        registry.expose_tool(name)
    client = JaatoClient(provider_name="script")
    client.connect(project_id, location, model)
    client.configure_tools(registry)
    answer = client.send_message("Spawn a subagent to analyse the code")
    assert answer == "You said: Spawn a subagent to analyse the code"
    client.close()


@EVERY
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_tools_parallel_and_several_turns(dialect: Dialect, stack: ExitStack, stream: bool) -> None:
    meeting = Said("Meeting.", tuple(("meet", {"who": who}) for who in "abc"))
    client, wire = _client(dialect, stack, meeting, Said("All met."), Said("Bye."))
    client.get_session().set_streaming_enabled(stream)
    heard: list[str] = []
    assert client.send_message("meet", lambda source, text, mode: heard.append(text)) == "All met."
    assert client.send_message("thanks") == "Bye."
    assert results_of(client.get_history()) == ["a", "b", "c"]
    assert "".join(heard) == "Meeting.All met."
    check_history(client.get_history())
    assert client.get_runtime().ledger.total.calls == 3
    assert wire.server is not None
    assert len(wire.server.requests) == 3


@pytest.mark.parametrize("second", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("first", DIALECTS, ids=lambda dialect: dialect.name)
def test_switching_provider_in_mid_conversation(first: Dialect, second: Dialect, stack: ExitStack) -> None:
    thinking = Said("Adding.", (("add", {"a": 1}), ("crash", {})), thought="Let me think.")
    client, _ = _client(first, stack, thinking, Said("It is 2."))
    client.send_message("1 + 1?")
    other = WireLab(second, stack)
    steps = [on_the_wire(Said("", (("add", {"a": 2}),), thought="Hm.")), on_the_wire(Said("And 3."))]
    server = other.serve(Script(second.render, *steps))
    client.register_provider(second.name, second.config(server))
    client.get_session().set_model(second.model, second.name)
    assert client.send_message("and one more?") == "And 3."
    check_history(client.get_history())
    body = json.dumps(server.requests[-1].json)
    assert "It is 2." in body
    assert "boom" in body
    if first.name != second.name:
        assert "Let me think." not in body, "one vendor's reasoning is not shown to another"


@EVERY
def test_stop_in_mid_stream_keeps_the_text_and_the_next_message_works(dialect: Dialect, stack: ExitStack) -> None:
    def hang(request: Request) -> Answer:
        whole = dialect.render(Reply("A long story that nobody hears to its end"), request)
        return whole.hang(len(whole.body) * 2 // 3)

    client, wire = _client(dialect, stack, hang, Said("Fine."))
    assert wire.server is not None
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(client.send_message("tell")))
    thread.start()
    wire.server.wait_hanging(1)
    while not client.stop():
        pass
    thread.join(20)
    assert not thread.is_alive()
    assert answers[0].endswith("[cancelled]")
    check_history(client.get_history())
    assert client.send_message("and?") == "Fine."
    check_history(client.get_history())


@EVERY
def test_a_broken_stream_is_tried_again(dialect: Dialect, stack: ExitStack) -> None:
    def cut(request: Request) -> Answer:
        whole = dialect.render(Reply("half an answer, then nothing"), request)
        return whole.cut(len(whole.body) // 2)

    client, _ = _client(dialect, stack, cut, Said("Whole."))
    runtime = client.get_runtime()
    runtime.retry = RetryPolicy(base_delay=0.001)
    client.get_session().refresh_tools()
    told: list[str] = []
    client.set_retry_callback(lambda message, *rest: told.append(message))
    assert client.send_message("go") == "Whole."
    assert len(told) == 1
    assert [m.text for m in client.get_history()] == ["go", "Whole."]


@EVERY
def test_overflow_collects_once_and_tries_again(dialect: Dialect, stack: ExitStack) -> None:
    overflow = dialect.faults["overflow"]
    client, _ = _client(dialect, stack, *[Said("x" * 3000)] * 8, overflow, Said("Fits."), overflow)
    for _ in range(8):
        client.send_message("more " * 200)
    assert client.send_message("last") == "Fits."
    assert [result.trigger_reason.value for result in client.get_session().get_gc_history()] == ["overflow"]
    check_history(client.get_history())
    with pytest.raises(ContextOverflow):
        client.send_message("again")  # the service refuses for ever: one more try, then the truth


@EVERY
def test_auth_and_connection_errors_are_one_line(dialect: Dialect, stack: ExitStack) -> None:
    client, _ = _client(dialect, stack, dialect.faults["auth"])
    with pytest.raises(AuthFailed) as caught:
        client.send_message("go")
    assert "\n" not in str(caught.value)
    with JaatoClient(provider_name=dialect.name) as lost:
        config = dialect.config(WireLab(dialect, stack).serve(lambda request: Answer()))
        lost.register_provider(dialect.name, type(config)(api_key="k", base_url="http://127.0.0.1:9"))
        lost.get_runtime().retry = RetryPolicy(attempts=1)
        lost.connect(model=dialect.model)
        with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:9"):
            lost.send_message("go")


@EVERY
def test_fifty_sessions_on_a_service_that_takes_five(dialect: Dialect, stack: ExitStack) -> None:
    def answer(request: Request) -> Answer:
        whole = dialect.render(Reply("ok"), request)
        return type(whole)(whole.body, whole.status, whole.headers, whole.content_type, delay=0.01)

    server = WireLab(dialect, stack).serve(answer, max_concurrent=5, refusal=dialect.faults["rate_limited"])
    refusal = dialect.faults["rate_limited"]
    server._refusal = type(refusal)(refusal.body, 429, {"retry-after": "0.05"}, refusal.content_type)
    runtime = JaatoRuntime(dialect.name, retry=RetryPolicy(base_delay=0.02, max_delay=0.2, rate_limit_attempts=50))
    runtime.register_provider(dialect.name, dialect.config(server))
    answers: list[str] = []

    def work() -> None:
        session = runtime.create_session(dialect.model)
        answers.extend(session.send_message("go") for _ in range(4))

    threads = [threading.Thread(target=work) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert answers == ["ok"] * 200
    assert server.refused < 100, f"{server.refused} refusals for 200 calls"


def test_anthropic_prefix_is_the_same_for_two_sessions_and_grows_only_at_the_end(stack: ExitStack) -> None:
    client, wire = _client(ANTHROPIC, stack, Said("one"))
    runtime = client.get_runtime()
    sessions = [runtime.create_session(ANTHROPIC.model, system_instructions="Be kind.") for _ in range(2)]
    for session in sessions:
        session.send_message("the same question")
    sessions[0].send_message("another one")
    assert wire.server is not None
    first, second, longer = (request.body for request in wire.server.requests)
    assert first == second
    body = json.loads(longer)
    marks = json.dumps(body).count("cache_control")
    assert 3 <= marks <= 4
    assert "cache_control" in json.dumps(body["tools"][-1])
    assert "cache_control" in json.dumps(body["system"])
    prefix = first[: first.rindex(b"the same question")]
    assert longer.startswith(prefix)


def test_usage_with_cache_reaches_the_ledger(stack: ExitStack) -> None:
    client, _ = _client(ANTHROPIC, stack, Reply("hi", usage=Usage(input=10, output=5, cache_read=100, cache_write=20)))
    client.send_message("go")
    (row,) = client.get_runtime().ledger.rows()
    assert row.usage.prompt_tokens == 130
    assert row.usage.cache_read_tokens == 100
    assert row.cost_usd is not None
    assert float(row.cost_usd) == pytest.approx((10 * 3 + 100 * 0.3 + 20 * 3.75 + 5 * 15) / 1e6)


@EVERY
def test_tokens_of_a_stopped_answer_are_booked(dialect: Dialect, stack: ExitStack) -> None:
    def hang(request: Request) -> Answer:
        whole = dialect.render(Reply("A long story that nobody hears to its end", usage=Usage(input=77)), request)
        return whole.hang(len(whole.body) * 2 // 3)

    client, wire = _client(dialect, stack, hang)
    heard = threading.Event()
    thread = threading.Thread(target=client.send_message, args=("tell", lambda *said: heard.set()))
    thread.start()
    assert heard.wait(20)
    client.stop()
    thread.join(20)
    (row,) = client.get_runtime().ledger.rows()
    assert row.error is not None
    assert row.error.startswith("CancelledException")
    assert row.usage.prompt_tokens > 0
    assert row.usage.output_tokens > 0
    assert wire.server is not None
