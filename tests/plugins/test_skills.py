"""The skills plugin: catalogue, `skill` tool, commands, matching, forks and installation, through a client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.plugin_calls import Caller
from support.skills import write_skill
from support.subagents import Play, task_of

from shared import JaatoClient, PluginRegistry
from shared.errors import SkillNotFoundError, ToolError
from shared.hooks import HookBus
from shared.plugins.skills import SkillsPlugin
from shared.plugins.subagent import SubagentPlugin
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, ScriptProvider
from shared.skills import Skill, SkillInfo
from shared.skills.preload import preload_for
from shared.testing import scripted_client

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    write_skill(place / ".jaato/skills", "deploy", "Deploy $0 now.", description="Deploys a service to production.")
    write_skill(place / ".jaato/skills", "private", "Secret.", disable_model_invocation="true")
    write_skill(place / ".jaato/skills", "machine", "For models.", user_invocable="false")
    metadata = '{"openclaw": {"requires": {"bins": ["no-such-program"]}}}'
    write_skill(place / ".jaato/skills", "absent", metadata=metadata)
    return place


@contextmanager
def hosted(
    script: Any, workspace: Path, *, trusted: bool = False, permissions: Any = "allow", **config: Any
) -> Iterator[tuple[JaatoClient, SkillsPlugin]]:
    """A client with skills and subagents, whose models follow a script."""
    registry = PluginRegistry()
    plugin = SkillsPlugin()
    registry.register_plugin(SubagentPlugin(), expose=True)
    registry.register_plugin(plugin, expose=True, config=config)
    client = JaatoClient(provider_name="script", workspace=workspace, trust_workspace=trusted)
    client.register_provider("script", ScriptProvider(script))
    client.connect()
    client.configure_tools(registry, permissions=permissions)
    try:
        yield client, plugin
    finally:
        client.close()


def calling(tool: str, **arguments: Any) -> Reply:
    return Reply("", calls=((tool, arguments),))


def results(request: ModelRequest) -> list[Any]:
    return [result.result for message in request.messages for result in message.results]


def test_the_prompt_lists_what_a_model_may_use_and_stays_the_same(project: Path) -> None:
    with hosted(["hi"], project) as (client, plugin):
        prompt = client.get_session().system_prompt
        assert "- deploy: Deploys a service to production." in prompt
        assert "- machine:" in prompt
        for hidden in ("private", "absent"):
            assert f"- {hidden}:" not in prompt
        assert plugin.get_system_instructions() == plugin.get_system_instructions()
        assert "Deploy $0" not in prompt


def test_a_model_loads_a_body_with_arguments(project: Path) -> None:
    seen: list[ModelRequest] = []

    def model(request: ModelRequest) -> Any:
        seen.append(request)
        return calling("skill", name="deploy", arguments="api") if len(seen) == 1 else "done"

    with hosted(model, project) as (client, _):
        assert client.send_message("go") == "done"
    [answer] = results(seen[-1])
    assert answer["instructions"].strip() == "Deploy api now."
    assert "Nobody has vouched" in answer["note"]


def test_what_a_model_may_not_or_cannot_load(project: Path) -> None:
    plugin = SkillsPlugin()
    plugin.initialize({"workspace": str(project)})
    caller = Caller(plugin, project)
    assert "for people only" in caller.error("skill", name="private")
    assert "no-such-program" in caller.error("skill", name="absent")
    assert "Did you mean 'deploy'" in caller.error("skill", name="deply")


def test_files_of_a_skill_on_demand(project: Path) -> None:
    place = project / ".jaato/skills/deploy"
    (place / "references").mkdir()
    (place / "references/hosts.md").write_text("host list")
    plugin = SkillsPlugin()
    plugin.initialize({"workspace": str(project)})
    caller = Caller(plugin, project)
    assert caller.ok("skill", name="deploy")["files"] == ["references/hosts.md"]
    assert caller.ok("skill", name="deploy", file="references/hosts.md")["text"] == "host list"
    assert "outside" in caller.error("skill", name="deploy", file="../private/SKILL.md")
    assert "for people only" in caller.error("skill", name="private", file="SKILL.md")


def test_people_type_the_name_of_a_skill(project: Path) -> None:
    with hosted(lambda request: "ok", project) as (client, _):
        names = {command.name for command in client.get_user_commands()}
        assert {"skills", "install", "deploy", "private"} <= names
        assert not names & {"machine", "absent"}
        result, shared = client.execute_user_command("deploy", "'the api' fast")
        assert (result.strip(), shared) == ("Deploy the api now.", True)
        client.send_message("go on")
        assert any("Deploy the api now." in (message.text or "") for message in client.get_history())
        listing, _ = client.execute_user_command("skills")
        assert "absent (project, untrusted, unavailable: the program no-such-program is not on the PATH)" in listing
        assert [each.value for each in client.get_command_completions("skills", ["tr"])] == ["trust"]
        with pytest.raises(ToolError, match="Did you mean 'trust'"):
            client.execute_user_command("skills", "trsut deploy")


def test_no_skill_stands_in_for_a_command_of_the_plugin(project: Path) -> None:
    write_skill(project / ".jaato/skills", "install", "Evil.")
    with hosted(["x"], project) as (client, _), pytest.raises(ToolError, match="missing <source>"):
        client.execute_user_command("install")


def test_matching_skills_are_added_to_the_message(project: Path) -> None:
    with hosted(["x"], project) as (client, plugin):
        bus = HookBus(client.get_runtime().registry)
        text = bus.message_received("please deploy the api to production")
        assert text.startswith('please deploy the api to production\n\n<skill name="deploy">')
        assert bus.message_received("hello") == "hello"
        assert plugin.match_message("the private skill") is None
        assert plugin.match_message("/deploy to production") is None, "whoever calls it by name has it already"
        assert plugin.match_message("/etc/deploy is how we deploy to production") is not None, "a path is no call"
        client.get_runtime().registry.expose_tool("skills", {"auto_match": False})
        assert HookBus(client.get_runtime().registry).message_received("deploy to production") == "deploy to production"


def test_at_most_two_skills_a_message(project: Path) -> None:
    for number in range(4):
        write_skill(project / ".jaato/skills", f"topic{number}", f"Body {number}.")
    with hosted(["x"], project) as (_, plugin):
        text = plugin.match_message("topic0 topic1 topic2 topic3")
        assert text is not None
        assert text.count("<skill name=") == 2


def test_a_model_is_asked_only_when_configured_and_keywords_find_nothing(project: Path) -> None:
    asked: list[ModelRequest] = []

    def model(request: ModelRequest) -> Any:
        asked.append(request)
        return "machine, private, nonsense"

    with hosted(model, project) as (_, plugin):
        assert plugin.match_message("something entirely different") is None
        assert asked == []
    with hosted(model, project, classifier_model="tiny") as (_, plugin):
        text = plugin.match_message("something entirely different")
        assert text is not None
        assert '<skill name="machine">' in text
        assert "Secret" not in text
        assert [request.model for request in asked] == ["tiny"]


def forking(project: Path, **fields: str) -> None:
    write_skill(project / ".jaato/skills", "explore", "Explore $ARGUMENTS.", context="fork", **fields)
    profiles = project / ".jaato/profiles"
    profiles.mkdir(parents=True, exist_ok=True)
    (profiles / "scout.json").write_text('{"description": "Looks around", "system_instructions": "You are a scout."}')


def test_a_trusted_skill_runs_as_a_subagent_under_its_profile(project: Path) -> None:
    forking(project, agent="scout")
    play = Play(parent=[calling("skill", name="explore", arguments="the cave"), "end"], child="found gold")
    with hosted(play, project, trusted=True) as (client, _):
        assert client.send_message("go") == "end"
    [answer] = results(play.parent_requests[-1])
    assert (answer["skill"], answer["status"], answer["response"]) == ("explore", "completed", "found gold")
    [request] = play.child_requests
    assert task_of(request).strip() == "Explore the cave."
    assert "You are a scout." in request.system


def test_an_untrusted_skill_never_forks(project: Path) -> None:
    forking(project, agent="scout")
    play = Play(parent=[calling("skill", name="explore", arguments="x"), "end"])
    with hosted(play, project) as (client, _):
        client.send_message("go")
    assert play.child_requests == []
    [answer] = results(play.parent_requests[-1])
    assert "run as a subagent" in answer["note"]


def test_a_fork_asks_like_every_spawn_does(project: Path) -> None:
    forking(project)
    play = Play(parent=[calling("skill", name="explore"), "end"])
    policy = {"defaultPolicy": "allow", "blacklist": {"tools": ["spawn_subagent"]}}
    with hosted(play, project, trusted=True, permissions=policy) as (client, _):
        client.send_message("go")
    assert play.child_requests == []
    assert "spawn_subagent" in str(results(play.parent_requests[-1])[0])


def test_a_fork_without_subagents_is_refused_in_words(project: Path) -> None:
    forking(project)
    plugin = SkillsPlugin()
    with scripted_client(["x"], plugin, workspace=project, trust_workspace=True) as client:
        plugin.initialize(None)
        with pytest.raises(ToolError, match="needs the plugin 'subagent'"):
            client.execute_user_command("explore", "x")


def test_affinity_routes_to_the_profile_if_there_is_one(project: Path) -> None:
    forking(project)
    for name, agent in (("known", "scout"), ("unknown", "nobody")):
        metadata = f'{{"conduit": {{"agent": "{agent}"}}}}'
        write_skill(project / ".jaato/skills", name, "Look.", metadata=metadata)
    play = Play(parent=[calling("skill", name="known"), calling("skill", name="unknown"), "end"], child="seen")
    with hosted(play, project, trusted=True) as (client, plugin):
        client.send_message("go")
        text = plugin.match_message("the known skill")
        assert text is not None
        assert "of the agent 'scout'" in text
    first, second = results(play.parent_requests[-1])
    assert first["response"] == "seen"
    assert second["instructions"].strip() == "Look."


def test_tools_of_a_skill_come_and_go_with_it(project: Path) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    seen: list[ModelRequest] = []

    def model(request: ModelRequest) -> Any:
        seen.append(request)
        steps = {1: calling("skill", name="maths"), 2: "ready", 3: calling("maths.add", a=1, b=2)}
        return steps.get(len(seen), "end")

    with hosted(model, project) as (client, plugin):
        plugin.manager.register(Skill(SkillInfo("maths", "Counts"), "Count.", (add,)))
        assert "maths.add" not in client.get_session().tool_names
        client.send_message("load")
        client.send_message("count")
        assert results(seen[-1])[-1] == 3
        client.execute_user_command("skills", "deactivate maths")
        client.send_message("again")
        assert "maths.add" not in client.get_session().tool_names


def test_skills_from_code_outlive_a_change_of_settings(project: Path) -> None:
    plugin = SkillsPlugin()
    plugin.manager.register(Skill(SkillInfo("coded", "In code"), "Coded."))
    with scripted_client(["x"], plugin, workspace=project) as client:
        assert client.execute_user_command("coded")[0] == "Coded."
        registry = client.get_runtime().registry
        assert registry is not None
        registry.expose_tool("skills", {"max_per_turn": 1})
        assert client.execute_user_command("coded")[0] == "Coded."
        assert plugin.manager.active == ["coded"]


def test_preloading_for_a_profile(project: Path) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    with hosted(["x"], project) as (client, plugin):
        plugin.manager.register(Skill(SkillInfo("maths", "Counts"), "Count.", (add,)))
        loaded = plugin.preload(["maths", "private"])
        assert loaded.text == '<skill name="maths">\nCount.\n</skill>\n\n<skill name="private">\nSecret.\n</skill>'
        assert [tool.name for tool in loaded.tools] == ["maths.add"]
        assert plugin.manager.active == []
        assert preload_for(client.get_runtime(), ["maths"]).tools[0].name == "maths.add"
        with pytest.raises(SkillNotFoundError, match="missing-skill"):
            plugin.preload(["missing-skill"])


def test_preloading_without_the_plugin(project: Path) -> None:
    with scripted_client(["x"], workspace=project) as client:
        loaded = preload_for(client.get_runtime(), ["machine"])
        assert (loaded.text, loaded.tools) == ('<skill name="machine">\nFor models.\n</skill>', ())


def test_install_asks_and_stays_in_the_workspace(project: Path, tmp_path: Path, home: Path) -> None:
    outside = write_skill(tmp_path / "outside", "stolen")
    write_skill(project / "vendor", "vendored", "Vendored.")
    plugin = SkillsPlugin()
    plugin.initialize({"workspace": str(project), "clawhub_url": "http://127.0.0.1:1"})
    caller = Caller(plugin, project)
    assert "skill_install" not in plugin.get_auto_approved_tools()
    assert "outside the workspace" in caller.error("skill_install", source=str(outside))
    assert "outside the workspace" in caller.error("skill_install", source="../outside/stolen")
    answer = caller.ok("skill_install", source="vendor/vendored")
    assert (answer["skill"], answer["trusted"]) == ("vendored", False)
    assert (home / "skills/vendored/SKILL.md").exists()
    assert "already" in caller.error("skill_install", source="vendor/vendored")
    assert not (home / "skills/stolen").exists()


def test_people_install_and_trust(project: Path, tmp_path: Path) -> None:
    source = write_skill(tmp_path / "from", "fresh", "Fresh.")
    with hosted(["x"], project) as (client, _):
        text, shared = client.execute_user_command("install", str(source))
        assert "skills trust fresh" in text
        assert not shared
        assert "fresh (user, untrusted)" in client.execute_user_command("skills")[0]
        client.execute_user_command("skills", "trust fresh")
        assert "fresh (user, trusted)" in client.execute_user_command("skills")[0]
        with pytest.raises(ToolError, match="already"):
            client.execute_user_command("install", str(source))
        assert "installed" in client.execute_user_command("install", f"{source} replace")[0]
        assert "fresh (user, untrusted)" in client.execute_user_command("skills")[0]


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(Exception, match="max_per_turn"):
        SkillsPlugin().initialize({"max_per_turn": -1})
