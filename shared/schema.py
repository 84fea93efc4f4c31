"""Compiled JSON Schema checks with errors a model can act on.

`jsonschema_rs` answers the common case (the value is fine) in under a microsecond; only for a
value that does not fit is `jsonschema` loaded to say where and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema_rs

from shared.errors import ConfigError, unknown_name
from shared.schema_size import is_bearable


class Validator:
    """One JSON Schema, compiled once."""

    __slots__ = ("_compiled", "schema")

    def __init__(self, schema: Mapping[str, Any], *, what: str = "schema") -> None:
        self.schema = schema
        if not is_bearable(schema):
            raise ConfigError(f"{what} is too entangled: its references multiply until no value could be checked")
        try:
            self._compiled = jsonschema_rs.Draft202012Validator(dict(schema), retriever=_refuse)
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
        return list(dict.fromkeys(sentence for _, sentence in self.located(value)))  # one missing field comes per field

    def located(self, value: Any) -> list[tuple[tuple[str | int, ...], str]]:
        """What does not fit: the way to it, and a sentence."""
        if self.is_valid(value):
            return []
        try:
            located = self._told_by_the_compiled(value) if self._names_by_pattern() else self._explained(value)
        except Exception:  # a pattern that only the compiled check can read, or a value nested too deeply
            located = []
        return located or [((), f"expected a value that fits {_clipped(str(dict(self.schema)), 300)}")]

    def _explained(self, value: Any) -> list[tuple[tuple[str | int, ...], str]]:
        found = _explaining()(dict(self.schema)).iter_errors(value)
        ordered = sorted(found, key=lambda error: [str(step) for step in error.path])
        return [(tuple(error.absolute_path), _sentence(error)) for error in ordered]

    def _names_by_pattern(self) -> bool:
        return "patternProperties" in str(self.schema)

    def _told_by_the_compiled(self, value: Any) -> list[tuple[tuple[str | int, ...], str]]:
        return [(tuple(error.instance_path), error.message) for error in self._compiled.iter_errors(value)]


@cache
def _explaining() -> Any:
    """The slow check that says why, with patterns left to the compiled one.

    A schema may come from anywhere, and so may the text: Python's own expressions can be made to search for years, and
    no other thread runs meanwhile.
    """
    import jsonschema

    def matches(validator: Any, pattern: str, text: Any, schema: Any) -> Iterator[Any]:
        if isinstance(text, str) and not jsonschema_rs.is_valid({"pattern": pattern}, text):
            yield jsonschema.ValidationError(f"{text!r} does not match {pattern!r}")

    extend: Any = jsonschema.validators.extend  # which has no types
    return extend(jsonschema.Draft202012Validator, {"pattern": matches})


def _refuse(uri: str) -> Any:
    """A schema may come from anywhere: checking it must not open files or connections."""
    raise ValueError(f"the schema refers to '{uri}', which is outside of it")


def _sentence(error: Any) -> str:
    """One validation error in words: the field, what was expected, what came."""
    where = ".".join(str(step) for step in error.absolute_path) or "arguments"
    match error.validator:
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            lead = "" if where == "arguments" else f"{where}."
            fields = ", ".join(f"'{lead}{name}'" for name in missing)
            return f"missing required field {fields}: expected {_expected_of(error.schema, missing)}"
        case "anyOf" | "oneOf" if error.context:
            return _alternatives(error, where)
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
            return f"'{where}': {_clipped(error.message, 300)}"


def _alternatives(error: Any, where: str) -> str:
    """Of several permitted shapes: what is wrong inside the one that was meant, or which there are."""
    depth = len(error.absolute_path)
    inner = [
        each for each in error.context if len(each.absolute_path) > depth or each.validator not in ("type", "enum")
    ]
    if inner:
        return "; ".join(dict.fromkeys(_sentence(each) for each in inner))
    kinds = [_kind(option) for option in error.validator_value]
    return f"'{where}': expected {' or '.join(kinds)}, got {_shown(error.instance)}"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(repr, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    return _type_name(schema.get("type", "a value"))


def _expected_of(schema: Mapping[str, Any], names: list[str]) -> str:
    properties = schema.get("properties", {})
    return ", ".join(_kind(properties.get(name, {})) for name in names)


def _type_name(kind: Any) -> str:
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _shown(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    kind = names.get(type(value), type(value).__name__)
    return f"{kind} {_clipped(repr(value), 60)}"


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
