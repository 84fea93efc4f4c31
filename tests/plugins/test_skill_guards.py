"""Tools that a skill disallows are refused to the agent that uses it, and to nobody when it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.skill_talk import talking
from support.skills import write_skill

from shared.errors import SubagentError
from shared.plugins.subagent import SubagentProfile

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


def test_tools_that_an_active_skill_disallows_are_refused_until_it_ends(project: Path) -> None:
    write_skill(project / ".jaato/skills", "careful", disallowed_tools="Write, add, Bash(git push:*)")
    with talking(project, trusted=False) as talk:
        assert talk.call("add", a=1) == "2"
        talk.call("skill", name="careful")
        assert "not to be used with the skill 'careful'" in talk.call("add", a=1)
        assert "skills deactivate careful" in talk.call("write_file", path="a.txt", content="x")
        assert not (project / "a.txt").exists()
        assert "git push" in talk.call("cli", command="git push origin")
        assert "not to be used" in talk.call("cli", command="echo x; git push")
        assert "fine" in talk.call("cli", command="echo fine")
        talk.client.execute_user_command("skills", "deactivate careful")
        assert talk.call("add", a=1) == "2"


def test_a_skill_that_a_person_calls_binds_the_main_agent(project: Path) -> None:
    write_skill(project / ".jaato/skills", "careful", disallowed_tools="add")
    with talking(project) as talk:
        talk.client.execute_user_command("careful")
        assert "not to be used" in talk.call("add", a=1)
        talk.plugin.manager.deactivate("careful")
        assert talk.call("add", a=1) == "2"


def test_what_one_agent_has_loaded_binds_no_other(project: Path) -> None:
    write_skill(project / ".jaato/skills", "careful", disallowed_tools="add")
    with talking(project) as talk:
        talk.plugin.manager.activate("careful", agent_id="somebody-else")
        assert talk.call("add", a=1) == "2"


def test_other_settings_begin_anew_without_what_was_forbidden(project: Path) -> None:
    write_skill(project / ".jaato/skills", "careful", disallowed_tools="add")
    with talking(project) as talk:
        talk.call("skill", name="careful")
        registry = talk.client.get_runtime().registry
        assert registry is not None
        registry.expose_tool("skills", {"max_per_turn": 1})
        assert talk.call("add", a=1) == "2"


def test_a_matching_skill_that_must_be_enforced_is_pointed_to_instead_of_pasted(project: Path) -> None:
    write_skill(project / ".jaato/skills", "careful", "The body.", disallowed_tools="add")
    with talking(project) as talk:
        text = talk.plugin.match_message("use the careful skill")
        assert text is not None
        assert "load it with the tool `skill`" in text
        assert "The body." not in text


def test_a_skill_that_runs_as_a_subagent_binds_that_one_and_nobody_else(project: Path) -> None:
    write_skill(project / ".jaato/skills", "careful", disallowed_tools="add", context="fork")
    with talking(project) as talk:
        talk.call("skill", name="careful")
        assert "not to be used with the skill 'careful'" in talk.model.childs[-1]
        assert talk.call("add", a=1) == "2"
        talk.call("spawn_subagent", task="count")
        assert talk.model.childs[-1] == "2"
        assert not talk.client.get_runtime().hooks.has("before_tool_call")


def test_a_skill_that_host_code_runs_as_a_subagent_binds_that_one(project: Path) -> None:
    write_skill(project / ".jaato/skills", "careful", disallowed_tools="add", context="fork")
    with talking(project) as talk:
        with pytest.raises(SubagentError, match="'careful' ran as a subagent, which ended as denied"):
            talk.client.invoke_skill("careful")
        assert "not to be used with the skill 'careful'" in talk.model.childs[-1]
        assert talk.call("add", a=1) == "2"
        assert not talk.client.get_runtime().hooks.has("before_tool_call")


def test_skills_of_a_profile_bind_its_agent(project: Path) -> None:
    write_skill(project / ".jaato/skills", "careful", disallowed_tools="add")
    with talking(project) as talk:
        plugin = talk.client.get_runtime().registry.get_plugin("subagent")  # type: ignore[union-attr]
        plugin.add_profile(SubagentProfile("worker", plugins=["lab"], skills=["careful"]))  # type: ignore[union-attr]
        plugin.get_executors()["spawn_subagent"]({"task": "count", "profile": "worker"})  # type: ignore[union-attr]
        assert "not to be used with the skill 'careful'" in talk.model.childs[-1]
