"""Tool lists as skills write them: `Read, Grep`, `Read Grep`, `Bash(git add *)`, or a YAML list."""

from __future__ import annotations

import re
import sys
from typing import Any

_ITEM = re.compile(r"[A-Za-z0-9_.*/:-]+(?:\(.*\))?", re.DOTALL)


def tool_list(value: Any) -> tuple[str, ...] | None:
    """The tools that a field names; None if its shape cannot be read."""
    if isinstance(value, str):
        items = _split(value)
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        items = [each.strip() for each in value]
    else:
        return None
    if items is None or not all(_ITEM.fullmatch(item) for item in items):
        return None
    return tuple(map(sys.intern, dict.fromkeys(items)))  # thousands of skills name the same few tools


def _split(text: str) -> list[str] | None:
    """At commas if there are any outside of parentheses, else at spaces; None if parentheses do not match."""
    commas: list[str] = [""]
    spaces: list[str] = [""]
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return None
        for parts, separator in ((commas, char == ","), (spaces, char.isspace())):
            if separator and depth == 0:
                parts.append("")
            else:
                parts[-1] += char
    chosen = commas if len(commas) > 1 else spaces
    return None if depth else [part.strip() for part in chosen if part.strip()]
