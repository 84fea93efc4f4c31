"""Answers of a required shape, other models when one fails, and endings that are never a success."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from support.subagents import Hold, Play, calling, staged, user_texts
from support.tools import Lab

from shared.errors import AuthFailed, ConfigError, ContextOverflow, ModelNotFound, ProviderError, Refused, ServerFailed
from shared.providers import add_provider
from shared.providers.base import ModelRequest, Provider, ProviderConfig
from shared.providers.script import Reply, ScriptProvider, Step
from shared.types import FinishReason

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["count"],
    "additionalProperties": False,
}
SHAPED = {"output_schema": SCHEMA}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_RETRY_ATTEMPTS", "1")


# -- shape -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"count": 3}',
        '\n {"count": 3} \n',
        '```json\n{"count": 3}\n```',
        'Here it is:\n\n```\n{"count": 3}\n```\nGood luck!',
        '```JSON\n{"count": 3}```',
        'Not this:\n```python\nprint()\n```\nbut this:\n```json\n{"count": 3}\n```',
    ],
)
def test_an_answer_that_fits(text: str) -> None:
    with staged(text) as stage:
        answer = stage.spawn(inline_config=SHAPED)
        assert (answer["status"], answer["success"], answer["structured"]) == ("completed", True, {"count": 3})
        assert (answer["response"], answer["turns_used"]) == (text, 1)
        assert json.dumps(SCHEMA) in stage.play.child_requests[0].system
        assert stage.call("get_subagent_result", agent_id=answer["agent_id"])["structured"] == {"count": 3}


def test_a_fence_inside_a_value() -> None:
    value = {"count": 1, "note": "use ```json\n1\n``` here"}
    with staged(f"```json\n{json.dumps(value)}\n```") as stage:
        assert stage.spawn(inline_config=SHAPED)["structured"] == value


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ("three", "not JSON"),
        ('{"count": "3"}', "count"),
        ('{"counts": 3}', "counts"),
        ("[1, 2]", "object"),
        ('{"count": NaN}', "NaN"),
        ('{"count": 1, "note": "\\ud800"}', "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_an_answer_that_is_repaired(first: str, problem: str) -> None:
    with staged([first, '{"count": 3}']) as stage:
        answer = stage.spawn(inline_config=SHAPED)
        assert (answer["status"], answer["structured"], answer["turns_used"]) == ("completed", {"count": 3}, 2)
        asked = user_texts(stage.play.child_requests[1])[-1]
        assert problem in asked
        assert "arguments" not in asked
        assert stage.play.child_requests[1].tool_choice == "none"


def test_an_answer_that_cannot_be_repaired() -> None:
    with staged(["nonsense", "still nonsense", '{"count": 3}']) as stage:
        answer = stage.spawn(inline_config=SHAPED)
        assert (answer["status"], answer["reason"], answer["success"]) == ("partial", "schema", False)
        assert (answer["response"], answer["turns_used"]) == ("still nonsense", 2)
        assert "structured" not in answer
        assert "not JSON" in answer["error"]
        assert len(stage.play.child_requests) == 2, "one repair, not more"


@pytest.mark.parametrize("value", [0, None, [], False, "", {}, 0.0])
def test_values_that_look_like_nothing_are_kept(value: Any) -> None:
    with staged(json.dumps(value)) as stage:
        answer = stage.spawn(inline_config={"output_schema": {}})
        assert answer["status"] == "completed"
        assert "structured" in answer
        assert answer["structured"] == value
        assert type(answer["structured"]) is type(value)


def test_without_a_schema_nothing_is_structured() -> None:
    with staged("null") as stage:
        assert "structured" not in stage.spawn()


@pytest.mark.parametrize("fits", [True, False])
def test_the_shape_when_max_turns_cut_the_work_short(fits: bool) -> None:
    def child(request: ModelRequest) -> Step:
        last = '{"count": 2}' if fits else "I got as far as two."
        return last if request.tool_choice == "none" else calling(("add", {"a": 1}))

    with staged(child, Lab()) as stage:
        answer = stage.spawn(inline_config={**SHAPED, "max_turns": 3})
        assert (answer["status"], answer["reason"], answer["turns_used"]) == ("partial", "max_turns", 3)
        assert answer.get("structured") == ({"count": 2} if fits else None)
        assert len(stage.play.child_requests) == 3, "no repair of what was cut short"


def test_one_turn_may_still_be_repaired() -> None:
    with staged(["nonsense", '{"count": 1}']) as stage:
        answer = stage.spawn(inline_config={**SHAPED, "max_turns": 1})
        assert (answer["status"], answer["turns_used"]) == ("completed", 2)


def test_a_repair_that_fails_keeps_the_answer() -> None:
    with staged(["nearly right", ServerFailed("gone")]) as stage:
        answer = stage.spawn(inline_config=SHAPED)
        assert (answer["status"], answer["reason"], answer["response"]) == ("partial", "schema", "nearly right")
        assert "gone" in answer["error"]


def test_a_repair_that_is_cancelled_keeps_the_answer() -> None:
    hold = Hold("too late")

    def child(request: ModelRequest) -> Step:
        return hold(request) if len(user_texts(request)) > 1 else "nearly right"

    with staged(child) as stage:
        agent_id = stage.launch(inline_config=SHAPED)
        hold.wait_entered()
        stage.call("cancel_subagent", agent_id=agent_id)
        answer = stage.result(agent_id)
        hold.release()
        assert (answer["status"], answer["success"], answer["response"]) == ("cancelled", False, "nearly right")
        assert answer["turns_used"] == 1


def test_a_continued_run_is_checked_again() -> None:
    with staged(['{"count": 1}', "bad", '{"count": 2}']) as stage:
        agent_id = stage.spawn(inline_config=SHAPED)["agent_id"]
        answer = stage.call("continue_subagent", agent_id=agent_id, message="once more")
        assert (answer["structured"], answer["turns_used"]) == ({"count": 2}, 2)


def test_a_profile_may_ask_for_a_shape() -> None:
    with staged('{"count": 5}', config={"profiles": {"counter": {"output_schema": SCHEMA}}}) as stage:
        assert stage.spawn(profile="counter")["structured"] == {"count": 5}


# -- other models ------------------------------------------------------------------------------------


def only(works: str) -> Any:
    """A model of which only one name is to be had."""

    def play(request: ModelRequest) -> Step:
        return f"{request.model} answers" if request.model == works else ModelNotFound(f"no model {request.model}")

    return play


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": {"it": {"model": "first", **fields}}}


def hops_of(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(hop["model"], hop["provider"]) for hop in answer["hops"]]


def test_the_next_model_goes_on() -> None:
    config = profile(fallback_models=["second", "third", "fourth"])
    with staged(only("third"), config=config) as stage:
        answer = stage.spawn(profile="it")
        assert (answer["status"], answer["response"], answer["model"]) == ("completed", "third answers", "third")
        assert hops_of(answer) == [("first", "script"), ("second", "script")]
        assert "no model first" in answer["hops"][0]["error"]


def test_a_model_of_another_provider_goes_on() -> None:
    config = profile(fallback_models=["elsewhere:big:v2", "never"])
    elsewhere = ScriptProvider(lambda request: f"{request.model} over there", name="elsewhere")
    with staged(only("nobody"), config=config, providers={"elsewhere": elsewhere}) as stage:
        answer = stage.spawn(profile="it")
        assert (answer["response"], answer["model"]) == ("big:v2 over there", "big:v2")
        assert answer["provider"] == "elsewhere"


def test_a_colon_in_the_name_of_a_model() -> None:
    with staged(only("llama3:8b"), config=profile(fallback_models=["llama3:8b"])) as stage:
        answer = stage.spawn(profile="it")
        assert (answer["response"], answer["provider"]) == ("llama3:8b answers", "script")


def test_a_fallback_that_cannot_be_set_up_is_a_hop_too() -> None:
    def unmade(config: ProviderConfig) -> Provider:
        raise ConfigError("this provider needs a key")

    add_provider("unmade", unmade)
    keyless = ScriptProvider([AuthFailed("no key")], name="keyless")
    config = profile(fallback_models=["unmade:model", "keyless:model", "last"])
    with staged(only("last"), config=config, providers={"keyless": keyless}) as stage:
        answer = stage.spawn(profile="it")
        assert (answer["response"], answer["provider"]) == ("last answers", "script")
        assert hops_of(answer) == [("first", "script"), ("model", "unmade"), ("model", "keyless")]
        assert "needs a key" in answer["hops"][1]["error"]


def test_all_models_fail() -> None:
    config = profile(fallback_models=["second", "third"])
    with staged(only("nobody"), config=config) as stage:
        answer = stage.spawn(profile="it")
        assert (answer["status"], answer["success"]) == ("failed", False)
        assert [model for model, _ in hops_of(answer)] == ["first", "second", "third"]
        assert "no model third" in answer["error"]
        assert len(stage.play.child_requests) == 3


def test_the_work_so_far_is_kept_when_the_model_changes() -> None:
    def child(request: ModelRequest) -> Step:
        done = sum(len(message.results) for message in request.messages)
        if request.model == "first":
            return ServerFailed("overheated") if done == 2 else calling(("add", {"a": done}), text=f"step {done}")
        return f"finished after {done} calls"

    with staged(child, Lab(), config=profile(fallback_models=["second"], plugins=["lab"])) as stage:
        answer = stage.spawn(profile="it")
        assert (answer["response"], answer["status"]) == ("finished after 2 calls", "completed")
        assert (answer["tool_calls"], answer["turns_used"]) == (2, 3)


def test_text_and_counts_survive_when_all_models_fail() -> None:
    def child(request: ModelRequest) -> Step:
        if request.model == "second" or any(message.results for message in request.messages):
            return ServerFailed("overheated")
        return calling(("add", {"a": 1}), text="I have begun.")

    with staged(child, Lab(), config=profile(fallback_models=["second"], plugins=["lab"])) as stage:
        answer = stage.spawn(profile="it")
        assert (answer["status"], answer["response"]) == ("failed", "I have begun.")
        assert (answer["tool_calls"], answer["turns_used"]) == (1, 1)


def test_max_turns_holds_across_models() -> None:
    """A cap is no success, whichever model met it."""

    def child(request: ModelRequest) -> Step:
        done = sum(len(message.results) for message in request.messages)
        if request.model == "first" and done:
            return ServerFailed("overheated")
        return "cut off" if request.tool_choice == "none" else calling(("add", {"a": 1}))

    config = profile(fallback_models=["second"], plugins=["lab"], max_turns=2)
    with staged(child, Lab(), config=config) as stage:
        answer = stage.spawn(profile="it")
        assert (answer["status"], answer["reason"], answer["turns_used"]) == ("partial", "max_turns", 2)


def test_a_continued_agent_goes_on_with_the_model_that_worked() -> None:
    state = {"works": "second"}

    def child(request: ModelRequest) -> Step:
        return f"{request.model} answers" if request.model == state["works"] else ModelNotFound(request.model)

    with staged(child, config=profile(fallback_models=["second"])) as stage:
        agent_id = stage.spawn(profile="it")["agent_id"]
        again = stage.call("continue_subagent", agent_id=agent_id, message="more")
        assert again["response"] == "second answers"
        assert "hops" not in again
        state["works"] = "first"
        back = stage.call("continue_subagent", agent_id=agent_id, message="more")
        assert back["response"] == "first answers", "its own model is a way out too"
        assert hops_of(back) == [("second", "script")]


def test_without_fallbacks_a_failure_is_one_error() -> None:
    with staged(only("nobody"), config=profile()) as stage:
        answer = stage.spawn(profile="it")
        assert answer["status"] == "failed"
        assert "hops" not in answer


# -- never a success ---------------------------------------------------------------------------------


ENDINGS: list[tuple[str, Any, dict[str, Any], str, str | None]] = [
    ("max_turns", [calling(("add", {"a": 1}))], {"max_turns": 2}, "partial", "max_turns"),
    ("token budget", "x" * 40_000, {"budget": {"total_tokens": 10}}, "partial", "budget"),
    ("call budget", [calling(("add", {"a": 1}))], {"budget": {"tool_calls": 2}}, "partial", "budget"),
    ("output limit", Reply("cut o", finish_reason=FinishReason.MAX_TOKENS), {}, "partial", "output_limit"),
    ("time", Reply("never", delay=600), {"timeout_seconds": 0.05}, "timed_out", None),
    ("refused", Refused("I will not"), {}, "failed", None),
    ("no key", AuthFailed("no key"), {}, "failed", None),
    ("overflow", ContextOverflow("too long"), {}, "failed", None),
    ("provider", ProviderError("odd"), {}, "failed", None),
    ("crash", RuntimeError("a bug"), {}, "failed", None),
]


@pytest.mark.parametrize(("child", "inline", "status", "reason"), [e[1:] for e in ENDINGS], ids=[e[0] for e in ENDINGS])
def test_caps_and_failures_are_never_a_success(
    child: Any, inline: dict[str, Any], status: str, reason: str | None
) -> None:
    with staged(child, Lab()) as stage:
        answer = stage.spawn(inline_config=inline or None)
        assert (answer["success"], answer["status"], answer.get("reason")) == (False, status, reason)
        if status in ("failed", "timed_out"):
            assert answer["error"]
        assert stage.call("get_subagent_result", agent_id=answer["agent_id"]) == answer
        listed = stage.call("list_active_subagents")["active_sessions"]
        assert [each["last_status"] for each in listed] == [status]


def test_a_run_whose_every_call_was_denied() -> None:
    policy = {"defaultPolicy": "allow", "blacklist": {"tools": ["add"]}}
    with staged([calling(("add", {"a": 1})), "I could not."], Lab(), permissions=policy) as stage:
        answer = stage.spawn()
        assert (answer["status"], answer["success"], answer["response"]) == ("denied", False, "I could not.")
        assert (answer["tool_calls"], answer["denied_calls"]) == (1, 1)
        assert "denied" in answer["error"]


def test_a_run_that_went_on_after_a_denial() -> None:
    policy = {"defaultPolicy": "allow", "blacklist": {"tools": ["crash"]}}
    child: list[Step] = [calling(("crash", {})), calling(("add", {"a": 1})), "Done another way."]
    with staged(child, Lab(), permissions=policy) as stage:
        answer = stage.spawn()
        assert (answer["status"], answer["denied_calls"], answer["tool_calls"]) == ("completed", 1, 2)


def test_the_text_before_a_crash_is_kept() -> None:
    child: list[Step] = [calling(("add", {"a": 1}), text="So far: one."), RuntimeError("a bug")]
    with staged(child, Lab()) as stage:
        answer = stage.spawn()
        assert (answer["status"], answer["response"], answer["tool_calls"]) == ("failed", "So far: one.", 1)
        assert "a bug" in answer["error"]


def test_steps_after_a_failure_can_be_continued() -> None:
    steps: list[Step] = [ServerFailed("down"), "up again"]
    with staged(lambda request: steps.pop(0)) as stage:
        failed = stage.spawn()
        assert failed["status"] == "failed"
        again = stage.call("continue_subagent", agent_id=failed["agent_id"], message="try again")
        assert (again["status"], again["response"]) == ("completed", "up again")


def test_a_parent_model_sees_the_difference() -> None:
    """What the model reads of a failed child says so in words."""
    seen: list[Any] = []

    def parent(request: ModelRequest) -> Step:
        if not request.messages[-1].results:
            return calling(("spawn_subagent", {"task": "x"}))
        seen.append(request.messages[-1].results[0].result)
        return "ok"

    with staged(Play(parent, ServerFailed("the service is down"))) as stage:
        stage.ask()
        assert (seen[0]["success"], seen[0]["status"]) == (False, "failed")
        assert "the service is down" in seen[0]["error"]
