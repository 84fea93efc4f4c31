"""The JSON Schema for editors says the same as the code."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.budget import KINDS
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_fields import EFFORTS, FIELDS, VISIBILITIES
from shared.definitions.profile_schema import profile_schema
from shared.errors import ConfigError
from shared.gc.base import GCConfig

SCHEMA = profile_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NOT_IN_FILES = ("source", "unmapped_tools", "unmapped_denied")  # what the reader adds


def _default(entry: Any) -> Any:
    if entry.default is not MISSING:
        return entry.default
    return entry.default_factory() if entry.default_factory is not MISSING else MISSING


def test_it_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_fields_of_schema_class_and_checks_are_the_same_and_in_one_order() -> None:
    of_class = [entry.name for entry in fields(SubagentProfile) if entry.name not in NOT_IN_FILES]
    assert list(FIELDS) == of_class
    assert list(SCHEMA["properties"]) == ["$schema", *of_class]
    assert list(SCHEMA["$defs"]["gc"]["properties"]) == [entry.name for entry in fields(GCConfig)]
    assert list(SCHEMA["properties"]["budget"]["properties"]) == list(KINDS)


def test_every_field_is_described() -> None:
    assert all(entry["description"].endswith(".") for entry in SCHEMA["properties"].values())
    assert all(entry["description"].endswith(".") for entry in SCHEMA["$defs"]["gc"]["properties"].values())


def test_defaults_are_the_same() -> None:
    for entry in fields(SubagentProfile):
        shown = SCHEMA["properties"].get(entry.name, {})
        if "default" not in shown:
            assert entry.name in ("name", "tools", *NOT_IN_FILES)
            continue
        default = _default(entry)
        assert shown["default"] == (list(default) if isinstance(default, tuple) else default), entry.name
    for entry in fields(GCConfig):
        assert SCHEMA["$defs"]["gc"]["properties"][entry.name]["default"] == _default(entry)


def test_choices_are_the_same() -> None:
    assert SCHEMA["properties"]["reasoning_effort"]["enum"] == [*EFFORTS, None]
    assert SCHEMA["properties"]["visibility"]["enum"] == list(VISIBILITIES)


SAMPLES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, 1.5, 0.25, 100, 101, "", " ", "a", "inherit", "a b", "a/b", "..", ".", "a\nb"),
    *("low", "internal", "user-facing", "x" * 129, [], ["a"], ["a", "b", "c"], ["a", "b", "c\nd"], [1], [""], [[]], {}),
    *({"total_tokens": 5}, {"total_tokens": 1.5}, {"cost_usd": 1.5}, {"cost_usd": -1}, {"spawns": None}, {"a": {}}),
    *({"a": 1}, {"type": "hybrid"}, {"type": ""}, {"threshold_percent": 0}, {"max_turns": 0}, {"max_turns": None}),
    *({"plugin_config": []}, {"notify_on_gc": "yes"}, {"preserve_recent_turns": 0}, {"summarize_middle_turns": 0}),
]
#: Where a file is read more strictly, or the code more leniently, than a schema can say.
DIFFERENT = {
    ("tools", None),  # None in code is "not given"
    ("disallowed_tools", None),
}


@pytest.mark.parametrize("name", [entry for entry in FIELDS if entry != "output_schema"])
def test_schema_and_constructor_agree_on_every_field(name: str) -> None:
    for value in SAMPLES:
        if isinstance(value, str | None) and (name, value) in DIFFERENT:
            continue
        assert VALIDATOR.is_valid({name: value}) == _accepts(name, value), (name, value)


@given(st.text(max_size=5))
def test_no_name_that_the_schema_refuses_is_accepted(name: str) -> None:
    if _accepts("name", name):
        assert VALIDATOR.is_valid({"name": name}), name


def _accepts(name: str, value: Any) -> bool:
    given: dict[str, Any] = {"name": "x", name: value}
    try:
        SubagentProfile(**given)
    except ConfigError:
        return False
    return True
