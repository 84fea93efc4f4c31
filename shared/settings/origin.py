"""Where the value of a setting comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shared.definitions.source import one_line

OriginKind = Literal["default", "user", "project", "overlay", "environment", "code"]


@dataclass(frozen=True)
class Origin:
    """A file with its line, an environment variable, the host's code, or the built-in default."""

    kind: OriginKind
    path: str | None = None  # of a file; of an environment variable its name
    line: int | None = None

    @property
    def is_file(self) -> bool:
        """Whether somebody wrote it into a file."""
        return self.kind in ("user", "project", "overlay")

    def __str__(self) -> str:
        if self.path is None:
            return self.kind
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return one_line(f"{self.kind} {where}")


DEFAULT = Origin("default")
CODE = Origin("code")
