"""From `send_message` to tool calls and back: what one turn does."""

from __future__ import annotations

import threading

import pytest
from support.tools import Lab, calls, results_of, steps

from shared import FunctionCall, JaatoRuntime, Message, Part, PluginRegistry, Role
from shared.errors import BadRequest, ConfigError, ProviderError, RateLimited, SessionBusy
from shared.events import AgentOutput, TurnCompleted
from shared.governor import RetryPolicy
from shared.providers.script import Reply, ScriptProvider
from shared.testing import check_history, scripted_client
from shared.types import FinishReason, TokenUsage


def test_text_answer_streams_and_is_returned() -> None:
    heard: list[tuple[str, str, str]] = []
    with scripted_client(steps("Hello.")) as client:
        assert client.send_message("Hi", lambda *said: heard.append(said)) == "Hello."
        assert [message.role for message in client.get_history()] == [Role.USER, Role.MODEL]
    assert heard == [("model", "Hello.", "write")]


def test_tool_call_and_back() -> None:
    heard: list[tuple[str, str, str]] = []
    script = steps(calls(("add", {"a": 2, "b": 3}), text="Let me add."), "It is 5.")
    with scripted_client(script, Lab()) as client:
        assert client.send_message("2 + 3?", lambda *said: heard.append(said)) == "It is 5."
        history = client.get_history()
    assert [message.role.value for message in history] == ["user", "model", "tool", "model"]
    assert results_of(history) == ["5"]
    assert heard == [
        ("model", "Let me add.", "write"),
        ("system", "", "flush"),
        ("model", "It is 5.", "write"),
    ]
    check_history(history)


def test_parallel_calls_run_in_parallel_and_come_back_in_order() -> None:
    script = steps(calls(*[("meet", {"who": who}) for who in "abc"]), "done")
    with scripted_client(script, Lab()) as client:
        assert client.send_message("meet") == "done"  # the barrier opens only for three at once
        assert results_of(client.get_history()) == ["a", "b", "c"]


def test_coroutine_tools_run() -> None:
    with scripted_client(steps(calls(("later", {"text": "hi"})), "done"), Lab()) as client:
        client.send_message("go")
        assert results_of(client.get_history()) == ["HI"]


def test_a_crash_unknown_tool_and_bad_arguments_are_answered_and_the_turn_goes_on() -> None:
    script = steps(calls(("crash", {}), ("ad", {"a": 1}), ("add", {"a": "one", "c": 1}), ("add", {"a": 1})), "so be it")
    with scripted_client(script, Lab()) as client:
        assert client.send_message("go") == "so be it"
        crash, unknown, bad, good = results_of(client.get_history())
        check_history(client.get_history())
    assert "RuntimeError: boom" in crash
    assert "Did you mean 'add'" in unknown
    assert "'a': expected integer" in bad
    assert "unknown field 'c'" in bad
    assert good == "2"


def test_over_long_result_is_capped_with_both_ends() -> None:
    with scripted_client(steps(calls(("essay", {"length": 500_000})), "ok"), Lab()) as client:
        client.send_message("write")
        (text,) = results_of(client.get_history())
    assert len(text) <= 60_000
    assert text.startswith("begin")
    assert text.endswith("end")
    assert "left out" in text


def test_several_turns_share_one_history_and_reset_forgets_it() -> None:
    script = steps("one", "two", "three")
    with scripted_client(script) as client:
        client.send_message("first")
        client.send_message("second")
        assert [m.text for m in client.get_history()] == ["first", "one", "second", "two"]
        assert len(client.get_turn_accounting()) == 2
        client.reset_session()
        assert client.get_history() == []
        assert client.get_turn_accounting() == []
        client.send_message("third")
        assert [m.text for m in script.seen[-1]] == ["third"]


def test_reset_to_a_given_history() -> None:
    script = steps("fine")
    with scripted_client(script) as client:
        client.reset_session([Message.from_text(Role.USER, "a"), Message.from_text(Role.MODEL, "b")])
        client.send_message("c")
        assert [m.text for m in script.seen[-1]] == ["a", "b", "c"]


def test_a_given_history_with_open_calls_is_completed_and_a_broken_one_refused() -> None:
    call = FunctionCall("c1", "add", {"a": 1})
    asked = [Message.from_text(Role.USER, "a"), Message(Role.MODEL, (Part(function_call=call),))]
    with scripted_client(steps("fine"), Lab()) as client:
        client.reset_session(asked)
        check_history(client.get_history())
        assert client.send_message("go on") == "fine"
        with pytest.raises(ConfigError, match="begins with a user message"):
            client.reset_session(asked[1:])
        assert len(client.get_history()) == 5, "a refused history changes nothing"


def test_a_service_that_asks_for_hours_is_not_waited_for() -> None:
    provider = ScriptProvider(steps(RateLimited("come back tomorrow", retry_after=86_400.0)))
    runtime = JaatoRuntime("script")
    runtime.register_provider("script", provider)
    with pytest.raises(RateLimited):
        runtime.create_session("m").send_message("go")


def test_two_runtimes_on_one_provider_share_its_gate() -> None:
    provider = ScriptProvider(steps("ok"))
    first, second = JaatoRuntime("script"), JaatoRuntime("script")
    assert first.governor(provider, "m") is second.governor(provider, "m")
    assert first.governor(provider, "m") is not first.governor(provider, "other")


def test_parts_with_images_reach_the_model() -> None:
    from shared import Attachment

    script = steps("a cat")
    with scripted_client(script) as client:
        image = Attachment("image/png", b"\x89PNG")
        assert client.send_message_with_parts([Part.from_text("what?"), Part(inline_data=image)]) == "a cat"
    assert script.seen[0][0].parts[1].inline_data == image


def test_accounting_and_context_usage_add_up() -> None:
    first, second = TokenUsage.of(100, 10, cache_read=40), TokenUsage.of(150, 20)
    script = steps(Reply(calls=(("add", {"a": 1}),), usage=first), Reply("2", usage=second))
    with scripted_client(script, Lab()) as client:
        client.send_message("1 + 1")
        (row,) = client.get_turn_accounting()
        ledger = client.get_runtime().ledger
        usage = client.get_context_usage()
    assert row["usage"]["total_tokens"] == 280
    assert (row["prompt"], row["output"], row["total"]) == (150, 20, 170)
    assert [call["name"] for call in row["function_calls"]] == ["add"]
    assert ledger.total.usage == first + second
    assert ledger.total.calls == 2
    assert usage["turns"] == 1
    assert usage["context_limit"] - usage["total_tokens"] == usage["tokens_remaining"]


def test_provider_failure_raises_and_the_next_message_works() -> None:
    script = steps(calls(("add", {"a": 1})), BadRequest("no"), "fine now")
    with scripted_client(script, Lab()) as client:
        with pytest.raises(BadRequest):
            client.send_message("go")
        check_history(client.get_history())
        assert client.send_message("again") == "fine now"
        check_history(client.get_history())
        errors = [row.error for row in client.get_runtime().ledger.rows()]
    assert errors == [None, "BadRequest: no", None]


def test_retries_are_told_and_counted_and_a_permanent_error_is_not_retried() -> None:
    told: list[tuple[str, int, int, float]] = []
    script = steps(RateLimited("slow down", retry_after=0.001), RateLimited("slow down", retry_after=0.001), "ok")
    runtime = JaatoRuntime("script", retry=RetryPolicy(base_delay=0.001))
    provider = ScriptProvider(script)
    provider.traits = type(provider.traits)(governed=True)
    runtime.register_provider("script", provider)
    runtime.set_retry_callback(lambda *said: told.append(said))
    session = runtime.create_session("m")
    assert session.send_message("go") == "ok"
    assert [attempt for _, attempt, _, _ in told] == [1, 2]
    assert runtime.ledger.rows()[0].retries == 2


def test_script_that_runs_dry_is_an_error() -> None:
    with scripted_client(["only one"]) as client:
        client.send_message("one")
        with pytest.raises(ProviderError, match="no more steps"):
            client.send_message("two")


def test_two_turns_at_once_are_refused() -> None:
    lab = Lab()
    with scripted_client(steps(calls(("stubborn", {})), "done"), lab) as client:
        thread = threading.Thread(target=client.send_message, args=("go",))
        thread.start()
        lab.entered.acquire()
        with pytest.raises(SessionBusy):
            client.send_message("me too")
        lab.release.set()
        thread.join(20)
        assert client.send_message("now") == "done"


def test_steering_reaches_the_model_before_its_next_call() -> None:
    script = steps(calls(("add", {"a": 1})), "done")
    with scripted_client(script, Lab()) as client:
        session = client.get_session()
        asked = iter(["hurry", None, None])
        session.set_mid_turn_prompt_callback(lambda: next(asked, None))
        session.steer("also look left")
        client.send_message("go")
    assert [m.text for m in script.seen[0]] == ["go", "also look left", "hurry"]


def test_max_turns_bounds_model_calls_and_the_last_one_hands_over() -> None:
    script = steps(calls(("add", {"a": 1})), calls(("add", {"a": 1})), calls(("add", {"a": 1}), text="So far: 2"))
    registry = PluginRegistry()
    registry.register_plugin(Lab(), expose=True)
    runtime = JaatoRuntime("script")
    runtime.register_provider("script", ScriptProvider(script))
    runtime.configure_plugins(registry, permissions="allow")
    session = runtime.create_session("m", max_turns=3)
    assert session.send_message("count") == "So far: 2"
    assert session.last_outcome is not None
    assert session.last_outcome.reason == "max_turns"
    assert session.last_outcome.model_calls == 3
    assert script.requests[2].tool_choice == "none"
    assert "last turn" in (script.seen[2][-1].text or "")
    check_history(session.get_history())


def test_output_limit_is_told() -> None:
    with scripted_client(steps(Reply("half an ans", finish_reason=FinishReason.MAX_TOKENS))) as client:
        client.send_message("go")
        outcome = client.get_session().last_outcome
    assert outcome is not None
    assert outcome.reason == "output_limit"


def test_an_output_callback_that_raises_does_not_end_the_turn() -> None:
    def broken(source: str, text: str, mode: str) -> None:
        raise ValueError("view is gone")

    with scripted_client(steps("still here")) as client:
        assert client.send_message("hi", broken) == "still here"


def test_events_of_a_turn_come_in_order() -> None:
    seen: list[object] = []
    script = steps(calls(("add", {"a": 1}), text="see"), "2")
    with scripted_client(script, Lab()) as client:
        client.get_runtime().bus.subscribe(seen.append)
        client.send_message("go")
    kinds = [type(event).__name__ for event in seen]
    said, called = ["AgentOutput", "ModelCallEnded"], ["AgentOutput", "ToolStarted", "ToolEnded", "AgentOutput"]
    assert kinds[:7] == ["TurnStarted", *said, *called]
    assert kinds.count("TurnCompleted") == 1
    assert {event.agent_id for event in seen} == {"main"}  # type: ignore[attr-defined]
    assert any(isinstance(event, TurnCompleted) for event in seen)
    assert any(isinstance(event, AgentOutput) for event in seen)


def test_generate_leaves_the_history_alone_and_is_in_the_ledger() -> None:
    with scripted_client(steps("a title")) as client:
        assert client.generate("Name this") == "a title"
        assert client.get_history() == []
        assert [row.purpose for row in client.get_runtime().ledger.rows()] == ["generate"]


def test_switching_the_model_keeps_the_history() -> None:
    first, second = steps(calls(("add", {"a": 1})), "2"), steps("still 2")
    with scripted_client(first, Lab()) as client:
        client.register_provider("other", ScriptProvider(second, name="other"))
        client.send_message("1 + 1")
        session = client.get_session()
        session.set_model("big", "other")
        assert client.send_message("sure?") == "still 2"
        assert len(second.seen[0]) == 5
        assert (session.model_name, session.provider_name) == ("big", "other")
