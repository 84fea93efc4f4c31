"""Tools of other hosts that have no counterpart here: told at the spawn, and refused if nothing else is left."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.subagents import Play, calling, staged

AGENT = "---\nname: {name}\ndescription: d\ntools: {tools}\n---\nWork.\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / ".claude" / "agents"
    folder.mkdir(parents=True)
    for name, tools in {
        "mixed": "Read, WebFetch, mcp__docs__search",
        "foreign": "WebFetch, NotebookEdit",
        "plain": "Read",
        "many": "Read, " + ", ".join(f"Foreign{number}{'x' * 100}" for number in range(50)),
    }.items():
        (folder / f"{name}.md").write_text(AGENT.format(name=name, tools=tools))
    return tmp_path


CONFIG = {"auto_discover_profiles": True, "agent_dirs": ["claude"]}
WITHOUT = "it works without these tools, which are not to be had here: WebFetch, docs__search"


def test_they_are_named_in_every_answer_to_a_spawn(workspace: Path) -> None:
    with staged("done", config=CONFIG, workspace=workspace, expose=("file_edit",)) as stage:
        dry = stage.spawn(profile="mixed", dry_run=True)
        assert (dry["notes"], "read_file" in dry["tools"]) == ([WITHOUT], True)
        assert stage.spawn(profile="mixed")["notes"] == [WITHOUT]
        started = stage.spawn("another task", profile="mixed", background=True)
        assert started["notes"] == [WITHOUT]
        assert stage.result(started["agent_id"])["notes"] == [WITHOUT]


def test_nothing_is_said_where_nothing_is_missing(workspace: Path) -> None:
    with staged("done", config=CONFIG, workspace=workspace, expose=("file_edit",)) as stage:
        for options in ({}, {"dry_run": True}, {"background": True}):
            assert "notes" not in stage.spawn(f"task {options}", profile="plain", **options)


@pytest.mark.parametrize("options", [{}, {"dry_run": True}, {"background": True}])
def test_an_agent_of_which_no_tool_is_left_is_refused_by_name(workspace: Path, options: dict[str, bool]) -> None:
    play = Play("", "never")
    with staged(play, config=CONFIG, workspace=workspace, expose=("file_edit",)) as stage:
        answer = stage.spawn(profile="foreign", **options)
    assert not answer["success"]
    assert "'foreign'" in answer["error"]
    assert "WebFetch, NotebookEdit" in answer["error"]
    assert play.child_requests == []


def test_a_file_with_endless_names_does_not_fill_the_answer(workspace: Path) -> None:
    with staged("done", config=CONFIG, workspace=workspace, expose=("file_edit",)) as stage:
        (note,) = stage.spawn(profile="many")["notes"]
    assert note.endswith(" and 30 more")
    assert len(note) < 2000


def test_the_parents_model_is_told_as_well(workspace: Path) -> None:
    parent = [calling(("spawn_subagent", {"task": "t", "profile": "mixed"})), "done"]
    play = Play(parent, "the child's answer")
    with staged(play, config=CONFIG, workspace=workspace, expose=("file_edit",)) as stage:
        stage.ask()
    assert WITHOUT in str(play.parent_requests[-1].messages[-1].results[0].result)
