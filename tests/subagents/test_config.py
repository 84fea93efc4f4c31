"""The settings of the subagent plugin: every option, every wrong value, and other settings while runs are live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.rights import by_task, tools_of
from support.subagents import Hold, spawning, staged
from support.tools import Lab

from shared.errors import ConfigError
from shared.plugins.subagent import SubagentConfig, SubagentPlugin, SubagentProfile

FULL: dict[str, Any] = {
    "project": "my-project",
    "location": "us-central1",
    "default_model": "small",
    "default_provider": "script",
    "profiles": {"p": {"description": "x", "plugins": ["cli"], "max_turns": 3}},
    "allow_inline": False,
    "inline_allowed_plugins": ["cli"],
    "auto_discover_profiles": False,
    "profiles_dir": "elsewhere",
    "extra_dirs": ["more"],
    "allowed_variables": ["CI"],
    "max_concurrent": 2,
    "max_depth": 3,
    "max_children": 4,
    "max_total_spawns": 5,
    "result_tokens": 600,
    "digest_tokens": 700,
}


def test_every_option_is_taken() -> None:
    made = SubagentConfig.from_dict(FULL)
    assert {name: getattr(made, name) for name in FULL if name != "profiles"} == {
        name: value for name, value in FULL.items() if name != "profiles"
    }
    profile = made.get_profile("p")
    assert profile is not None
    assert (profile.name, profile.max_turns, profile.source.kind, profile.source.trusted) == ("p", 3, "code", True)


def test_all_settings_have_a_default() -> None:
    made = SubagentConfig.from_dict(None)
    assert made == SubagentConfig() == SubagentConfig.from_dict({})
    assert made.allow_inline
    assert made.auto_discover_profiles
    assert (made.max_concurrent, made.max_depth, made.max_children, made.max_total_spawns) == (8, 1, 16, 200)
    assert made.profiles_dir == ".jaato/profiles"
    assert made.profiles == {}
    assert (made.project, made.location, made.default_model, made.default_provider) == (None,) * 4


@pytest.mark.parametrize("nothing", [None, {}])
def test_initialize_without_settings(nothing: dict[str, Any] | None) -> None:
    plugin = SubagentPlugin()
    plugin.initialize(nothing)
    assert plugin.settings == SubagentConfig()
    assert len(plugin.get_tool_schemas()) == 12


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_concurent": 3}, ("'max_concurent'", "Did you mean 'max_concurrent'")),
        ({"profile_dir": "x"}, ("Did you mean 'profiles_dir'",)),
        ({"nonsense": 1}, ("'nonsense'", "Known:", "max_depth")),
        ({7: 1}, ("'7'",)),
        ({"max_concurrent": 0}, ("max_concurrent", "at least 1", "0")),
        ({"max_concurrent": "8"}, ("max_concurrent", "whole number", "'8'")),
        ({"max_concurrent": True}, ("max_concurrent", "true")),
        ({"max_concurrent": 1.5}, ("max_concurrent", "1.5")),
        ({"max_depth": -1}, ("max_depth", "at least 0")),
        ({"max_children": None}, ("max_children", "null")),
        ({"max_total_spawns": -5}, ("max_total_spawns",)),
        ({"result_tokens": 0}, ("result_tokens",)),
        ({"digest_tokens": "many"}, ("digest_tokens",)),
        ({"allow_inline": "no"}, ("allow_inline", "true or false", "'no'")),
        ({"auto_discover_profiles": 0}, ("auto_discover_profiles", "true or false")),
        ({"inline_allowed_plugins": "cli"}, ("inline_allowed_plugins", "a list of names", "'cli'")),
        ({"inline_allowed_plugins": ["cli", 3]}, ("inline_allowed_plugins", "3")),
        ({"allowed_variables": [""]}, ("allowed_variables",)),
        ({"extra_dirs": "dir"}, ("extra_dirs", "a list of folders")),
        ({"extra_dirs": [None]}, ("extra_dirs", "path")),
        ({"profiles_dir": ""}, ("profiles_dir", "path")),
        ({"profiles_dir": 3}, ("profiles_dir", "3")),
        ({"default_model": 4}, ("default_model", "text", "4")),
        ({"default_provider": ["x"]}, ("default_provider", "text")),
        ({"project": 12}, ("project", "text", "12")),
        ({"location": False}, ("location", "text")),
        ({"profiles": ["p"]}, ("profiles", "by name")),
        ({"profiles": {"p": "cli"}}, ("profiles", "'p'", "'cli'")),
        ({"profiles": {"p": {"max_turn": 2}}}, ("profile 'p'", "Did you mean 'max_turns'")),
        ({"profiles": {"p": {"max_turns": 0}}}, ("profile 'p'", "max_turns", "at least 1")),
        ({"profiles": {"p": SubagentProfile("q")}}, ("'q'", "'p'")),
        ({"profiles": {3: {}}}, ("3", "text")),
        ({"max_depth": -1, "allow_inline": 1}, ("max_depth", "allow_inline")),
        ("max_depth", ("an object of settings", "'max_depth'")),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(given: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        SubagentConfig.from_dict(given)
    text = str(caught.value)
    assert text.startswith("plugin 'subagent': ")
    assert "\n" not in text
    for word in words:
        assert word in text, text


def test_settings_made_in_code_are_checked_alike() -> None:
    with pytest.raises(ConfigError, match="max_depth must be a whole number"):
        SubagentConfig(max_depth="deep")  # type: ignore[arg-type]


def test_paths_may_be_paths_and_names_may_be_blank(tmp_path: Path) -> None:
    made = SubagentConfig.from_dict(
        {"profiles_dir": tmp_path, "extra_dirs": (tmp_path,), "default_model": " ", "default_provider": "inherit"}
    )
    assert made.profiles_dir == str(tmp_path)
    assert made.extra_dirs == [str(tmp_path)]
    assert (made.default_model, made.default_provider) == (None, None)


def test_settings_are_copies() -> None:
    given: dict[str, Any] = {"inline_allowed_plugins": ["cli"], "profiles": {}}
    made = SubagentConfig.from_dict(given)
    given["inline_allowed_plugins"].append("mcp")
    made.add_profile(SubagentProfile("new"))
    assert made.inline_allowed_plugins == ["cli"]
    assert given["profiles"] == {}


def test_wrong_settings_leave_the_former_ones_in_force() -> None:
    with staged(None, Lab(), config={"max_children": 3}) as stage:
        registry = stage.client.get_runtime().registry
        assert registry is not None
        with pytest.raises(ConfigError, match="max_children"):
            registry.expose_tool("subagent", {"max_children": 0})
        assert stage.plugin.settings.max_children == 3
        assert stage.spawn()["success"]


# -- other settings while runs are live ------------------------------------------------------------


def test_new_settings_while_runs_are_live_lose_nobody() -> None:
    hold = Hold()
    child = by_task({"busy": hold, "next": "done", "later": "done"})
    config = {"auto_discover_profiles": False, "max_concurrent": 1, "profiles": {"old": {"plugins": ["lab"]}}}
    with staged(child, Lab(), config=config) as stage:
        busy = stage.launch("busy", profile="old")
        hold.wait_entered()
        waiting = stage.launch("next")
        stage.plugin.initialize(
            {**config, "max_concurrent": 2, "profiles": {"new": {"tools": []}}, "allow_inline": False}
        )
        assert stage.result(waiting)["status"] == "completed", "there is room for two now"
        listed = {each["agent_id"]: each["status"] for each in stage.call("list_active_subagents")["active_sessions"]}
        assert listed == {busy: "running", waiting: "waiting"}
        assert "'old'" in stage.spawn("gone", profile="old")["error"]
        assert "allow_inline" in stage.spawn("gone", inline_config={"max_turns": 1})["error"]
        assert stage.spawn("later", profile="new")["success"]
        assert tools_of(stage.play, "later") == set()
        hold.release()
        assert stage.result(busy)["status"] == "completed"
        assert stage.call("continue_subagent", agent_id=busy, message="on")["status"] == "completed"
        assert "add" in tools_of(stage.play, "busy"), "an agent stays what it was"


def test_an_agent_from_before_new_settings_still_gives_up_its_place_for_its_child() -> None:
    child = by_task({"mid": ["first", spawning("leaf"), "second"], "leaf": "done"})
    config = {
        "auto_discover_profiles": False,
        "max_concurrent": 1,
        "max_depth": 2,
        "profiles": {"boss": {"plugins": ["subagent", "lab"]}},
    }
    with staged(child, Lab(), config=config) as stage:
        agent = stage.spawn("mid", profile="boss")["agent_id"]
        stage.plugin.initialize(config)
        again = stage.call("continue_subagent", agent_id=agent, message="delegate", background=True)
        assert again["success"]
        assert stage.result(agent)["response"] == "second"


def test_fewer_places_stop_nobody_and_hold_for_the_next() -> None:
    hold = Hold()
    with staged(hold, Lab(), config={"max_concurrent": 2}) as stage:
        first, second = (stage.launch(name=name) for name in ("one", "two"))
        hold.wait_entered(2)
        stage.plugin.initialize({"auto_discover_profiles": False, "max_concurrent": 1})
        third = stage.launch(name="three")
        assert stage.call("get_subagent_result", agent_id=third)["status"] == "queued"
        hold.release()
        assert [stage.result(each)["status"] for each in (first, second, third)] == ["completed"] * 3


def test_profiles_added_from_code_survive_new_settings() -> None:
    with staged(None, Lab()) as stage:
        stage.plugin.add_profile(SubagentProfile("kept", plugins=["lab"], tools=["add"]))
        stage.plugin.initialize({"auto_discover_profiles": False})
        assert stage.spawn("work", profile="kept")["success"]
        assert tools_of(stage.play, "work") == {"add"}
