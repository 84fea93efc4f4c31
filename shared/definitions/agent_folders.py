"""The folders in which other hosts keep their agents, each read only when it is asked for by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.errors import ConfigError, unknown_name


@dataclass(frozen=True)
class AgentFolders:
    """Where one host looks, in the project and in the user's home; and whether it climbs to the repository's root."""

    project: tuple[str, ...]
    user: tuple[str, ...]
    recursive: bool = False
    climbs: bool = False


AGENT_FOLDERS: Mapping[str, AgentFolders] = {
    "claude": AgentFolders((".claude/agents",), (".claude/agents",), recursive=True, climbs=True),
    "agents": AgentFolders((".agents",), (".agents",)),
    "opencode": AgentFolders(
        (".opencode/agents", ".opencode/agent"),
        (".config/opencode/agents", ".config/opencode/agent"),
        climbs=True,
    ),
    "gemini": AgentFolders((".gemini/agents",), (".gemini/agents",)),
    "mamba": AgentFolders((".mamba/agents",), (".mamba/agents",)),
    "netclaw": AgentFolders((), (".netclaw/agents",)),
    "ally": AgentFolders((".ally/agents",), (".ally/agents",)),
    "pi": AgentFolders((".pi/agents",), (".pi/agent/agents",)),
}


@dataclass(frozen=True)
class WantedFolder:
    """A folder to be read, and what its links must not lead out of."""

    path: Path
    root: Path
    recursive: bool


def wanted_folders(names: Iterable[str], *, project: Path, home: Path) -> list[WantedFolder]:
    """The folders of the named hosts, nearest first; raises ConfigError for an unknown name."""
    chosen = [_folders(name) for name in dict.fromkeys(names)]
    near = [
        WantedFolder(place / path, place, each.recursive)
        for place in _places(project, home)
        for each in chosen
        for path in each.project
        if each.climbs or place == project
    ]
    far = [WantedFolder(home / path, home / path, each.recursive) for each in chosen for path in each.user]
    seen = {folder.path for folder in near}
    return near + [folder for folder in far if folder.path not in seen]


def _places(project: Path, home: Path) -> list[Path]:
    """The project and the folders above it that belong to the same repository; the user's home is never one."""
    own = os.path.realpath(home)
    places = []
    for place in (project, *project.parents):
        is_home = os.path.realpath(place) == own
        if place == project or not is_home:
            places.append(place)
        if _is_root(place, project):
            return places
        if is_home:
            break
    return [project]


def _is_root(place: Path, project: Path) -> bool:
    """Whether a folder is a repository's root; one that somebody else made above the project is none of ours."""
    try:
        return os.stat(place / ".git").st_uid == os.stat(project).st_uid
    except OSError:
        return False


def _folders(name: str) -> AgentFolders:
    if (found := AGENT_FOLDERS.get(name)) is None:
        raise ConfigError(f"agent_dirs: {unknown_name('host', name, AGENT_FOLDERS)}")
    return found
