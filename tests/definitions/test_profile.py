"""SubagentProfile as hosts write it in Python."""

from __future__ import annotations

import dataclasses
import json
import pickle
from decimal import Decimal
from typing import Any

import pytest

from shared.budget import Limits
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import profile_from
from shared.definitions.source import Source
from shared.errors import ConfigError
from shared.gc.base import GCConfig


def test_only_a_name_is_needed_and_every_default_is_the_documented_one() -> None:
    profile = SubagentProfile(name="x")
    assert profile.as_dict() == {
        "name": "x",
        "description": "",
        "plugins": [],
        "tools": None,
        "disallowed_tools": [],
        "plugin_configs": {},
        "system_instructions": None,
        "skills": [],
        "model": None,
        "provider": None,
        "fallback_models": [],
        "temperature": None,
        "reasoning_effort": None,
        "max_output_tokens": None,
        "max_turns": 10,
        "timeout_seconds": None,
        "idle_timeout_seconds": 300,
        "budget": None,
        "auto_approved": False,
        "visibility": "user-facing",
        "output_schema": None,
        "emit_findings": False,
        "gc": None,
        "icon": None,
        "icon_name": None,
        "allow_agents": ["*"],
        "max_children": None,
        "max_depth": None,
        "reuse": False,
        "source": "code",
    }


def test_lists_and_objects_become_immutable_values() -> None:
    plugins, configs = ["cli", "todo", "cli"], {"references": {"preselected": ["a"]}}
    profile = SubagentProfile(
        name="simple_agent",
        description="Inherits parent model and provider",
        plugins=plugins,
        plugin_configs=configs,
        system_instructions="You are a specialized assistant.",
        max_turns=20,
        gc={"type": "hybrid"},
        budget={"total_tokens": 1000, "cost_usd": 0.5},
        icon=["a", "b", "c"],
    )
    plugins.append("mcp")
    configs["references"]["preselected"].append("b")
    assert profile.plugins == ("cli", "todo")
    assert profile.plugin_configs == {"references": {"preselected": ["a"]}}
    assert profile.gc == GCConfig(type="hybrid")
    assert profile.budget == Limits(total_tokens=1000, cost_usd=Decimal("0.5"))
    assert profile.icon == ("a", "b", "c")
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile.max_turns = 3  # type: ignore[misc]


def test_plugins_may_be_inherited_and_so_may_model_and_provider() -> None:
    profile = SubagentProfile(name="x", plugins="inherit", model="inherit", provider="inherit")
    assert profile.inherits_plugins
    assert (profile.plugins, profile.model, profile.provider) == ("inherit", None, None)
    assert not SubagentProfile(name="x", plugins=["inherit"]).inherits_plugins


def test_no_tools_and_all_tools_are_kept_apart() -> None:
    assert SubagentProfile(name="x").tools is None
    assert SubagentProfile(name="x", tools=[]).tools == ()
    assert SubagentProfile(name="x", disallowed_tools=None).disallowed_tools == ()


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", "", "without spaces around it"),
        ("name", "a/b", "must not be"),
        ("name", "..", "must not be"),
        ("name", "a\nb", "must not be"),
        ("name", "a\u202eb", "must not be"),
        ("name", "x" * 200, "at most 128"),
        ("description", None, "must be text"),
        ("plugins", "cli", "a list of names, such as [cli]"),
        ("plugins", ["cli", 7], "entry 2 is 7"),
        ("plugins", [" "], "entry 1"),
        ("tools", "read_file", "a list of names"),
        ("plugin_configs", {"cli": "fast"}, "an object of settings for 'cli'"),
        ("plugin_configs", {"cli": {"x": object()}}, "JSON values only"),
        ("plugin_configs", {"cli": {"x": float("nan")}}, "JSON values only"),
        ("plugin_configs", {"cli": {1: 2}}, "text as keys"),
        ("system_instructions", ["a"], "must be text"),
        ("model", "", "a name"),
        ("temperature", 3, "from 0 to 2"),
        ("temperature", True, "from 0 to 2"),
        ("reasoning_effort", "max", "one of low, medium, high, inherit"),
        ("max_output_tokens", 0, "at least 1"),
        ("max_turns", 0, "a whole number of at least 1"),
        ("max_turns", True, "a whole number of at least 1"),
        ("max_turns", 2.0, "a whole number of at least 1"),
        ("timeout_seconds", 0, "above 0"),
        ("idle_timeout_seconds", float("inf"), "above 0"),
        ("budget", {"tokens": 5}, "unknown field 'tokens'"),
        ("budget", {"spawns": -1}, "at least 0"),
        ("budget", {"tool_calls": 1.5}, "whole number"),
        ("budget", 7, "an object"),
        ("auto_approved", "true", "true or false"),
        ("visibility", "hidden", "one of user-facing, internal"),
        ("output_schema", {"type": "strnig"}, "no schema"),
        ("output_schema", [1], "an object"),
        ("gc", {"type": "hybrid", "threshold_percent": 0}, "'threshold_percent' must be"),
        ("gc", 7, "an object or the name of a strategy"),
        ("icon", ["a", "b"], "exactly three"),
        ("icon", ["a", "b", "c\nd"], "entry 3"),
        ("allow_agents", "*", "a list of names"),
        ("max_children", -1, "at least 0"),
    ],
)
def test_a_wrong_value_is_refused_by_profile_field_and_expectation(field: str, value: Any, expected: str) -> None:
    given: dict[str, Any] = {"name": "helper", field: value}
    with pytest.raises(ConfigError) as caught:
        SubagentProfile(**given)
    text = str(caught.value)
    assert f"'{field}'" in text
    assert expected in text
    assert "\n" not in text
    assert field == "name" or "profile 'helper'" in text


def test_several_wrong_values_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"'plugins'.*'max_turns'"):
        SubagentProfile(name="x", plugins="cli", max_turns=0)


def test_endless_nesting_is_refused() -> None:
    nested: dict[str, Any] = {}
    nested["again"] = nested
    with pytest.raises(ConfigError, match="nested deeper"):
        SubagentProfile(name="x", plugin_configs={"cli": nested})


def test_a_profile_survives_pickle_replace_and_hash() -> None:
    profile = SubagentProfile(
        name="x", plugins=["cli"], gc="hybrid", budget={"spawns": 2}, output_schema={"type": "object"}
    )
    assert pickle.loads(pickle.dumps(profile)) == profile
    assert dataclasses.replace(profile, max_turns=3).plugins == ("cli",)
    assert len({profile, dataclasses.replace(profile)}) == 1


def test_as_dict_is_json_and_makes_the_same_profile_again() -> None:
    profile = SubagentProfile(
        name="x", plugins=["cli"], tools=[], gc="hybrid", budget={"cost_usd": 0.25}, plugin_configs={"cli": {"a": [1]}}
    )
    written = json.loads(json.dumps(profile.as_dict()))
    del written["source"]
    assert profile_from("x", written) == profile


def test_the_summary_names_model_and_provider_only_where_set() -> None:
    source = Source("user", "/somewhere/x.yaml")
    assert SubagentProfile(name="x", plugins=["cli"], source=source).summary() == {
        "name": "x",
        "description": "",
        "plugins": ["cli"],
        "max_turns": 10,
        "auto_approved": False,
        "source": "user",
    }
    chosen = SubagentProfile(name="x", model="m", provider="script").summary()
    assert (chosen["model"], chosen["provider"]) == ("m", "script")


def test_a_mapping_in_code_becomes_a_profile() -> None:
    profile = profile_from("code_assistant", {"description": "Analyses code", "plugins": ["cli"], "tools": None})
    assert (profile.name, profile.plugins, profile.source.kind) == ("code_assistant", ("cli",), "code")


def test_a_mapping_in_code_has_one_name() -> None:
    assert profile_from("x", {"name": "x"}).name == "x"
    with pytest.raises(ConfigError, match="'name' says 'y'"):
        profile_from("x", {"name": "y"})


def test_a_mapping_in_code_with_mistakes_names_them_all() -> None:
    with pytest.raises(ConfigError) as caught:
        profile_from("helper", {"plugin": ["cli"], "max_turns": 0})
    assert str(caught.value) == (
        "profile 'helper': unknown field 'plugin'. Did you mean 'plugins'?; "
        "'max_turns' must be a whole number of at least 1, not 0"
    )
