"""Finding: one thing that was looked at, how it is, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from shared.definitions.source import Problem, one_line

State = Literal["ok", "note", "problem"]
MOST = 5  # problems of one kind that are shown one by one


@dataclass(frozen=True)
class Finding:
    """`problem` is something that will not work; `note` something that is merely not there."""

    area: str
    state: State
    text: str
    fix: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def from_problems(area: str, problems: Iterable[Problem], *, fix: str) -> Iterator[Finding]:
    """The worst of what is wrong with some files; errors are problems, the rest is worth a note."""
    ranked = sorted(problems, key=lambda problem: problem.severity != "error")
    for problem in ranked[:MOST]:
        yield Finding(area, "problem" if problem.severity == "error" else "note", str(problem), fix)
    if more := len(ranked) - MOST:
        yield from [Finding(area, "note", f"and {more} more", fix)] if more > 0 else []


def failed(area: str, error: BaseException, *, fix: str = "") -> Finding:
    """A look that did not even come to its end."""
    return Finding(area, "problem", one_line(str(error) or type(error).__name__), fix)
