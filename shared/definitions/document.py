"""Document: the value in a JSON or YAML text and the line of each of its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.definitions.source import Problem, Severity

Step = str | int
Place = tuple[Step, ...]

MAX_DEPTH = 50  # of nested lists and objects
MAX_VALUES = 100_000  # with everything counted as often as it is referred to


@dataclass(frozen=True)
class Document:
    """What a text says; `lines` is asked only when there is something to report."""

    value: Any
    lines: Callable[[], dict[Place, int]]

    def line(self, place: Place) -> int | None:
        """The line of a key or list entry, or of the nearest one around it."""
        known = self.lines()
        for length in range(len(place), 0, -1):
            if (found := known.get(place[:length])) is not None:
                return found
        return None


@dataclass(frozen=True)
class Fault:
    """Why a text cannot be read, or what was tolerated in it."""

    code: str
    text: str
    line: int | None = None
    field: str | None = None
    severity: Severity = "error"

    def at(self, path: str) -> Problem:
        """The same, of a file."""
        return Problem(path, self.line, self.code, self.field, self.text, self.severity)


class Unreadable(Exception):
    """A text that cannot be used, with all that was found."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.text for fault in faults))
        self.faults = faults


def twice(place: Place, line: int, first: int | None) -> Fault:
    """The fault of a key that stands twice in one object: which one counts would be a guess."""
    shown = ".".join(map(str, place))
    before = f", first in line {first}" if first is not None else ""
    return Fault("duplicate-key", f"'{shown}' is written twice{before}; keep one", line, str(place[0]))


def too_deep(line: int | None = None) -> Fault:
    """The fault of a text whose lists and objects are nested without sense."""
    return Fault("too-complex", f"nested deeper than {MAX_DEPTH} levels", line)
