"""Inline settings: what a spawn may change, alone and on top of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.rights import STATE, Desk, desk, dry, live, refused, request_of, tools_of
from support.subagents import Stage, calling, last_answer, staged
from support.tools import Lab

from shared.plugins.subagent import SubagentProfile
from shared.providers.script import Reply


@pytest.fixture
def lab_and_hidden_desk() -> Iterator[tuple[Stage, Desk]]:
    """A parent that has `lab`; `desk` is known to the host but not exposed."""
    hidden = desk()
    with staged(None, Lab(), config={"profiles": {"helper": {"plugins": ["lab"]}}}) as stage:
        _registry(stage).register_plugin(hidden)
        yield stage, hidden


def _registry(stage: Stage) -> Any:
    return stage.client.get_runtime().registry


# -- inline settings ---------------------------------------------------------------------------


def test_inline_plugins_must_be_exposed(lab_and_hidden_desk: tuple[Stage, Desk]) -> None:
    stage, hidden = lab_and_hidden_desk
    refused(stage.spawn(inline_config={"plugins": ["desk"]}), "'desk'", "Known: lab")
    refused(stage.spawn(inline_config={"plugins": ["labb"]}), "'labb'", "Did you mean 'lab'")
    refused(stage.spawn(inline_config={"plugins": ["subagent"]}), "'subagent'", "profile")
    assert not live(hidden)
    assert not stage.play.child_requests
    assert stage.call("list_active_subagents")["count"] == 0


def test_inline_plugins_must_be_allowed_inline() -> None:
    with staged(None, Lab(), desk(), config={"inline_allowed_plugins": ["desk"]}) as stage:
        refused(stage.spawn(inline_config={"plugins": ["lab"]}), "'lab'", "allowed: desk")
        assert stage.spawn("some", inline_config={"plugins": ["desk"]})["success"]
        assert tools_of(stage.play, "some") == {"look", "scribble"} | STATE


def test_allow_inline_false_refuses_every_inline_config() -> None:
    with staged(None, Lab(), config={"allow_inline": False, "profiles": {"p": {"plugins": ["lab"]}}}) as stage:
        refused(stage.spawn(inline_config={"max_turns": 1}), "allow_inline")
        refused(stage.spawn(profile="p", inline_config={"plugins": []}), "allow_inline")
        assert stage.spawn("without")["success"]
        assert stage.spawn("with", profile="p")["success"]


@pytest.mark.parametrize(
    "field",
    ["auto_approved", "plugin_configs", "tools", "allow_agents", "max_depth", "name", "source", "fallback_models"],
)
def test_fields_of_a_profile_that_are_no_inline_settings_are_refused(field: str) -> None:
    with staged(None, Lab()) as stage:
        refused(stage.spawn(inline_config={field: True}), field)
        assert not stage.play.child_requests


# -- inline settings on top of a profile ---------------------------------------------------------


def test_inline_settings_narrow_a_profile() -> None:
    with staged(None, Lab(), desk(), config={"profiles": {"p": {"plugins": ["lab", "desk"], "max_turns": 4}}}) as stage:
        assert dry(stage, profile="p", inline_config={"plugins": ["desk"]})["plugins"] == ["desk"]
        assert dry(stage, profile="p", inline_config={"plugins": []})["plugins"] == []
        assert dry(stage, profile="p", inline_config={"max_turns": 2})["max_turns"] == 2
        assert dry(stage, profile="p", inline_config={"max_turns": 99})["max_turns"] == 4


@pytest.mark.parametrize(("profile", "inline"), [(0, 9), (9, 0), (0, None), (None, 0)])
def test_the_lower_of_two_budgets_counts(profile: int | None, inline: int | None) -> None:
    fields = {"plugins": ["lab"], **({} if profile is None else {"budget": {"tool_calls": profile}})}
    given = {} if inline is None else {"inline_config": {"budget": {"tool_calls": inline, "spawns": 3}}}
    with staged([calling(("add", {"a": 1})), "ok"], Lab(), config={"profiles": {"p": fields}}) as stage:
        result = stage.spawn("work", profile="p", **given)
        assert (result["status"], result["reason"]) == ("partial", "budget")
        assert "not run" in str(last_answer(request_of(stage.play, "work")))


@pytest.mark.parametrize(("profile", "inline"), [(0.1, 600), (600, 0.1)])
def test_the_lower_of_two_time_limits_counts(profile: float, inline: float) -> None:
    with staged(Reply("late", delay=600), config={"profiles": {"p": {"timeout_seconds": profile}}}) as stage:
        result = stage.spawn("work", profile="p", inline_config={"timeout_seconds": inline})
        assert result["status"] == "timed_out"


def test_inline_settings_do_not_widen_a_profile() -> None:
    with staged(None, Lab(), desk(), config={"profiles": {"p": {"plugins": ["desk"]}}}) as stage:
        refused(stage.spawn(profile="p", inline_config={"plugins": ["lab"]}), "'lab'", "only narrow")
        refused(stage.spawn(profile="p", inline_config={"plugins": ["desk", "subagent"]}), "'subagent'")


def test_an_inheriting_profile_gets_no_plugin_that_its_caller_lacks(lab_and_hidden_desk: tuple[Stage, Desk]) -> None:
    stage, hidden = lab_and_hidden_desk
    stage.plugin.add_profile(SubagentProfile("heir", plugins="inherit"))
    refused(stage.spawn(profile="heir", inline_config={"plugins": ["desk"]}), "'desk'", "Known: lab")
    assert dry(stage, profile="heir")["plugins"] == ["lab"]
    assert dry(stage, profile="heir", inline_config={"plugins": ["lab"]})["plugins"] == ["lab"]
    assert not live(hidden)


@pytest.mark.parametrize(
    ("field", "fixed", "wished"),
    [
        ("model", "small", "huge"),
        ("provider", "script", "anthropic"),
        ("output_schema", {"type": "object"}, {"type": "string"}),
        ("gc", {"type": "truncate"}, {"type": "summarize"}),
    ],
)
def test_what_a_profile_fixes_stays_and_what_it_leaves_open_may_be_chosen(field: str, fixed: Any, wished: Any) -> None:
    profiles = {"fixed": {field: fixed}, "open": {}}
    with staged(None, config={"profiles": profiles}) as stage:
        refused(stage.spawn(profile="fixed", inline_config={field: wished}), field, "'fixed'", "only narrow")
        assert dry(stage, profile="fixed", inline_config={field: fixed})["success"]
        assert dry(stage, profile="open", inline_config={field: wished})["success"]


def test_inline_instructions_come_after_those_of_the_profile() -> None:
    with staged(None, config={"profiles": {"p": {"system_instructions": "Never guess."}}}) as stage:
        stage.spawn("both", profile="p", inline_config={"system_instructions": "Be brief."})
        system = request_of(stage.play, "both").system
        assert system.index("Never guess.") < system.index("Be brief.")
        assert system.count("Never guess.") == system.count("Be brief.") == 1
