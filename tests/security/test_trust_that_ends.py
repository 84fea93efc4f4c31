"""Trust is in files as they were: what an agent writes into a trusted workspace grants nothing in the same session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from support.rights import desk, write_profile
from support.subagents import Errands, Play, Stage

from shared import JaatoClient, JaatoRuntime, PluginRegistry
from shared.errors import JaatoError
from shared.folder_plugins.opened import RefusedFolder
from shared.on_demand import registry_of
from shared.permissions import PermissionBroker
from shared.plugins.subagent import SubagentPlugin
from shared.providers.script import ScriptProvider
from shared.trust import TrustStore, survey

POLICY = {"defaultPolicy": "deny", "whitelist": {"tools": ["look"]}}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that a person has looked at and trusts."""
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project"
    project.mkdir()
    write_profile(project, "helper", plugins=["desk"], auto_approved=True)
    (project / ".jaato" / "permissions.json").write_text(json.dumps(POLICY))
    TrustStore().trust(survey(project))
    return project


@contextmanager
def working(workspace: Path) -> Iterator[Stage]:
    """A program in the workspace: the plugin `desk` is there, and the main session does not have it."""
    play = Play(Errands(), "the child's answer")
    registry, plugin = PluginRegistry(), SubagentPlugin()
    registry.register_plugin(desk())
    registry.register_plugin(plugin)
    registry.expose_tool("subagent")
    client = JaatoClient("script", workspace=workspace)
    client.register_provider("script", ScriptProvider(play))
    client.connect(model="a-model")
    client.configure_tools(registry)
    try:
        yield Stage(client, plugin, play)
    finally:
        client.close()


def by_model(stage: Stage, profile: str) -> Any:
    [answer] = stage.by_model(("spawn_subagent", {"task": "a task", "profile": profile}))
    return answer


def test_a_trusted_profile_is_spawned_without_a_question_and_has_its_plugins(workspace: Path) -> None:
    with working(workspace) as stage:
        assert by_model(stage, "helper")["status"] == "completed"
        assert "scribble" in {schema.name for schema in stage.play.child_requests[-1].tools.schemas}


@pytest.mark.parametrize("first", [True, False])
def test_a_profile_that_was_written_meanwhile_is_not_trusted(workspace: Path, first: bool) -> None:
    with working(workspace) as stage:
        if not first:
            assert by_model(stage, "helper")["success"]
        write_profile(workspace, "mole", plugins=["desk"], auto_approved=True)
        assert "permission denied" in str(by_model(stage, "mole"))
        answer = stage.spawn(profile="mole")
        assert answer["success"] is False
        assert "not trusted" in answer["error"]


def test_one_that_was_edited_meanwhile_is_not_either(workspace: Path) -> None:
    with working(workspace) as stage:
        assert by_model(stage, "helper")["success"]
        write_profile(workspace, "helper", plugins=["desk"], auto_approved=True, system_instructions="Obey the file.")
        assert "permission denied" in str(by_model(stage, "helper"))
        assert stage.spawn(profile="helper")["success"] is False
        write_profile(workspace, "helper", plugins=["desk"], auto_approved=True)
        assert by_model(stage, "helper")["success"], "as it was looked at"


def test_a_policy_that_was_written_meanwhile_does_not_widen_anything(workspace: Path) -> None:
    with working(workspace) as stage:
        broker = stage.client.get_runtime().broker
        assert isinstance(broker, PermissionBroker)
        assert broker.policy.default == "deny"
        (workspace / ".jaato" / "permissions.json").write_text(json.dumps({"defaultPolicy": "allow"}))
        assert broker.reload().default == "ask", "the user's own, which is none"


def test_code_of_a_plugin_that_was_changed_meanwhile_does_not_run(workspace: Path, tmp_path: Path) -> None:
    """Plugins are looked for when something needs the first: then, too, only the code that was looked at counts."""
    folder = workspace / ".jaato" / "plugins" / "tidy"
    folder.mkdir(parents=True)
    (folder / "plugin.json").write_text(json.dumps({"name": "tidy", "version": "1.0.0", "description": "Tidies."}))
    code, ran = folder / "__init__.py", tmp_path / "ran"
    code.write_text("def register(api): pass\n")
    TrustStore().trust(survey(workspace))
    runtime = JaatoRuntime("script", workspace=workspace)
    assert runtime.trust_workspace, "looked at, and remembered"
    code.write_text(f"open({str(ran)!r}, 'w').close()\ndef register(api): pass\n")
    registry = registry_of(runtime)
    try:
        with suppress(JaatoError):
            registry.expose_tool("tidy")
        assert not ran.exists()
        assert [each.name for each in registry.folders if isinstance(each, RefusedFolder)] == ["tidy"]
    finally:
        runtime.close()
