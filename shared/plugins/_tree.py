"""Tree: the files beneath a folder of the workspace, in a stable order, without following links."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch

from shared.errors import ToolError
from shared.workspace import Location, Workspace

MAX_DEPTH = 100
#: Folders and files that nobody wants to search: version control, packages, caches.
IGNORED = (
    ".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", ".hypothesis", ".cache", ".eggs", "*.egg-info", ".DS_Store", "*.pyc",
)  # fmt: skip


def walk(
    workspace: Workspace, top: Location, *, ignore: Iterable[str], check: Callable[[], object]
) -> Iterator[Location]:
    """Every file below `top`, by name, a folder's files before its folders; `check` runs per folder and may raise."""
    patterns = tuple(ignore)
    waiting = [top]
    while waiting:
        check()
        here = waiting.pop()
        files, folders = _entries(workspace, here, patterns, strict=here is top)
        yield from files
        waiting += reversed(folders)


def _entries(
    workspace: Workspace, here: Location, ignore: tuple[str, ...], *, strict: bool
) -> tuple[list[Location], list[Location]]:
    files: list[Location] = []
    folders: list[Location] = []
    try:
        with workspace.folder(here) as descriptor, os.scandir(descriptor) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if any(fnmatch(entry.name, pattern) for pattern in ignore):
                    continue
                place = Location(here.root, (*here.parts, entry.name))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(place)
                elif entry.is_file(follow_symlinks=False):
                    files.append(place)
    except ToolError:
        if strict:
            raise
        return [], []  # it vanished or may not be read: the rest is still worth having
    return files, folders if len(here.parts) < MAX_DEPTH else []
