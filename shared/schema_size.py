"""How large a JSON Schema becomes when its references are followed: a small one can be made to take years to check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 1_000_000  # parts; checking them takes a few hundredths of a second


def is_bearable(schema: Mapping[str, Any]) -> bool:
    """Whether a schema stays small with every reference replaced by what it stands for; circles count once."""
    if "$ref" not in str(schema):
        return True
    try:
        return _size(schema, schema, {}, set()) <= MOST
    except RecursionError:
        return False


def _size(node: Any, root: Mapping[str, Any], known: dict[int, int], entered: set[int]) -> int:
    if not isinstance(node, dict | list):
        return 0
    if (key := id(node)) in known or key in entered:
        return known.get(key, 0)
    entered.add(key)
    inner = node.values() if isinstance(node, dict) else node
    found = 1 + sum(_size(each, root, known, entered) for each in inner)
    if isinstance(node, dict) and isinstance(target := node.get("$ref"), str):
        found += _size(_target(root, target), root, known, entered)
    entered.discard(key)
    known[key] = found
    return found


def _target(root: Mapping[str, Any], reference: str) -> Any:
    """The part that a reference within the schema names; None if there is none, which is not for us to say."""
    found: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(name)] if name.isdecimal() and int(name) < len(found) else None
        else:
            found = found.get(name) if isinstance(found, dict) else None
    return found
