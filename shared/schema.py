"""Compiled JSON Schema checks with errors a model can act on.

`jsonschema_rs` answers the common case (the value is fine) in under a microsecond; only for a
value that does not fit is `jsonschema` loaded to say where and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from shared.errors import ConfigError, unknown_name


class Validator:
    """One JSON Schema, compiled once."""

    __slots__ = ("_compiled", "schema")

    def __init__(self, schema: Mapping[str, Any], *, what: str = "schema") -> None:
        self.schema = schema
        try:
            self._compiled = jsonschema_rs.Draft202012Validator(dict(schema))
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
            raise ConfigError(f"{what} is not a valid JSON Schema: {str(error).splitlines()[0]}") from error

    def is_valid(self, value: Any) -> bool:
        """Whether the value fits."""
        try:
            return self._compiled.is_valid(value)
        except ValueError:  # a value JSON cannot hold, such as a set or a NaN key
            return False

    def problems(self, value: Any) -> list[str]:
        """What does not fit, one sentence each; empty when all is well."""
        if self.is_valid(value):
            return []
        import jsonschema

        validator = jsonschema.Draft202012Validator(dict(self.schema))
        found = sorted(validator.iter_errors(value), key=lambda error: [str(step) for step in error.path])
        return [_sentence(error) for error in found] or ["the value cannot be written as JSON"]


def _sentence(error: Any) -> str:
    """One validation error in words: the field, what was expected, what came."""
    where = ".".join(str(step) for step in error.absolute_path) or "arguments"
    match error.validator:
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            lead = "" if where == "arguments" else f"{where}."
            fields = ", ".join(f"'{lead}{name}'" for name in missing)
            return f"missing required field {fields}: expected {_expected_of(error.schema, missing)}"
        case "additionalProperties":
            known = list(error.schema.get("properties", {}))
            extra = [name for name in error.instance if name not in known]
            return "; ".join(f"{where}: {unknown_name('field', name, known)}" for name in extra)
        case "type":
            return f"'{where}': expected {_type_name(error.validator_value)}, got {_shown(error.instance)}"
        case "enum":
            choices = ", ".join(map(repr, error.validator_value))
            return f"'{where}': expected one of {choices}, got {_shown(error.instance)}"
        case _:
            return f"'{where}': {error.message}"


def _expected_of(schema: Mapping[str, Any], names: list[str]) -> str:
    properties = schema.get("properties", {})
    return ", ".join(_type_name(properties.get(name, {}).get("type", "a value")) for name in names)


def _type_name(kind: Any) -> str:
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _shown(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    kind = names.get(type(value), type(value).__name__)
    text = repr(value)
    return f"{kind} {text if len(text) <= 60 else text[:57] + '...'}"
