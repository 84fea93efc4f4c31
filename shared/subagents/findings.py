"""Findings: what an agent found, read tolerantly from the block at the end of its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_FINDINGS = 500
#: What an agent is told whose profile has `emit_findings`.
REQUEST = """End your answer with what you found as a fenced block, one object for each finding, [] if there is nothing:
```findings
[{"title": "what is the matter", "severity": "high", "file": "path/of/the/file.py", "line": 12, "detail": "why"}]
```
Only "title" is required."""
_MARKED = re.compile(
    r"^[ \t]*```[ \t]*findings\b[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE
)
_FENCED = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_TITLES = ("title", "message", "summary", "name", "description")


@dataclass(frozen=True)
class Findings:
    """The entries, each an object with a title, and what could not be read."""

    entries: tuple[dict[str, Any], ...] = ()
    note: str | None = None


def read_findings(text: str, structured: Any = None) -> Findings:
    """The findings in an answer, or in the value it was read as; none where there is no block that holds any."""
    if isinstance(structured, dict) and isinstance(structured.get("findings"), list):
        return _taken(structured["findings"])
    unreadable = False
    for block, marked in _blocks(text):
        found = _list_in(block, marked=marked)
        if found is not None:
            return _taken(found)
        unreadable = unreadable or marked
    return Findings((), "its findings could not be read: the block is in the response" if unreadable else None)


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Where findings may stand, the likeliest first: the last block counts, earlier ones may be drafts."""
    yield from ((found[1], True) for found in reversed(list(_MARKED.finditer(text))))
    yield from ((found[1], False) for found in reversed(list(_FENCED.finditer(text))))
    yield text, False


def _list_in(block: str, *, marked: bool) -> list[Any] | None:
    """The list in a block; one that is not marked as findings must say so itself."""
    if marked and not block.strip():
        return []
    try:
        value = json.loads(block)
    except (ValueError, RecursionError):
        return _by_lines(block) if marked else None
    if isinstance(value, dict):
        inner = value.get("findings")
        return inner if isinstance(inner, list) else [value] if marked else None
    return value if isinstance(value, list) and marked else None


def _by_lines(block: str) -> list[Any] | None:
    """One object a line, or points of a list, where that is what was written."""
    lines = [line.strip().rstrip(",") for line in block.splitlines() if line.strip() not in ("", "[", "]")]
    if lines and all(line.startswith(("- ", "* ")) for line in lines):
        return [line[2:] for line in lines]
    try:
        found = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return None
    return found if all(isinstance(each, dict) for each in found) else None


def _taken(values: list[Any]) -> Findings:
    entries = [entry for value in values[:MAX_FINDINGS] if (entry := _entry(value)) is not None]
    lost = len(values) - len(entries)
    return Findings(tuple(entries), f"{lost} of its findings could not be read, or were too many" if lost else None)


def _entry(value: Any) -> dict[str, Any] | None:
    """One finding, its title first; None for what is none."""
    if isinstance(value, str):
        value = {"title": value}
    if not isinstance(value, dict):
        return None
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # no half characters, which no wire could carry
    except (ValueError, RecursionError):
        return None
    title = next((text for key in _TITLES if isinstance(text := value.get(key), str) and text.strip()), None)
    rest = {key: each for key, each in value.items() if key != "title"}
    return {"title": title.strip(), **rest} if title is not None else None
