"""The unified diff of a planned change, bounded in work and length."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from shared.plugin import PermissionDisplayInfo
from shared.plugins._text import encoding_of
from shared.plugins._visible import visible, visible_line

MAX_COMPARED = 20_000
MAX_SHOWN = 400
MAX_WIDTH = 500
CONTEXT = 3


def change_display(shown: str, before: bytes | None, after: bytes | None) -> PermissionDisplayInfo:
    """What a person sees before a file is changed: what happens, and the diff."""
    verb = "Create" if before is None else "Delete" if after is None else "Change"
    old, new = _lines(before), _lines(after)
    if old is None or new is None:
        size = f"{len(before or b''):,} → {len(after or b''):,} bytes"
        return PermissionDisplayInfo(f"{verb} {visible_line(shown)}", f"binary file, {size}")
    lines = [visible(line.rstrip("\n"))[:MAX_WIDTH] for line in _diff(shown, old, new, before, after)]
    added = sum(line.startswith("+") for line in lines[2:])
    removed = sum(line.startswith("-") for line in lines[2:])
    kept = lines[:MAX_SHOWN]
    if len(lines) > MAX_SHOWN:
        kept.append(f"... {len(lines) - MAX_SHOWN:,} more lines of the diff are not shown")
    return PermissionDisplayInfo(
        summary=f"{verb} {visible_line(shown)} (+{added} -{removed} lines)",
        details="\n".join(kept),
        format_hint="diff",
        truncated=len(lines) > MAX_SHOWN,
        original_lines=len(lines),
    )


def _lines(data: bytes | None) -> list[str] | None:
    """The lines of a text, with their ends; None for binary data."""
    encoding = encoding_of(data or b"")
    if encoding is None:
        return None
    # Split at \n alone, as everywhere here: other separators would give other line numbers.
    pieces = encoding.decode(data or b"").split("\n")
    return [piece + "\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _diff(shown: str, old: list[str], new: list[str], before: bytes | None, after: bytes | None) -> Iterator[str]:
    source = "/dev/null" if before is None else f"a/{visible_line(shown)}"
    target = "/dev/null" if after is None else f"b/{visible_line(shown)}"
    if len(old) + len(new) <= MAX_COMPARED:
        yield from difflib.unified_diff(old, new, source, target, n=CONTEXT)
        return
    yield from (f"--- {source}", f"+++ {target}")
    yield from _coarse(old, new)


def _coarse(old: list[str], new: list[str]) -> Iterator[str]:
    """One hunk from the first to the last difference: linear, for files too long to compare well."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = max(0, same - CONTEXT)
    end = max(0, tail - CONTEXT)
    yield f"@@ -{start + 1},{len(old) - end - start} +{start + 1},{len(new) - end - start} @@"
    yield from (f" {line}" for line in old[start:same])
    yield from (f"-{line}" for line in old[same : len(old) - tail])
    yield from (f"+{line}" for line in new[same : len(new) - tail])
    yield from (f" {line}" for line in old[len(old) - tail : len(old) - end])
