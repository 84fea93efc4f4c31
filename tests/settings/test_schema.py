"""The JSON Schema for editors says the same as the code."""

from __future__ import annotations

from dataclasses import fields

import jsonschema

from shared.gc.base import GCConfig
from shared.governor import RetryPolicy
from shared.providers.base import ProviderConfig
from shared.settings.check import settings_schema
from shared.settings.keys import KEYS
from shared.subagents.config import SubagentConfig

SCHEMA = settings_schema()
PROPERTIES = {key: value for key, value in SCHEMA["properties"].items() if key != "$schema"}


def test_it_is_a_valid_schema_and_every_setting_is_described() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert all(entry["description"].endswith(".") for entry in SCHEMA["properties"].values())


def test_it_has_the_settings_of_the_code_with_their_defaults() -> None:
    assert list(PROPERTIES) == list(KEYS)
    for key, entry in KEYS.items():
        default = list(entry.default) if isinstance(entry.default, tuple) else entry.default
        assert PROPERTIES[key].get("default") == default, key


def test_every_option_of_the_subagent_plugin_is_a_setting_with_the_same_default() -> None:
    plain = SubagentConfig()
    for entry in fields(SubagentConfig):
        assert entry.name in KEYS, f"{entry.name} cannot be written into a settings file"
        if entry.name in ("project", "location"):  # of all providers, not of subagents alone
            continue
        assert KEYS[entry.name].subagent
        default = getattr(plain, entry.name)
        if default is not None:
            assert (list(default) if isinstance(default, list) else default) == PROPERTIES[entry.name]["default"]


def test_nested_objects_have_the_fields_of_what_they_become() -> None:
    assert list(SCHEMA["$defs"]["gc"]["properties"]) == [entry.name for entry in fields(GCConfig)]
    assert {name: entry["default"] for name, entry in PROPERTIES["retry"]["properties"].items()} == vars(RetryPolicy())
    assert set(SCHEMA["$defs"]["connection"]["properties"]) == {entry.name for entry in fields(ProviderConfig)}
