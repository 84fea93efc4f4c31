"""A client as the front of skills: constructor arguments, methods, and skills that run as subagents."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clients import connected, echo
from support.skills import write_skill

from shared import PluginRegistry
from shared.errors import SkillConflictError, SkillNotFoundError, SubagentError
from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.skills import Skill, SkillInfo, SkillManager

pytestmark = pytest.mark.usefixtures("home")

GREET = Skill(SkillInfo("greet", "Greets people."), "Say hello to $ARGUMENTS, first $0.")


def test_agent_constructor_with_skills(tmp_path: Path) -> None:
    """`Agent("gpt-4", skills=[…])`: objects, names and paths; and `skill_dirs`."""
    by_path = write_skill(tmp_path / "elsewhere", "by-path", "From a path.")
    write_skill(tmp_path / "more", "in-a-folder", "From a folder.")
    write_skill(tmp_path / ".jaato/skills", "known", "From the project.")
    skills = [GREET, by_path, "known"]
    with connected(tmp_path, skills=skills, skill_dirs=[tmp_path / "more"]) as client:
        assert [info.name for info in client.list_skills()] == ["by-path", "greet", "in-a-folder", "known"]
        found = client.get_skill("in-a-folder")
        assert found is not None
        assert found.body.strip() == "From a folder."
        assert not found.info.is_trusted, "a folder that was merely named is not vouched for"


def test_facade_methods(tmp_path: Path) -> None:
    """register_skill, get_skill, list_skills, invoke_skill, skill_manager"""
    with connected(tmp_path) as client:
        assert client.list_skills() == []
        assert client.register_skill(GREET).name == "greet"
        assert client.get_skill("greet") == GREET
        assert client.get_skill("nobody") is None
        assert client.invoke_skill("greet", "Ada") == "Say hello to Ada, first Ada."
        assert client.invoke_skill("greet", "Ada Lovelace") == "Say hello to Ada Lovelace, first Ada."
        assert client.invoke_skill("greet", "Ada Lovelace", "Bob").endswith("first Ada Lovelace.")
        assert client.invoke_skill("greet").startswith("Say hello to ,")
        assert isinstance(client.skill_manager, SkillManager)
        assert client.skill_manager.active == ["greet"]
        with pytest.raises(SkillConflictError):
            client.register_skill(GREET)
        with pytest.raises(SkillNotFoundError, match="nobody"):
            client.invoke_skill("nobody")


def test_the_model_sees_them_and_another_registry_gets_them_again(tmp_path: Path) -> None:
    by_path = write_skill(tmp_path / "elsewhere", "by-path", "From a path.")
    with connected(tmp_path, skills=[by_path], skill_dirs=[tmp_path / "none"]) as client:
        for _ in range(2):
            registry = PluginRegistry()
            registry.discover()
            client.configure_tools(registry, permissions="allow")
            assert "by-path" in client.get_session().system_prompt
            assert "skill" in client.get_session().tool_names
        client.configure_tools(registry, permissions="allow")
        client.register_skill(GREET)
        client.send_message("hello")
        assert "greet" in client.get_session().system_prompt


def test_a_host_that_exposed_the_plugin_keeps_its_settings(tmp_path: Path) -> None:
    write_skill(tmp_path / "first", "one")
    write_skill(tmp_path / "second", "two")
    registry = PluginRegistry()
    registry.discover()
    registry.expose_tool("skills", {"extra_dirs": [str(tmp_path / "first")], "auto_match": False})
    with connected(tmp_path, skill_dirs=[tmp_path / "second"]) as client:
        client.configure_tools(registry, permissions="allow")
        assert [info.name for info in client.list_skills()] == ["one", "two"]
        assert registry.config_of("skills")["auto_match"] is False


def test_an_unknown_skill_is_told_at_once(tmp_path: Path) -> None:
    with connected(tmp_path, skills=["no-such-skill"]) as client, pytest.raises(SkillNotFoundError, match="no-such"):
        client.list_skills()


def test_context_fork_delegation(tmp_path: Path) -> None:
    """The skill's text is the task of a subagent, under the profile that it names."""
    fork = Skill(SkillInfo("deep-dive", "Digs.", context="fork", agent="digger"), "Dig for $ARGUMENTS.")
    requests: list[ModelRequest] = []

    def script(request: ModelRequest) -> Step:
        requests.append(request)
        return echo(request)

    digger = {"name": "digger", "system_prompt": "You dig."}
    with connected(tmp_path, script, skills=[fork], subagents=[digger]) as client:
        assert client.invoke_skill("deep-dive", "gold") == "said: Dig for gold."
        assert "You dig." in requests[-1].system
        assert list(client.subagent_manager.get_usage_breakdown()) == ["digger"]


def test_context_fork_without_an_agent_runs_with_the_parents_tools(tmp_path: Path) -> None:
    fork = Skill(SkillInfo("deep-dive", "Digs.", context="fork"), "Dig.")
    with connected(tmp_path, skills=[fork]) as client:
        assert client.invoke_skill("deep-dive") == "said: Dig."


def test_a_fork_that_fails_is_an_error(tmp_path: Path) -> None:
    fork = Skill(SkillInfo("deep-dive", "Digs.", context="fork"), "Dig.")
    told = pytest.raises(SubagentError, match=r"'deep-dive' .* failed: .*the spade broke")
    with connected(tmp_path, lambda request: RuntimeError("the spade broke"), skills=[fork]) as client, told:
        client.invoke_skill("deep-dive")


def test_skills_of_a_subagent_come_from_the_client(tmp_path: Path) -> None:
    systems: list[str] = []

    def script(request: ModelRequest) -> Step:
        systems.append(request.system)
        return "done"

    with connected(tmp_path, script, skills=[GREET], subagents=[{"name": "polite", "skills": ["greet"]}]) as client:
        assert client.list_skills()
        assert client.delegate_sync("polite", "go").success
        assert "Say hello to" in systems[-1]
