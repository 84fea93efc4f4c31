"""A server's input schema in the form that our validator and all providers take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import ConfigError


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as JSON Schema 2020-12 of type object; ConfigError if it points outside itself."""
    found = _modern(schema)
    assert isinstance(found, dict)
    found.pop("$schema", None)
    if found.setdefault("type", "object") != "object":
        raise ConfigError(f"its input schema has type {found['type']!r}, expected 'object'")
    if not isinstance(found.setdefault("properties", {}), dict):
        raise ConfigError("its input schema has 'properties' that are not an object")
    return found


def _modern(node: Any) -> Any:
    """Rewrite tuples of older drafts, and refuse references that would be fetched from elsewhere."""
    if isinstance(node, list):
        return [_modern(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    new = {key: _modern(value) for key, value in node.items()}
    for key in ("$ref", "$dynamicRef"):
        if isinstance(target := new.get(key), str) and not target.startswith("#"):
            raise ConfigError(f"its input schema refers to '{target[:80]}', which is outside the schema")
    if isinstance(new.get("items"), list):
        new["prefixItems"] = new.pop("items")
        if "additionalItems" in new:
            new["items"] = new.pop("additionalItems")
    return new
