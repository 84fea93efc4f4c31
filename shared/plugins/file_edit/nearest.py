"""Where in a file the text is that an edit probably meant."""

from __future__ import annotations

import re
from difflib import get_close_matches
from heapq import nlargest

MAX_LINES = 20_000
MAX_COMPARED = 50
LINE_CHARS = 200
SHOWN_LINES = 12
_WORD = re.compile(r"\w+")


def nearest_hint(text: str, wanted: str) -> str:
    """A sentence with the most similar lines of the file, or what to do when nothing is similar."""
    lines, asked = text.split("\n")[:MAX_LINES], wanted.strip("\n").split("\n")
    start = _best_window([line.strip() for line in lines], [line.strip() for line in asked])
    if start is None:
        return "Nothing similar is in the file: read it again and copy the text exactly."
    window = lines[start : start + len(asked)]
    same = [line.strip() for line in window] == [line.strip() for line in asked]
    why = "only the white space differs" if same else "the most similar part is"
    shown = "\n".join(f"{start + n + 1:>6}\t{line[:LINE_CHARS]}" for n, line in enumerate(window[:SHOWN_LINES]))
    return f"Copy the text exactly: {why} at line {start + 1}:\n{shown}"


def _best_window(lines: list[str], asked: list[str]) -> int | None:
    """The first line of the stretch that shares the most lines with what was asked for."""
    wanted = {line: n for n, line in reversed(list(enumerate(asked))) if line}
    votes: dict[int, int] = {}
    for number, line in enumerate(lines):
        if line in wanted:
            start = max(0, number - wanted[line])
            votes[start] = votes.get(start, 0) + 1
    if votes:
        return max(votes, key=lambda start: (votes[start], -start))
    return _similar_line(lines, asked)


def _similar_line(lines: list[str], asked: list[str]) -> int | None:
    first = next(((n, line) for n, line in enumerate(asked) if line), None)
    if first is None:
        return None
    offset, line = first
    words = set(_WORD.findall(line[:LINE_CHARS]))
    # Comparing lines is slow: only those that share most words with the one asked for are.
    shared = [(len(words & set(_WORD.findall(text[:LINE_CHARS]))), -number) for number, text in enumerate(lines)]
    likely = [-number for count, number in nlargest(MAX_COMPARED, shared) if count]
    close = get_close_matches(line[:LINE_CHARS], [lines[number][:LINE_CHARS] for number in likely], n=1, cutoff=0.6)
    found = next((number for number in likely if close and lines[number][:LINE_CHARS] == close[0]), None)
    return None if found is None else max(0, found - offset)
