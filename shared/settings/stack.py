"""The files of settings in one stack: the user's, the project's as far as it may, and the overlay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shared import config
from shared.definitions.source import Problem
from shared.settings.file import PROJECT_FILE, SettingsFile, read_project_file, read_user_file
from shared.settings.tree import Node, merged
from shared.settings.trust import refusals, without
from shared.trust import TrustStore

Stacked = tuple[dict[str, Node], list[str], list[Problem]]


def stacked(workspace: Path, below: Mapping[str, Node], trust_workspace: bool | None) -> Stacked:
    """What files say, over what is below; the files that were found; and what is to be said about them."""
    entries, files = dict(below), []
    problems: list[Problem] = []
    for file in _files(workspace):
        files.append(file.path)
        problems += file.problems
        said = file.entries
        if file.kind == "project":
            said, refused = _allowed(file, entries, workspace, trust_workspace)
            problems += refused
        for key, node in said.items():
            entries[key] = merged(entries.get(key), node)
    return entries, files, problems


def _files(workspace: Path) -> list[SettingsFile]:
    user, overlay = config.jaato_home() / "config.yaml", config.config_overlay()
    found = [read_user_file("user", user)]
    if not _same(user, workspace / PROJECT_FILE):  # in the home folder they are one
        found.append(read_project_file(workspace))
    if overlay is not None:
        found.append(read_user_file("overlay", overlay) or _missing(overlay))
    return [file for file in found if file is not None]


def _allowed(
    file: SettingsFile, below: Mapping[str, Node], workspace: Path, trust_workspace: bool | None
) -> tuple[Mapping[str, Node], list[Problem]]:
    """The project's settings without those that need a trust nobody gave."""
    refused = list(refusals(file, below))
    if not refused or _is_trusted(file, workspace, trust_workspace):
        return file.entries, []
    entries = file.entries
    for path, _ in refused:
        entries = without(entries, path)
    return entries, [problem for _, problem in refused]


def _is_trusted(file: SettingsFile, workspace: Path, given: bool | None) -> bool:
    if given is not None:
        return given
    verdict = TrustStore().is_trusted(workspace)
    # What was looked at must be what was read: the file may have changed between the two.
    return verdict.trusted and verdict.files.get(PROJECT_FILE) == file.digest


def _missing(path: Path) -> SettingsFile:
    text = "JAATO_CONFIG names this file, and it does not exist"
    return SettingsFile("overlay", str(path), {}, (Problem(str(path), None, "missing", None, text),))


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False
