"""Replacement: put one text in the place of another, whatever the line ends of the file."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from shared.errors import ToolError
from shared.plugins.file_edit.nearest import nearest_hint


@dataclass(frozen=True)
class Replacement:
    """A text after an edit, and the lines (from 1) where it was changed."""

    text: str
    lines: tuple[int, ...]


def replace_text(text: str, old: str, new: str, *, replace_all: bool, shown: str) -> Replacement:
    """Replace `old` by `new`; it must occur exactly once, unless all are meant.

    Models write `\\n`: both sides are compared without carriage returns, and what is put in gets
    the line ends of what it replaces.
    """
    old, new = _plain(old), _plain(new)
    if not old:
        raise ToolError("old_text is empty: give the exact text to replace, or use write_file for a new file")
    if old == new:
        raise ToolError("old_text and new_text are the same: nothing would change")
    plain = _plain(text)
    starts = _occurrences(plain, old)
    if not starts:
        raise ToolError(f"old_text was not found in '{shown}'. {nearest_hint(plain, old)}")
    lines = _line_numbers(plain, starts)
    if len(starts) > 1 and not replace_all:
        listed = ", ".join(map(str, lines[:10])) + (", ..." if len(lines) > 10 else "")
        raise ToolError(
            f"old_text occurs {len(starts)} times in '{shown}' (lines {listed}): "
            "add surrounding lines to make it unique, or set replace_all"
        )
    return Replacement(_rebuilt(text, plain, old, new, starts), tuple(lines))


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _occurrences(text: str, old: str) -> list[int]:
    found = []
    at = text.find(old)
    while at >= 0:
        found.append(at)
        at = text.find(old, at + len(old))
    return found


def _line_numbers(plain: str, starts: list[int]) -> list[int]:
    numbers, line, seen = [], 1, 0
    for start in starts:
        line += plain.count("\n", seen, start)
        seen = start
        numbers.append(line)
    return numbers


def _rebuilt(text: str, plain: str, old: str, new: str, starts: list[int]) -> str:
    if len(text) == len(plain):
        return _joined(plain, [(start, start + len(old)) for start in starts], [new] * len(starts))
    breaks = _break_positions(text)
    windows_file = len(breaks) * 2 >= plain.count("\n")
    spans, puts = [], []
    for start in starts:
        end = start + len(old)
        # A position in the plain text lies further along in the real one by the `\r` before it.
        first, last = bisect_left(breaks, start), bisect_left(breaks, end)
        spans.append((start + first, end + last))
        windows = last > first if "\n" in old else windows_file
        puts.append(new.replace("\n", "\r\n") if windows else new)
    return _joined(text, spans, puts)


def _break_positions(text: str) -> list[int]:
    """Where, in the text without carriage returns, each line break that had one is."""
    found: list[int] = []
    at = text.find("\r\n")
    while at >= 0:
        found.append(at - len(found))
        at = text.find("\r\n", at + 2)
    return found


def _joined(text: str, spans: list[tuple[int, int]], puts: list[str]) -> str:
    pieces, at = [], 0
    for (start, end), put in zip(spans, puts, strict=True):
        pieces += [text[at:start], put]
        at = end
    return "".join([*pieces, text[at:]])
