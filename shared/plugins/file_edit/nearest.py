"""Where in a file the text is that an edit probably meant."""

from __future__ import annotations

from difflib import get_close_matches

MAX_LINES = 20_000
MAX_COMPARED = 2_000
SHOWN_LINES = 12


def nearest_hint(text: str, wanted: str) -> str:
    """A sentence with the most similar lines of the file, or what to do when nothing is similar."""
    lines, asked = text.split("\n")[:MAX_LINES], wanted.strip("\n").split("\n")
    start = _best_window([line.strip() for line in lines], [line.strip() for line in asked])
    if start is None:
        return "Nothing similar is in the file: read it again and copy the text exactly."
    window = lines[start : start + len(asked)]
    same = [line.strip() for line in window] == [line.strip() for line in asked]
    why = "only the white space differs" if same else "the most similar part is"
    shown = "\n".join(f"{start + n + 1:>6}\t{line[:200]}" for n, line in enumerate(window[:SHOWN_LINES]))
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
    candidates = [candidate[:200] for candidate in lines[:MAX_COMPARED]]
    close = get_close_matches(line[:200], candidates, n=1, cutoff=0.6)
    return max(0, candidates.index(close[0]) - offset) if close else None
