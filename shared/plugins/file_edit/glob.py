"""Glob: file name patterns with `**` and `{a,b}`, matched in time linear in the path."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from itertools import islice

from shared.errors import ToolError

MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*)\}")


class Glob:
    """A pattern over paths relative to a folder; one without a slash matches names at any depth."""

    def __init__(self, pattern: str) -> None:
        if not pattern.strip("/ "):
            raise ToolError("the pattern is empty: use for example '*.py' or 'src/**/*.ts'")
        self._alternatives = [_segments(one) for one in _expanded(pattern)]

    def matches(self, path: str) -> bool:
        """Whether a path, with slashes, fits."""
        names = path.split("/")
        return any(_fits(segments, names) for segments in self._alternatives)


Segment = Callable[[str], object] | None  # None stands for `**`


def _expanded(pattern: str) -> list[str]:
    """All patterns that braces stand for."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ToolError(f"the pattern has more than {MAX_ALTERNATIVES} alternatives: use fewer braces")
        one = waiting.pop(0)
        braces = _BRACES.search(one)
        if braces is None or "," not in braces[1]:
            done.append(one)
            continue
        options = islice(braces[1].split(","), MAX_ALTERNATIVES + 1)
        waiting += [one[: braces.start()] + option + one[braces.end() :] for option in options]
    return done


def _segments(pattern: str) -> list[Segment]:
    names = [name for name in pattern.removeprefix("./").split("/") if name and name != "."]
    if "/" not in pattern.strip("/"):
        names.insert(0, "**")
    # Neighbouring `**` mean the same as one, and would only cost time.
    kept = [name for n, name in enumerate(names) if name != "**" or n == 0 or names[n - 1] != "**"]
    return [None if name == "**" else re.compile(fnmatch.translate(name)).match for name in kept]


def _fits(segments: Sequence[Segment], names: Sequence[str]) -> bool:
    """Match segment by segment, keeping the set of positions reachable in the path."""
    reachable = {0}
    for n, segment in enumerate(segments):
        if segment is None:
            last = n == len(segments) - 1
            reachable = set(range(min(reachable) + last, len(names) + 1)) if reachable else set()
        else:
            reachable = {at + 1 for at in reachable if at < len(names) and segment(names[at])}
        if not reachable:
            return False
    return len(names) in reachable
