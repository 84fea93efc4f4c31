"""Where a definition comes from, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

SourceKind = Literal["code", "project", "user", "extra", "plugin", "builtin"]
Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Source:
    """The place of a definition; only a trusted one may spare a person a question."""

    kind: SourceKind = "code"
    path: str | None = None
    trusted: bool = True
    plugin: str | None = None  # that brought it

    def __str__(self) -> str:
        return one_line(f"{self.kind} ({self.path})" if self.path else self.kind)


MAX_TEXT, MAX_FIELD, MAX_PROBLEMS = 600, 80, 20
#: What is written in Python is as trusted as the program itself.
CODE = Source()


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, or doubtful, in a definition file."""

    path: str
    line: int | None
    code: str
    field: str | None
    text: str
    severity: Severity = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _clipped(self.text, MAX_TEXT))  # a hostile file decides how long it would be
        if self.field is not None:
            object.__setattr__(self, "field", _clipped(self.field, MAX_FIELD))

    def __str__(self) -> str:
        return one_line(f"{self._where}: {self.code}: {self.text}")

    def as_line(self) -> str:
        """For reports, in the form that editors and CI jobs know: place, severity, code, text."""
        return one_line(f"{self._where}: {self.severity}: {self.code}: {self.text}")

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it, for answers and reports."""
        return {
            "path": one_line(self.path),
            "line": self.line,
            "code": self.code,
            "field": None if self.field is None else one_line(self.field),
            "text": one_line(self.text),
            "severity": self.severity,
        }

    @property
    def _where(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


def bounded(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The first problems of a file, and how many more there are."""
    rest = problems[MAX_PROBLEMS:]
    if not rest:
        return tuple(problems)
    level: Severity = "error" if any(problem.severity == "error" for problem in rest) else "warning"
    more = Problem(problems[0].path, None, "more", None, f"{len(rest):,} more problems in this file", level)
    return (*problems[:MAX_PROBLEMS], more)


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def one_line(text: str) -> str:
    """A text that stays on one line and hides nothing: file names and values may hold any character."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
