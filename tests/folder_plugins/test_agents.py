"""Agents of plugins: manifest over front matter, tools by the matrix, there while their plugin is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.plugin_folders import Places, command, write_plugin
from support.subagents import Stage, staged

from shared.definitions.profile import SubagentProfile
from shared.folder_plugins.discovery import open_plugin
from shared.folder_plugins.opened import OpenedFolder, open_folder
from shared.folder_plugins.places import PluginFolder
from shared.folder_plugins.plugin import FolderPlugin
from shared.folder_plugins.scoping import pool_key

PROMPT = "---\nname: helper\ndescription: From the file\nmodel: file-model\ntemperature: 0.9\n{more}---\nYou help.\n"
AGENT = {"name": "helper", "system_prompt_file": "agents/helper.md"}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places.at(tmp_path, monkeypatch)


def plugin(root: Path, *, more: str = "", name: str = "p", prompt: str | None = None, **fields: Any) -> FolderPlugin:
    manifest = {"name": name, "tools": [command(f"{name}_own")], "agents": [{**AGENT, **fields}]}
    text = prompt if prompt is not None else PROMPT.format(more=more)
    return open_plugin(write_plugin(root / name, manifest, agents__helper_md=text))


def profile(stage: Stage, name: str = "helper") -> SubagentProfile:
    found = stage.plugin.catalogue.find(name)
    assert found is not None
    return found


@contextmanager
def stage_with(*plugins: FolderPlugin, expose: tuple[str, ...] = ("cli", "todo")) -> Iterator[Stage]:
    with staged(None, *plugins, expose=expose) as stage:
        yield stage


def test_the_manifest_beats_the_front_matter_and_the_body_is_the_prompt(tmp_path: Path) -> None:
    with stage_with(plugin(tmp_path, description="From the manifest", temperature=0.1)) as stage:
        found = profile(stage)
        assert (found.description, found.temperature, found.model) == ("From the manifest", 0.1, "file-model")
        assert found.system_instructions == "You help."
        assert (found.source.kind, found.source.trusted) == ("plugin", True)


def test_without_a_list_it_has_core_tools_and_its_own_never_another_plugins(tmp_path: Path) -> None:
    one = plugin(tmp_path, name="p", model="script-model")
    two = open_plugin(write_plugin(tmp_path / "q", {"name": "q", "tools": [command("q_own")]}))
    with stage_with(one, two) as stage:
        assert set(profile(stage).plugins) == {"cli", "todo", "p"}
        assert profile(stage).tools is None
        report = stage.spawn(profile="helper", dry_run=True)
        assert {"cli", "p_own", "create_plan"} <= set(report["tools"])
        assert "q_own" not in report["tools"]
        assert "spawn_subagent" not in report["tools"]


@pytest.mark.parametrize("place", ["manifest", "file"])
def test_with_a_list_it_has_exactly_those(tmp_path: Path, place: str) -> None:
    wanted = ["p_own", "cli"]
    given = plugin(tmp_path, tools=wanted) if place == "manifest" else plugin(tmp_path, more=f"tools: {wanted}\n")
    with stage_with(given) as stage:
        assert set(profile(stage).tools or ()) == set(wanted)
        assert set(profile(stage).plugins) == {"cli", "p"}


def test_the_manifests_list_replaces_the_files(tmp_path: Path) -> None:
    with stage_with(plugin(tmp_path, more="tools: [cli]\n", tools=["p_own"])) as stage:
        assert profile(stage).tools == ("p_own",)


def test_an_empty_list_is_no_tools(tmp_path: Path) -> None:
    with stage_with(plugin(tmp_path, tools=[])) as stage:
        assert profile(stage).tools == ()


def test_names_of_other_hosts_are_ours_unless_the_plugin_has_such_a_tool(tmp_path: Path) -> None:
    manifest = {"name": "p", "tools": [command("list")], "agents": [{**AGENT, "tools": ["Bash", "list"]}]}
    folder = write_plugin(tmp_path / "p", manifest, agents__helper_md=PROMPT.format(more=""))
    with stage_with(open_plugin(folder)) as stage:
        assert set(profile(stage).tools or ()) == {"cli", "list"}


def test_an_unknown_tool_is_named_when_the_agent_is_spawned(tmp_path: Path) -> None:
    with stage_with(plugin(tmp_path, tools=["p_own", "p_owm"], model="script-model")) as stage:
        answer = stage.spawn(profile="helper")
        assert not answer["success"]
        assert "p_owm" in answer["error"]


def test_what_the_file_denies_stays_denied(tmp_path: Path) -> None:
    with stage_with(plugin(tmp_path, more="disallowedTools: Bash\n", tools=["p_own", "cli"])) as stage:
        assert "cli" in profile(stage).disallowed_tools


def opened(folder: Path) -> OpenedFolder:
    found = open_folder(PluginFolder(folder, "user"))
    assert isinstance(found, OpenedFolder)
    return found


@pytest.mark.parametrize(
    ("prompt", "code"),
    [
        (PROMPT.format(more="tools: 7\n"), "tools-unreadable"),
        (PROMPT.format(more="tools: {a: maybe}\n"), None),
        ("---\nname: helper\ntools: [cli\n---\nBody", None),
        ("---\nname: helper\n---\n", "body-empty"),
        (PROMPT.format(more="max_turns: many\n"), "wrong-value"),
        ("---\nname: helper\ntools: [cli]\nbody without an end", None),
    ],
)
def test_a_damaged_prompt_file_costs_its_agent_and_nothing_else(tmp_path: Path, prompt: str, code: str | None) -> None:
    manifest = {
        "name": "p",
        "tools": [command()],
        "agents": [AGENT, {**AGENT, "name": "b", "system_prompt_file": "b.md"}],
    }
    folder = write_plugin(tmp_path / "p", manifest, agents__helper_md=prompt, b_md="Just a prompt.")
    found = opened(folder)
    assert [agent.name for agent in found.agents] == ["b"]
    errors = [problem for problem in found.problems if problem.severity == "error"]
    assert errors
    assert all(problem.path.endswith("agents/helper.md") for problem in errors)
    if code:
        assert code in {problem.code for problem in errors}


def test_a_prompt_file_that_is_a_link_out_of_the_plugin_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    folder = write_plugin(tmp_path / "p", {"name": "p", "agents": [{**AGENT, "system_prompt_file": "x.md"}]})
    (folder / "x.md").symlink_to(tmp_path / "secret.md")
    found = opened(folder)
    assert found.agents == ()
    assert "link-outside" in {problem.code for problem in found.problems}


def test_a_claude_plugin_brings_the_agents_and_skills_of_its_folders(tmp_path: Path) -> None:
    folder = tmp_path / "tidy"
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "tidy", "version": "1.0.0"}')
    (folder / "agents").mkdir()
    (folder / "agents" / "cleaner.md").write_text(
        "---\nname: cleaner\ndescription: Cleans\ntools: Read, Bash\n---\nClean."
    )
    (folder / "skills" / "s").mkdir(parents=True)
    (folder / "skills" / "s" / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\nx")
    (folder / "__init__.py").write_text("raise SystemExit('never run')")
    with stage_with(open_plugin(folder), expose=("cli", "file_edit")) as stage:
        assert set(profile(stage, "cleaner").tools or ()) == {"read_file", "cli"}
    assert opened(folder).skill_folders == (folder / "skills",)


def test_agents_go_with_their_plugin_and_files_of_the_user_beat_them(tmp_path: Path) -> None:
    with stage_with(plugin(tmp_path)) as stage:
        registry = stage.client.get_runtime().registry
        assert registry is not None
        assert stage.plugin.catalogue.find("helper") is not None
        registry.unexpose_tool("p")
        assert stage.plugin.catalogue.find("helper") is None
        registry.expose_tool("p")
        assert profile(stage).source.kind == "plugin"
        stage.plugin.add_profile(SubagentProfile("helper", "Mine"))
        assert profile(stage).description == "Mine"


def test_a_bound_tool_runs_in_its_agent(tmp_path: Path) -> None:
    manifest = {
        "name": "p",
        "tools": [command("bound", required_agent="helper")],
        "agents": [{**AGENT, "model": "script-model"}],
    }
    folder = write_plugin(tmp_path / "p", manifest, agents__helper_md="You help.")
    with staged(None, open_plugin(folder)) as stage:
        report = stage.spawn(profile="helper", dry_run=True)
        assert "bound" in report["tools"]
        inherited = stage.spawn(dry_run=True)
        assert "bound" not in inherited["tools"]


def test_pool_keys_keep_plugins_apart() -> None:
    assert pool_key("helper") == "agent-helper"
    assert pool_key("helper", plugin="a") == "plugin-a-helper"


# -- the same reader as for all other agents -----------------------------------------------------


def test_names_of_a_hosts_tools_that_are_not_here_are_told_and_a_name_of_nobody_is_refused(tmp_path: Path) -> None:
    with stage_with(plugin(tmp_path, more="tools: [p_own, tree]\n", model="script-model")) as stage:
        (note,) = stage.spawn(profile="helper")["notes"]
        assert note.endswith(": tree")
    with stage_with(plugin(tmp_path, more="tools: [tree, batch]\n", model="script-model")) as stage:
        assert "tree, batch" in stage.spawn(profile="helper")["error"]


def claude(root: Path, front: str) -> Path:
    for path, text in {".claude-plugin/plugin.json": '{"name": "c"}', "agents/a.md": f"---\n{front}---\nWork."}.items():
        (root / "c" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "c" / path).write_text(text)
    return root / "c"


def test_an_agent_of_a_claude_plugin_is_read_as_one_in_its_folder_would_be(tmp_path: Path) -> None:
    front = "name: a\ndescription: d\ntools: Read, WebFetch, mcp__docs\nmodel: sonnet\nmaxTurns: 7\neffort: high\n"
    (agent,) = opened(claude(tmp_path, front)).agents
    assert (agent.tools, agent.unmapped_tools) == (("read_file",), ("WebFetch", "docs__*"))
    assert (agent.provider, agent.max_turns, agent.reasoning_effort) == ("anthropic", 7, "high")


def test_text_that_may_be_a_broken_front_matter_is_no_prompt(tmp_path: Path) -> None:
    folder = write_plugin(
        tmp_path / "p", {"name": "p", "agents": [AGENT]}, agents__helper_md="tools: Read\nname: x\n---\nYou help.\n"
    )
    found = opened(folder)
    assert found.agents == ()
    assert "no-frontmatter" in {problem.code for problem in found.problems if problem.severity == "error"}


def test_the_file_of_an_agent_neither_spares_a_question_nor_sets_up_other_plugins(tmp_path: Path) -> None:
    more = "auto_approved: true\nplugin_configs: {cli: {timeout: 9}}\n"
    with stage_with(plugin(tmp_path, more=more)) as stage:
        assert (profile(stage).auto_approved, profile(stage).plugin_configs) == (False, {})
    found = {problem.code for problem in opened(tmp_path / "p").problems}
    assert {"untrusted-auto-approved", "field-ignored"} <= found


def test_the_plugins_that_the_file_names_narrow_what_silence_gives(tmp_path: Path) -> None:
    with stage_with(plugin(tmp_path, more="plugins: [todo, other]\n")) as stage:
        assert profile(stage).plugins == ("todo",)


def test_the_manifests_model_is_not_mixed_with_the_files_provider(tmp_path: Path) -> None:
    prompt = "---\nname: helper\nmodel: anthropic/claude-x-1\nmaxTurns: 3\n---\nYou help.\n"
    with stage_with(plugin(tmp_path, prompt=prompt, model="mistral", max_turns=5)) as stage:
        found = profile(stage)
        assert (found.model, found.provider, found.max_turns) == ("mistral", None, 5)


def test_a_denied_tool_of_the_plugin_is_denied_by_its_own_name(tmp_path: Path) -> None:
    manifest = {"name": "p", "tools": [command("list")], "agents": [AGENT]}
    text = PROMPT.format(more="disallowedTools: [list]\n")
    with stage_with(open_plugin(write_plugin(tmp_path / "p", manifest, agents__helper_md=text))) as stage:
        assert profile(stage).disallowed_tools == ("list",)
