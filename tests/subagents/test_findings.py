"""Findings of a run: asked for by its profile, read from the answer however a model wrote them, never in the way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.subagents import Play, staged

from shared.definitions.agents import read_agent
from shared.definitions.profile import SubagentProfile
from shared.definitions.source import Source
from shared.events import AgentCompleted, Event
from shared.plugins.subagent.pages import page
from shared.subagents.findings import MAX_FINDINGS, read_findings
from shared.subagents.result import Status, SubagentResult

LEAK = {"title": "Leak", "severity": "high", "file": "a.py", "line": 3}


def block(value: Any, *, mark: str = "findings") -> str:
    return f"I looked.\n\n```{mark}\n{json.dumps(value, indent=1)}\n```\n"


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        (block([LEAK]), ["Leak"]),
        (block([]), []),
        (block({"findings": [LEAK]}), ["Leak"]),
        (block(LEAK), ["Leak"]),
        (block({"findings": [LEAK], "summary": "s"}, mark="json"), ["Leak"]),
        (block({"findings": [LEAK]}, mark=""), ["Leak"]),
        (json.dumps({"findings": [LEAK]}), ["Leak"]),
        (block([{"message": "M", "line": 1}, "just text"]), ["M", "just text"]),
        (block([{"title": "draft"}]) + block([{"title": "final"}]), ["final"]),
        (block([LEAK]).rstrip("`\n"), ["Leak"]),
        ("```Findings\n- one\n- two\n```", ["one", "two"]),
        ('```findings\n{"title": "a"}\n{"title": "b"},\n```', ["a", "b"]),
        ("```findings\n```", []),
        ("Nothing to report.", []),
        (block([1, 2, 3], mark="json"), []),
        (block([{"title": "an example"}], mark="json"), []),
        ("", []),
    ],
)
def test_they_are_read_as_models_write_them(text: str, titles: list[str]) -> None:
    found = read_findings(text)
    assert [entry["title"] for entry in found.entries] == titles
    assert found.note is None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("```findings\n[{]\n```", 0),
        ("```findings\nwords\n```", 0),
        (block([LEAK, 7, None, {"line": 1}]), 1),
        (block([{"title": "x", "score": float("nan")}]), 0),
        (block([{"title": "\ud800"}]), 0),
        ("```findings\n" + "[" * 100_000 + "\n```", 0),
        (block([LEAK] * (MAX_FINDINGS + 1)), MAX_FINDINGS),
    ],
)
def test_what_cannot_be_read_is_said(text: str, count: int) -> None:
    found = read_findings(text)
    assert len(found.entries) == count
    assert found.note is not None


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='`findgs\n[]{}":, -*a0', max_size=80))
def test_no_text_is_too_odd(text: str) -> None:
    for each in (text, f"```findings\n{text}", f"x\n```findings\n{text}\n```"):
        found = read_findings(each)
        assert all(entry["title"].strip() for entry in found.entries)


FINDER = SubagentProfile("finder", "Finds", emit_findings=True, system_instructions="Look.")


def completions(events: list[Event], agent_id: str) -> int:
    return sum(isinstance(event, AgentCompleted) and event.agent_id == agent_id for event in events)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(block([LEAK]), [LEAK]), ("All is well.", []), (block([]), []), ("```findings\noops\n```", [])],
)
def test_the_result_has_a_list_and_there_is_one_completion_even_with_none(answer: str, expected: list[Any]) -> None:
    events: list[Event] = []
    play = Play("", answer)
    with staged(play) as stage:
        stage.plugin.add_profile(FINDER)
        stage.client.get_runtime().bus.subscribe(events.append)
        result = stage.spawn(profile="finder")
    assert (result["success"], result["findings"], result["response"]) == (True, expected, answer)
    assert completions(events, result["agent_id"]) == 1
    assert ("notes" in result) == ("oops" in answer)
    assert "```findings" in play.child_requests[0].system


def test_a_run_that_fails_has_an_empty_list_and_one_completion() -> None:
    events: list[Event] = []
    with staged(ValueError("broken")) as stage:
        stage.plugin.add_profile(FINDER)
        stage.client.get_runtime().bus.subscribe(events.append)
        result = stage.spawn(profile="finder")
    assert (result["status"], result["findings"]) == ("failed", [])
    assert completions(events, result["agent_id"]) == 1


def test_profiles_that_do_not_ask_have_none() -> None:
    play = Play("", block([LEAK]))
    with staged(play) as stage:
        result = stage.spawn()
    assert "findings" not in result
    assert "```findings" not in play.child_requests[0].system


def test_with_a_schema_they_are_taken_from_the_value() -> None:
    schema = {"type": "object", "required": ["findings"]}
    profile = SubagentProfile("finder", "Finds", emit_findings=True, output_schema=schema)
    play = Play("", json.dumps({"findings": [LEAK]}))
    with staged(play) as stage:
        stage.plugin.add_profile(profile)
        result = stage.spawn(profile="finder")
    assert (result["findings"], result["structured"]) == ([LEAK], {"findings": [LEAK]})
    assert "```findings" not in play.child_requests[0].system


def test_an_agent_of_netclaw_asks_for_them() -> None:
    text = "---\nname: finder\ndescription: d\nemitStructuredFindings: true\n---\nLook.\n"
    profile = read_agent(text, stem="finder", source=Source("extra", "/h/.netclaw/agents/finder.md")).profile
    assert profile is not None
    with staged(block([LEAK])) as stage:
        stage.plugin.add_profile(profile)
        assert stage.spawn(profile="finder")["findings"] == [LEAK]


def test_many_findings_do_not_flood_the_parent() -> None:
    many = tuple({"title": f"number {index}", "detail": "d" * 100} for index in range(300))
    answer = page(SubagentResult("a-1", Status.COMPLETED, "x" * 5000, findings=many), 4000)
    assert len(json.dumps(answer)) < 5200
    assert 0 < len(answer["findings"]) == 300 - answer["findings_not_shown"]
    assert answer["findings"][0] == many[0]
    few = page(SubagentResult("a-1", Status.COMPLETED, "x", findings=(LEAK,)), 4000)
    assert few["findings"] == [LEAK]
    assert "findings_not_shown" not in few
