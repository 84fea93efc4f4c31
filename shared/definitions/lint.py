"""Lint: everything that can be said about definition files without running anything."""

from __future__ import annotations

import os
from pathlib import Path

from shared.definitions.catalogue import AGENTS_DIR, PROFILES_DIR
from shared.definitions.document import Unreadable
from shared.definitions.files import read_file
from shared.definitions.folder import DefinitionFolder
from shared.definitions.formats import FORMATS, loader_for, stem_of
from shared.definitions.precedence import Scope, rank
from shared.definitions.profile_file import unreadable
from shared.definitions.source import Problem, Source
from shared.definitions.variables import workspace_root


def lint(path: Path | str) -> list[Problem]:
    """What is wrong with a file, a folder of profiles, or the `.jaato` folders of a project; empty if nothing is."""
    place = Path(os.path.abspath(path))
    if not os.path.lexists(place):
        return [Problem(str(place), None, "missing", None, "there is no such file or folder")]
    found = _folders(place) if place.is_dir() else _file(place)
    return sorted(found, key=lambda problem: (problem.path, problem.line or 0))


def _file(path: Path) -> list[Problem]:
    loader = loader_for(path.name)
    if loader is None:
        known = ", ".join(FORMATS)
        return [
            Problem(str(path), None, "unknown-format", None, f"is not a profile: expected a name that ends in {known}")
        ]
    source = Source("extra", str(path))
    try:
        file = read_file(str(path), root=os.path.realpath(workspace_root(path.parent)))
    except Unreadable as error:
        return list(unreadable(error, stem=stem_of(path.name), source=source).problems)
    return list(loader(file.text, stem=stem_of(path.name), source=source).problems)


def _folders(path: Path) -> list[Problem]:
    project = [path / PROFILES_DIR, path / AGENTS_DIR] if (path / ".jaato").is_dir() else []
    folders = [DefinitionFolder(each, Source("extra"), root=workspace_root(path)) for each in project or [path]]
    for folder in folders:
        folder.look()
    scope = Scope("extra", tuple(reading for folder in folders for reading in folder.readings))
    return list(rank([scope], [problem for folder in folders for problem in folder.problems]).problems)
