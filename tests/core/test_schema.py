"""Compiled checks: what does not fit is said with the field and what was expected."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ConfigError
from shared.schema import Validator

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "role": {"type": "string", "enum": ["admin", "guest"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "home": {
            "anyOf": [
                {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]},
                {"type": "null"},
            ]
        },
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


def problems(value: Any) -> list[str]:
    return Validator(PERSON).problems(value)


def test_a_good_value_has_no_problems() -> None:
    assert problems({"name": "Ada", "age": 36, "role": "admin", "tags": ["x"], "home": {"street": "Main"}}) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"age": "old"}, ["'age'", "integer", "string 'old'"]),
        ({"age": True}, ["'age'", "integer", "boolean"]),
        ({"age": -1}, ["'age'", "minimum of 0"]),
        ({"role": "root"}, ["'role'", "'admin', 'guest'", "'root'"]),
        ({"tags": ["ok", 5]}, ["'tags.1'", "string", "int 5"]),
        ({"nmae": "x"}, ["unknown field 'nmae'", "Did you mean 'name'?"]),
        ({"home": {"street": 5}}, ["'home.street'", "string"]),
        ({"home": {}}, ["'home.street'", "missing required field"]),
        ({"home": "here"}, ["'home'", "object or null", "'here'"]),
        ({"tags": None}, ["'tags'", "array", "null"]),
    ],
)
def test_the_field_and_the_expectation_are_named(change: dict[str, Any], expected: list[str]) -> None:
    found = "; ".join(problems({"name": "Ada", "age": 36, **change}))
    for piece in expected:
        assert piece in found


def test_missing_fields_are_named_once() -> None:
    assert problems({}) == ["missing required field 'name', 'age': expected string, integer"]


def test_something_else_than_an_object_is_refused() -> None:
    assert problems(["a"]) == ["'arguments': expected object, got array ['a']"]


def test_a_value_is_shown_briefly_however_long_it_is() -> None:
    schema = {"type": "object", "properties": {"code": {"type": "string", "maxLength": 5, "pattern": "^a"}}}
    for sentence in Validator(schema).problems({"code": "b" * 100_000}):
        assert len(sentence) < 400


def test_values_that_json_cannot_hold_are_refused_in_words() -> None:
    assert not Validator({"type": "object"}).is_valid({1: 2})
    assert Validator({"type": "object"}).problems({1: 2})


def test_a_pattern_only_the_compiled_check_understands_is_still_explained() -> None:
    schema = {"type": "object", "properties": {"letter": {"type": "string", "pattern": r"^\p{Lu}$"}}}
    assert Validator(schema).is_valid({"letter": "Ä"})
    assert Validator(schema).problems({"letter": "ä"})


def test_a_broken_schema_names_its_owner() -> None:
    with pytest.raises(ConfigError, match="tool 'search' is not a valid JSON Schema"):
        Validator({"type": "objekt"}, what="tool 'search'")


def test_references_within_the_schema_work() -> None:
    check = Validator({"$ref": "#/$defs/name", "$defs": {"name": {"type": "string"}}})
    assert check.is_valid("x")
    assert check.problems(1)


def test_a_schema_cannot_make_us_fetch_anything(tmp_path: Path) -> None:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "string"}')

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    secret = tmp_path / "secret.json"
    secret.write_text('{"const": "password"}')
    try:
        for address in (f"http://127.0.0.1:{server.server_port}/schema", secret.as_uri()):
            with pytest.raises(ConfigError, match="outside of it"):
                Validator({"type": "object", "properties": {"a": {"$ref": address}}})
    finally:
        server.shutdown()
        server.server_close()
    assert asked == []
