"""Skills that plugins bring: in the catalogue, by name, for profiles; gone when their plugin is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plugin_folders import Places
from support.skills import write_skill
from support.tools import calls, results_of, steps

from shared import JaatoClient, Plugin, PluginRegistry
from shared.errors import SkillNotFoundError, ToolError
from shared.plugins.skills import SkillsPlugin
from shared.plugins.subagent import SubagentProfile
from shared.providers.script import ScriptProvider
from shared.skills import Skill, SkillInfo, SkillScope
from shared.skills.preload import preload_for

CODE = "def register(api): api.register_skill('polite', 'How to be polite.', 'Say please, $0.')"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places.at(tmp_path, monkeypatch)


@pytest.fixture
def registry(places: Places) -> PluginRegistry:
    folder = places.write("p", {"id": "p"}, init_py=CODE)
    write_skill(folder / "skills", "cooking", "Cook $0.", description="Cooks a meal.", disallowed_tools="skill_install")
    return places.registry("skills", "subagent", "p")


@pytest.fixture
def client(places: Places, registry: PluginRegistry) -> Iterator[JaatoClient]:
    with JaatoClient(provider_name="script", workspace=places.project) as client:
        client.register_provider("script", ScriptProvider(lambda request: "ok"))
        client.connect()
        client.configure_tools(registry, permissions="allow")
        yield client


def skills(registry: PluginRegistry) -> SkillsPlugin:
    plugin = registry.get_plugin("skills")
    assert isinstance(plugin, SkillsPlugin)
    return plugin


def test_they_are_in_the_catalogue_and_by_name(client: JaatoClient, registry: PluginRegistry) -> None:
    prompt = client.get_session().system_prompt
    assert "- cooking: Cooks a meal." in prompt
    assert "- polite: How to be polite." in prompt
    assert client.execute_user_command("polite", "Ada")[0] == "Say please, Ada."
    assert "cooking (plugin, trusted)" in client.execute_user_command("skills")[0]
    found = skills(registry).match_message("the polite skill")
    assert found is not None
    assert "Say please" in found


def test_a_model_loads_them_and_a_profile_preloads_them(client: JaatoClient, registry: PluginRegistry) -> None:
    script = steps(calls(("skill", {"name": "cooking", "arguments": "rice"})), "done")
    client.register_provider("script", ScriptProvider(script))
    client.configure_tools(registry, permissions="allow")
    client.send_message("go")
    assert "Cook rice." in results_of(script.seen[-1])[-1]  # type: ignore[attr-defined]
    plugin: Any = registry.get_plugin("subagent")
    plugin.add_profile(SubagentProfile("chef", skills=["cooking", "polite"]))
    plugin.get_executors()["spawn_subagent"]({"task": "eat", "profile": "chef"})
    system = script.requests[-1].system  # type: ignore[attr-defined]
    assert "Cook " in system
    assert "Say please" in system


def test_they_leave_with_their_plugin_and_so_does_what_they_forbade(
    client: JaatoClient, registry: PluginRegistry
) -> None:
    client.execute_user_command("cooking", "rice")
    hooks = client.get_runtime().hooks
    assert hooks.has("before_tool_call")
    registry.unexpose_tool("p")
    assert not hooks.has("before_tool_call")
    assert skills(registry).manager.active == []
    client.send_message("hi")
    assert "cooking" not in client.get_session().system_prompt
    with pytest.raises((ToolError, SkillNotFoundError)):
        skills(registry).manager.activate("cooking")
    assert {command.name for command in client.get_user_commands()}.isdisjoint({"cooking", "polite"})
    registry.expose_tool("p")
    assert client.execute_user_command("cooking", "soup")[0].startswith("Cook soup.")


def test_without_the_skills_plugin_a_profile_still_finds_them(places: Places, client: JaatoClient) -> None:
    registry = client.get_runtime().registry
    assert registry is not None
    registry.unexpose_tool("skills")
    assert "Say please" in preload_for(client.get_runtime(), ["polite"]).text


def test_a_stronger_skill_of_the_same_name_hides_them(
    client: JaatoClient, places: Places, registry: PluginRegistry
) -> None:
    write_skill(places.project / ".jaato/skills", "cooking", "Order a pizza.")
    write_skill(places.home / "skills", "polite", "Be rude.")
    assert client.execute_user_command("cooking")[0].startswith("Order a pizza.")
    assert client.execute_user_command("polite")[0].startswith("Be rude.")
    assert any("p/skills/cooking" in path for path in skills(registry).manager.shadowed()["cooking"])


def test_skills_of_an_untrusted_project_plugin_do_not_exist(places: Places) -> None:
    folder = places.write("evil", {"name": "evil"}, user=False)
    write_skill(folder / "skills", "trap", "Trap.")
    registry = places.registry("skills")
    with JaatoClient(provider_name="script", workspace=places.project) as client:
        client.register_provider("script", ScriptProvider(lambda request: "ok"))
        client.connect()
        client.configure_tools(registry, permissions="allow")
        assert "trap" not in client.get_session().system_prompt


def test_skills_of_a_trusted_project_plugin_are_those_that_were_trusted(places: Places) -> None:
    folder = places.write("good", {"name": "good"}, user=False)
    write_skill(folder / "skills", "baking", "Bake bread.")
    places.trust()
    registry = places.registry("skills", "good")
    write_skill(folder / "skills", "baking", "Burn it down.")
    with JaatoClient(provider_name="script", workspace=places.project, trust_workspace=True) as client:
        client.register_provider("script", ScriptProvider(lambda request: "ok"))
        client.connect()
        client.configure_tools(registry, permissions="allow")
        assert client.execute_user_command("baking")[0].strip() == "Bake bread."


class Brings(Plugin):
    """A plugin in Python that brings skills: one of ours with a tool, one that is no skill, and a failure."""

    name = "brings"

    def get_skills(self) -> list[Any]:
        return [Skill(SkillInfo("maths", "Counts."), "Count.", (add,)), object()]

    def get_skill_folders(self) -> list[str]:
        raise RuntimeError("broken")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_a_plugin_in_python_brings_skills_with_tools_and_its_failures_are_its_own(
    client: JaatoClient, registry: PluginRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    registry.register_plugin(Brings(), expose=True)
    assert client.execute_user_command("maths")[0] == "Count."
    assert skills(registry).manager.get("maths").info.scope is SkillScope.PLUGIN  # type: ignore[union-attr]
    assert client.execute_user_command("polite", "x")[0] == "Say please, x."
    assert "brings" in caplog.text
    client.send_message("hi")
    assert "maths.add" in client.get_session().tool_names
    registry.unexpose_tool("brings")
    client.send_message("hi")
    assert "maths.add" not in client.get_session().tool_names
