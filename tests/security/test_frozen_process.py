"""A pattern that somebody else wrote must not freeze the process: Python searches it without letting others run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.subagents import staged

from shared.errors import ConfigError
from shared.schema import Validator

EVIL = "^(a+)+$"
STUCK = "a" * 60 + "!"  # on which Python's own expressions would search for thousands of years


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"type": "string", "pattern": EVIL}}}, {"a": STUCK}),
        ({"propertyNames": {"pattern": EVIL}}, {STUCK: 1}),
        ({"patternProperties": {EVIL: {"type": "string"}}, "additionalProperties": False}, {STUCK: 1}),
        ({"patternProperties": {EVIL: {"type": "string"}}, "unevaluatedProperties": False}, {STUCK: 1}),
        ({"properties": {"a": {"anyOf": [{"pattern": EVIL}, {"type": "integer"}]}}}, {"a": STUCK}),
    ],
)
def test_a_schema_is_checked_in_no_time(schema: dict[str, Any], value: Any) -> None:
    [problem] = Validator({"type": "object", **schema}).problems(value)
    assert STUCK in problem


def test_patterns_still_say_what_is_wrong() -> None:
    schema = {"type": "object", "properties": {"id": {"pattern": "^[a-z]+$"}}, "additionalProperties": False}
    assert Validator(schema).problems({"id": "A1"}) == ["'id': 'A1' does not match '^[a-z]+$'"]
    assert Validator(schema).problems({"idd": "x"})[0].startswith("arguments: unknown field 'idd'")
    assert Validator(schema).problems({"id": 3}) == [], "a pattern is about texts only"


def test_a_model_cannot_stop_everything_with_an_output_schema() -> None:
    shape = {"type": "object", "properties": {"a": {"type": "string", "pattern": EVIL}}, "required": ["a"]}
    with staged(json.dumps({"a": STUCK})) as stage:
        answer = stage.spawn(inline_config={"output_schema": shape})
        assert (answer["status"], answer["reason"]) == ("partial", "schema")


def entangled(levels: int, kind: str = "anyOf") -> dict[str, Any]:
    """A schema in which each of some parts stands for the next one twice."""
    twice = {f"p{n}": {kind: [{"$ref": f"#/$defs/p{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/p0", "$defs": {**twice, f"p{levels}": {"type": "string"}}}


@pytest.mark.parametrize("kind", ["anyOf", "allOf", "oneOf"])
@pytest.mark.parametrize("levels", [40, 200])
def test_references_that_multiply_are_refused(levels: int, kind: str) -> None:
    with pytest.raises(ConfigError, match="entangled"):
        Validator(entangled(levels, kind))


def test_references_that_do_not_are_followed() -> None:
    assert Validator(entangled(8)).is_valid("x")
    tree = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "many": {"$ref": "#"}},
    }
    assert Validator(tree).is_valid({"next": {"next": None}, "many": {}})
    assert not Validator(tree).is_valid({"next": {"next": 7}})


def test_a_model_cannot_bring_an_entangled_one() -> None:
    with staged() as stage:
        answer = stage.spawn(inline_config={"output_schema": entangled(40)})
        assert answer["success"] is False
        assert "entangled" in answer["error"]
