"""Tool lists as people write them: a YAML list, or names in one text, each perhaps with a pattern in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shared.definitions.profile_fields import Unfit, shown

_ITEM = re.compile(r"([A-Za-z0-9_.*/:-]+)(?:\((.*)\))?\Z", re.DOTALL)


@dataclass(frozen=True)
class ToolEntry:
    """One entry: the text as written, and the name and pattern in it; no name if it is no entry at all."""

    text: str
    name: str | None
    pattern: str | None = None


def tool_entries(value: Any) -> list[ToolEntry]:
    """The entries of a list or a text; raises Unfit for any other shape."""
    if isinstance(value, str):
        return [_entry(item) for item in _split(value)]
    if not isinstance(value, list | tuple):
        raise Unfit(
            f"must be a list of tools or names with commas between, not {shown(value)}", code="tools-unreadable"
        )
    found: list[ToolEntry] = []
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item.strip():
            text = f"must hold names of tools only, but entry {index + 1} is {shown(item)}"
            raise Unfit(text, inside=(index,), code="tools-unreadable")
        found += [_entry(each) for each in _split(item)]
    return found


def _entry(text: str) -> ToolEntry:
    if not text.isprintable():
        raise Unfit(f"has a name with characters that cannot be seen: {shown(text)}", code="tools-unreadable")
    if text[0] in "()" or text.count("(") != text.count(
        ")"
    ):  # a pattern that has lost its tool, which would then be given whole
        raise Unfit(f"has a piece of a pattern without its tool: {shown(text)}", code="tools-unreadable")
    found = _ITEM.match(text)
    return ToolEntry(text, found[1], found[2]) if found is not None else ToolEntry(text, None)


def _split(text: str) -> list[str]:
    """Cut at commas outside brackets if there are any, else at spaces."""
    by_comma = [part.strip() for part in _cut(text, ",")]
    parts = by_comma if len(by_comma) > 1 else _cut(" ".join(text.split()), " ")
    return [part for part in parts if part]


def _cut(text: str, separator: str) -> Iterator[str]:
    depth = start = 0
    for index, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif char == separator and not depth:
            yield text[start:index]
            start = index + 1
    yield text[start:]
