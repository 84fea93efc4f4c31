"""OpenedFolder: a plugin folder read as data — manifest, agents, skills — before any of its code runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from shared.config import jaato_home
from shared.definitions.document import Unreadable
from shared.definitions.files import is_inside, read_file
from shared.definitions.manifest import Manifest, read_manifest
from shared.definitions.profile import SubagentProfile
from shared.definitions.source import Problem
from shared.errors import PluginError
from shared.folder_plugins.agent_files import read_agents
from shared.folder_plugins.places import CLAUDE_MANIFEST, PluginFolder
from shared.folder_plugins.private_copy import private_copy

CODE = "__init__.py"
COPIES = "trusted-plugins"


@dataclass(frozen=True)
class OpenedFolder:
    """A plugin that can be made: `root` is where its files are used from."""

    folder: PluginFolder
    root: Path
    manifest: Manifest
    agents: tuple[SubagentProfile, ...] = ()
    skill_folders: tuple[Path, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def has_code(self) -> bool:
        """Whether there is Python to be imported; Claude's shape has none."""
        return self.manifest.dialect != "claude" and (self.root / CODE).is_file()


@dataclass(frozen=True)
class RefusedFolder:
    """A plugin that cannot be made, and why; its name is the manifest's where that could be read."""

    folder: PluginFolder
    name: str
    reason: str
    problems: tuple[Problem, ...] = ()
    untrusted: bool = False
    version: str = ""


def open_folder(folder: PluginFolder, *, home: Path | None = None) -> OpenedFolder | RefusedFolder:
    """Read a plugin folder without running anything of it; never raises for what is in it."""
    shown = folder.path.name
    if folder.distrust:
        return RefusedFolder(folder, shown, folder.distrust, untrusted=True)
    try:
        root = _root(folder, home)
    except (PluginError, OSError) as error:
        return RefusedFolder(folder, shown, str(error), untrusted=folder.held_to is not None)
    path = str(folder.path / folder.manifest)
    try:
        text = read_file(str(root / folder.manifest), root=os.path.realpath(root)).text
    except Unreadable as error:
        faults = tuple(Problem(path, fault.line, fault.code, fault.field, fault.text) for fault in error.faults)
        return RefusedFolder(folder, shown, str(faults[0]), faults)
    reading = read_manifest(text, path=path, folder=shown, claude=folder.manifest == CLAUDE_MANIFEST)
    if reading.manifest is None:
        first = next((each for each in reading.problems if each.severity == "error"), None)
        return RefusedFolder(folder, shown, str(first or "plugin.json cannot be used"), reading.problems)
    agents, found = read_agents(reading.manifest, root, folder)
    skills, missing = _skills(reading.manifest, root, path)
    problems = (*reading.problems, *found, *missing)
    return OpenedFolder(folder, root, reading.manifest, agents, skills, problems)


def _root(folder: PluginFolder, home: Path | None) -> Path:
    if folder.held_to is None:
        return Path(os.path.realpath(folder.path))
    return private_copy(folder.path, folder.held_to, (home or jaato_home()) / COPIES)


def _skills(manifest: Manifest, root: Path, path: str) -> tuple[tuple[Path, ...], list[Problem]]:
    """The folders with skills: each holds a SKILL.md or folders that do."""
    found: list[Path] = []
    problems: list[Problem] = []
    real = os.path.realpath(root)
    for name in dict.fromkeys(("skills", *(manifest.skill_paths or ()))):
        place = root / name
        if not is_inside(os.path.realpath(place), real):
            problems.append(Problem(path, None, "link-outside", "skills", f"'{name}' is a link out of the plugin"))
        elif place.is_dir():
            found.append(place)
        elif name in (manifest.skill_paths or ()):
            problems.append(Problem(path, None, "missing", "skills", f"there is no folder '{name}' in the plugin"))
    return tuple(found), problems
