"""JSON for people: short objects and lists on one line."""

from __future__ import annotations

import json
from typing import Any

WIDTH = 125


def folded(value: Any, *, indent: str = "") -> str:
    """A value as JSON."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + len(indent) <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"{deeper}{folded(each, indent=deeper)}" for each in value) + f"\n{indent}]"
    entries = (f"{deeper}{json.dumps(key)}: {folded(each, indent=deeper)}" for key, each in value.items())
    return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
