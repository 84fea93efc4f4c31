"""JSON Schemas as tables for people: the parameters of tools, the fields of files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]
_KINDS = {"integer": "whole number", "array": "list", "string": "text", "boolean": "true or false"}
_NOTHING = (None, "", [], {})


def fields_table(path: Path) -> str:
    """The fields of a kind of file, from its schema."""
    whole = json.loads(path.read_text())
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for name, given in _resolved(whole["properties"], whole.get("$defs", {})).items():
        if name != "$schema":
            rows += parameter_rows(name, given)
    return "\n".join(rows)


def parameter_rows(name: str, schema: Schema, *, required: bool = False) -> Iterator[str]:
    """A parameter, and beneath it the fields of the object that it may be."""
    default = "" if schema.get("default") in _NOTHING else f"Default: `{shown(schema['default'])}`."
    described = f"{schema['description'].rstrip('.')}." if "description" in schema else ""
    yield f"| `{name}`{' *' if required else ''} | {_type(schema)} | {f'{described} {default}'.strip()} |"
    for choice in (schema, *schema.get("anyOf", ())):
        for field, inner in choice.get("properties", {}).items():
            yield from parameter_rows(f"{name}.{field}", inner)


def shown(value: Any) -> str:
    """A value as it would be written."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _resolved(value: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema with what it refers to in its place."""
    if isinstance(value, list):
        return [_resolved(each, definitions) for each in value]
    if not isinstance(value, dict):
        return value
    named = definitions[value["$ref"].rpartition("/")[2]] if "$ref" in value else {}
    return {key: _resolved(each, definitions) for key, each in {**named, **value}.items() if key != "$ref"}


def _type(schema: Schema) -> str:
    if "const" in schema:
        return f"`{shown(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    given = schema.get("type", "any JSON value")
    named = [each for each in ([given] if isinstance(given, str) else given) if each != "null"]
    kinds = " or ".join(_KINDS.get(each, each) for each in named)
    return kinds + (f" of {_type(schema['items'])}" if "items" in schema else "") + _range(schema)


def _range(schema: Schema) -> str:
    if (least := schema.get("minimum")) is not None:
        most = schema.get("maximum")
        return f", {least} to {most}" if most is not None else f", {least} or more"
    if (above := schema.get("exclusiveMinimum")) is not None:
        return f", above {above}"
    return ""
