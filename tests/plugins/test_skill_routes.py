"""The ways to a skill, each through a client from end to end: match, classifier, fork, affinity, tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.skills import write_skill
from support.subagents import Play, is_child, task_of
from support.tools import Lab, calls, results_of

from shared import JaatoClient, PluginRegistry
from shared.errors import ToolError
from shared.plugins.skills import SkillsPlugin
from shared.plugins.subagent import SubagentPlugin, SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import ScriptProvider
from shared.skills import Skill, SkillInfo
from shared.trust import TrustStore, survey
from shared.types import Role

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@contextmanager
def hosted(script: Any, workspace: Path, **config: Any) -> Iterator[tuple[JaatoClient, SkillsPlugin, SubagentPlugin]]:
    registry, plugin, subagents = PluginRegistry(), SkillsPlugin(), SubagentPlugin()
    for each in (Lab(), subagents):
        registry.register_plugin(each, expose=True)
    registry.register_plugin(plugin, expose=True, config=config)
    client = JaatoClient(provider_name="script", workspace=workspace, trust_workspace=True)
    client.register_provider("script", ScriptProvider(script))
    client.connect(model="big")
    client.configure_tools(registry, permissions="allow")
    try:
        yield client, plugin, subagents
    finally:
        client.close()


def test_a_message_reaches_the_model_with_the_skill_it_is_about(project: Path) -> None:
    write_skill(project / ".jaato/skills", "deploy", "Deploy it.", description="Deploys a service to production.")
    seen: list[ModelRequest] = []
    with hosted(lambda request: seen.append(request) or "ok", project) as (client, _, _):
        client.send_message("please deploy the service to production")
        client.send_message("hello")
        said = [message.text or "" for message in client.get_history() if message.role is Role.USER]
    assert said[0].endswith('production\n\n<skill name="deploy">\nDeploy it.\n</skill>')
    assert said[1] == "hello"
    assert "Deploy it." in str(seen[0].messages[0].text)


def test_the_classifier_is_asked_on_its_own_model_and_its_cost_is_booked(project: Path) -> None:
    write_skill(project / ".jaato/skills", "gardening", "Water the roses.", description="Care for plants.")
    asked: list[ModelRequest] = []

    def model(request: ModelRequest) -> Any:
        asked.append(request)
        return "gardening" if request.model == "tiny" else "ok"

    with hosted(model, project, classifier_model="tiny") as (client, _, _):
        client.send_message("my tulips look sad")
        rows = client.get_runtime().ledger.rows("main")
    assert [request.model for request in asked] == ["tiny", "big"]
    assert "Care for plants." in str(asked[0].messages[0].text)
    assert "Water the roses." in str(asked[1].messages[0].text)
    assert (rows[0].model, rows[0].purpose) == ("tiny", "skill-match")
    assert len(rows) == 2


def test_a_classifier_that_fails_keeps_nobody_from_talking(project: Path) -> None:
    write_skill(project / ".jaato/skills", "gardening", "Water the roses.")

    def model(request: ModelRequest) -> Any:
        return RuntimeError("down") if request.model == "tiny" else "ok"

    with hosted(model, project, classifier_model="tiny") as (client, _, _):
        assert client.send_message("my tulips look sad") == "ok"


def test_a_person_forks_a_skill_under_its_profile_and_model(project: Path) -> None:
    write_skill(project / ".jaato/skills", "explore", "Explore $ARGUMENTS.", context="fork", agent="scout")
    write_skill(project / ".jaato/skills", "ponder", "Ponder.", context="fork", model="small-2")
    play = Play(child="found gold")
    with hosted(play, project) as (client, _, subagents):
        subagents.add_profile(SubagentProfile("scout", system_instructions="You are a scout."))
        answer, _ = client.execute_user_command("explore", "the cave")
        assert answer["response"] == "found gold"
        client.execute_user_command("ponder")
    first, second = play.child_requests
    assert "You are a scout." in first.system
    assert task_of(first).strip() == "Explore the cave."
    assert second.model == "small-2"


def test_a_fork_to_a_profile_that_does_not_exist_is_refused_in_words(project: Path) -> None:
    write_skill(project / ".jaato/skills", "explore", "Explore.", context="fork", agent="nobody")
    with hosted(Play(), project) as (client, _, _):
        answer = _said(lambda: client.execute_user_command("explore", "x"))
    assert "nobody" in answer


def _said(call: Any) -> str:
    try:
        return str(call())
    except ToolError as error:
        return str(error)


def test_affinity_routes_a_person_and_a_model_alike(project: Path) -> None:
    write_skill(project / ".jaato/skills", "mining", "Dig $0.", metadata='{"conduit": {"agent": "miner"}}')
    play = Play(parent=[calls(("skill", {"name": "mining", "arguments": "iron"})), "end"], child="dug")
    with hosted(play, project) as (client, plugin, subagents):
        assert client.execute_user_command("mining", "coal")[0].strip() == "Dig coal.", "nobody of that name yet"
        subagents.add_profile(SubagentProfile("miner", system_instructions="You are a miner."))
        assert client.execute_user_command("mining", "coal")[0]["response"] == "dug"
        client.send_message("go")
        assert "of the agent 'miner'" in (plugin.match_message("use mining") or "")
    assert [task_of(request).strip() for request in play.child_requests] == ["Dig coal.", "Dig iron."]
    assert all("You are a miner." in request.system for request in play.child_requests)


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


@pytest.mark.parametrize(("prefixed", "name"), [(True, "maths.double"), (False, "double")])
def test_tools_of_a_skill_have_its_name_in_front_unless_that_is_off(project: Path, prefixed: bool, name: str) -> None:
    seen: list[ModelRequest] = []

    def model(request: ModelRequest) -> Any:
        seen.append(request)
        steps = {1: calls(("skill", {"name": "maths"})), 3: calls((name, {"n": 4}))}
        return steps.get(len(seen), "end")

    with hosted(model, project, namespace_tools=prefixed) as (client, plugin, _):
        plugin.manager.register(Skill(SkillInfo("maths", "Counts"), "Count.", (double,)))
        client.send_message("load")
        [loaded] = results_of(seen[-1].messages)
        assert name in loaded
        assert "next message" in loaded
        client.send_message("count")
        assert results_of(seen[-1].messages)[-1] == "8"
        assert name in plugin.manager.tool_names
        client.execute_user_command("skills", "deactivate maths")
        client.send_message("again")
        assert name not in client.get_session().tool_names


def test_a_profile_preloads_tools_with_the_prefix(project: Path) -> None:
    def child(request: ModelRequest) -> Any:
        return (
            str(results_of(request.messages)[-1]) if request.messages[-1].results else calls(("maths.double", {"n": 3}))
        )

    with hosted(lambda request: child(request) if is_child(request) else "x", project) as (_, plugin, subagents):
        plugin.manager.register(Skill(SkillInfo("maths", "Counts"), "Count.", (double,)))
        subagents.add_profile(SubagentProfile("counter", skills=["maths"]))
        answer = subagents.get_executors()["spawn_subagent"]({"task": "count", "profile": "counter"})
        assert answer["response"] == "6"
        assert plugin.manager.active == []


def test_allowed_tools_grant_in_our_names_what_the_agent_may_use(project: Path) -> None:
    write_skill(project / ".jaato/skills", "reading", allowed_tools="Read, Bash(git log:*), mcp__git__log")
    with hosted(Play(), project) as (client, plugin, _):
        before = plugin.manager.tool_names
        client.execute_user_command("reading")
        assert plugin.manager.tool_names - before == {"read_file", "Bash(git log:*)", "git__log"}
        assert "read_file" not in client.get_session().tool_names, "nothing is there that no plugin in use has"
        client.execute_user_command("skills", "deactivate reading")
        assert plugin.manager.tool_names == before


def test_a_skill_that_changed_since_the_project_was_trusted_does_not_fork(project: Path) -> None:
    folder = write_skill(project / ".jaato/skills", "explore", "Explore.", context="fork")
    TrustStore().trust(survey(project))
    play = Play(child="found gold")
    registry, plugin = PluginRegistry(), SkillsPlugin()
    registry.register_plugin(SubagentPlugin(), expose=True)
    registry.register_plugin(plugin, expose=True)
    with JaatoClient(provider_name="script", workspace=project) as client:
        client.register_provider("script", ScriptProvider(play))
        client.connect()
        client.configure_tools(registry, permissions="allow")
        assert client.execute_user_command("explore")[0]["response"] == "found gold"
        (folder / "SKILL.md").write_text((folder / "SKILL.md").read_text() + "Also dig.\n")
        assert "Also dig." in client.execute_user_command("explore")[0]
    assert len(play.child_requests) == 1
