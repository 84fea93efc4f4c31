"""Projects with profile files, for tests of definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.lint import lint
from shared.definitions.source import Problem


class Project:
    """A workspace and a home folder of its own; `write` puts profiles into either."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.home = folder / "home"
        for place in (self.root, self.home):
            place.mkdir()

    def write(self, name: str, content: str | bytes | dict[str, Any], *, into: str = ".jaato/profiles") -> Path:
        """A file in the project; give `into` an absolute folder for anywhere else."""
        path = self.root / into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps(content, indent=2)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def catalogue(self, **options: Any) -> ProfileCatalogue:
        """A catalogue of the project that sees nothing of the machine it runs on."""
        return ProfileCatalogue(self.root, home=self.home, **options)


def codes(problems: tuple[Problem, ...] | list[Problem]) -> list[str]:
    """The codes of some problems, in order."""
    return [problem.code for problem in problems]


def lint_text(folder: Path, name: str, content: str | bytes | dict[str, Any]) -> list[Problem]:
    """What lint says about a file with this content."""
    path = folder / name
    if isinstance(content, dict):
        content = json.dumps(content, indent=2)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return lint(path)
