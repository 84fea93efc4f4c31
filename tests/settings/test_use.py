"""Client, sessions and plugins go by the settings, under what the host says itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.settings_files import Desk
from support.settings_files import desk as made_desk

from shared import JaatoClient, JaatoRuntime, PluginRegistry
from shared.errors import ConfigError
from shared.plugins.subagent import SubagentPlugin
from shared.testing import ScriptProvider


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return made_desk(tmp_path, monkeypatch)


def _plugin(desk: Desk, **config: object) -> SubagentPlugin:
    registry, plugin = PluginRegistry(), SubagentPlugin()
    registry.register_plugin(plugin)
    registry.expose_tool("subagent", config or None)
    client = JaatoClient("script", workspace=desk.workspace)
    client.register_provider("script", ScriptProvider(lambda request: "ok"))
    client.connect()
    client.configure_tools(registry, permissions="allow")
    return plugin


def test_a_client_takes_provider_model_and_options_from_the_files(desk: Desk) -> None:
    desk.user("provider: script\nsystem_instructions: Be brief.\ntemperature: 0.25\ngc: {threshold_percent: 50}\n")
    desk.project("model: echo\n")
    with JaatoClient(workspace=desk.workspace) as client:
        client.connect()
        assert (client.provider_name, client.model_name) == ("script", "echo")
        assert client.send_message("hello") == "You said: hello"
        session = client.get_session()
        assert session.system_prompt == "Be brief."
        assert session.spec.settings.temperature == 0.25
        assert session.spec.gc.threshold_percent == 50


def test_what_the_host_says_is_stronger(desk: Desk) -> None:
    desk.user("provider: anthropic\nmodel: of-user\nsystem_instructions: Be brief.\ngc: hybrid\n")
    with JaatoClient("script", workspace=desk.workspace, system_instructions="Be long.", gc="truncate") as client:
        client.connect(model="echo")
        assert (client.provider_name, client.model_name) == ("script", "echo")
        assert client.get_session().system_prompt == "Be long."
        assert client.get_session().spec.gc.type == "truncate"


def test_a_broken_file_stops_the_client_with_one_sentence(desk: Desk) -> None:
    desk.project("modle: x\n")
    with pytest.raises(ConfigError, match=r"config\.yaml:1: .*Did you mean 'model'"):
        JaatoClient("script", workspace=desk.workspace)


def test_retry_and_connection_settings_reach_the_runtime(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.user(
        "project: p1\nlocation: l1\nretry: {attempts: 2, longest_wait: 5}\n"
        "providers: {google_genai: {api_key: k, base_url: 'http://127.0.0.1:9'}}\n"
    )
    monkeypatch.setenv("AI_RETRY_ATTEMPTS", "3")
    runtime = JaatoRuntime("google_genai", workspace=desk.workspace)
    assert (runtime.retry.attempts, runtime.retry.longest_wait, runtime.retry.max_delay) == (3, 5, 60.0)
    assert runtime.settings.providers == {"google_genai": {"api_key": "k", "base_url": "http://127.0.0.1:9"}}
    runtime.connect()
    assert runtime.provider() is runtime.provider(project="p1", location="l1")


def test_the_address_in_the_environment_beats_the_one_in_a_file(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.user("providers: {anthropic: {api_key: k, base_url: 'http://127.0.0.1:9', timeout_seconds: 7}}\n")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:10")
    settings = JaatoRuntime("anthropic", workspace=desk.workspace).settings
    assert settings.providers == {"anthropic": {"api_key": "k", "timeout_seconds": 7}}


def test_the_policy_of_a_trusted_file_decides(desk: Desk) -> None:
    desk.project("permissions: deny\nplugins: [todo]\n")
    runtime = JaatoRuntime("script", workspace=desk.workspace)
    runtime.configure_plugins(PluginRegistry())
    assert runtime.broker is not None
    assert runtime.broker.policy.default == "deny"


def test_the_subagent_plugin_takes_settings_of_the_files_under_its_own(desk: Desk) -> None:
    desk.user(
        "max_depth: 3\nmax_children: 5\ndefault_model: small\n"
        "profiles: {helper: {description: Helps, max_turns: 2}}\nprofiles_dir: mine\n"
    )
    plugin = _plugin(desk, max_children=7)
    assert (plugin.settings.max_depth, plugin.settings.max_children) == (3, 7)
    assert (plugin.settings.default_model, plugin.settings.profiles_dir) == ("small", "mine")
    answer = plugin.get_executors()["spawn_subagent"]({"task": "t", "profile": "helper"})
    assert (answer["status"], answer["model"]) == ("completed", "small")


def test_settings_given_later_keep_those_of_the_files(desk: Desk) -> None:
    desk.user("max_depth: 3\nmax_children: 5\n")
    plugin = _plugin(desk)
    plugin.initialize({"max_depth": 2})
    assert (plugin.settings.max_depth, plugin.settings.max_children) == (2, 5)


def test_an_untrusted_projects_profiles_do_not_become_the_hosts_own(desk: Desk) -> None:
    desk.project("profiles: {helper: {description: d, auto_approved: true}}\nmax_children: 2\n")
    plugin = _plugin(desk)
    assert plugin.settings.max_children == 2
    assert plugin.catalogue.find("helper") is None


def test_skill_folders_of_the_settings_are_searched(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "more" / "greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: Greets people.\n---\nSay hello.\n")
    desk.user(f"skill_dirs: ['{tmp_path / 'more'}']\n")
    registry = PluginRegistry()
    registry.discover()
    registry.expose_tool("skills")
    with JaatoClient("script", workspace=desk.workspace) as client:
        client.connect()
        client.configure_tools(registry, permissions="allow")
        assert "greet" in client.get_session().system_prompt
