"""The folders in which other hosts keep their agents, each read only when it is asked for by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.errors import ConfigError, unknown_name


@dataclass(frozen=True)
class AgentFolders:
    """Where one host looks, in the project and in the user's home."""

    project: tuple[str, ...]
    user: tuple[str, ...]
    recursive: bool = False


AGENT_FOLDERS: Mapping[str, AgentFolders] = {
    "claude": AgentFolders((".claude/agents",), (".claude/agents",), recursive=True),
    "agents": AgentFolders((".agents",), (".agents",)),
    "opencode": AgentFolders(
        (".opencode/agents", ".opencode/agent"), (".config/opencode/agents", ".config/opencode/agent")
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
    """The folders of the named hosts, those of the project first; raises ConfigError for an unknown name."""
    chosen = [_folders(name) for name in dict.fromkeys(names)]
    near = [WantedFolder(project / path, project, each.recursive) for each in chosen for path in each.project]
    far = [WantedFolder(home / path, home / path, each.recursive) for each in chosen for path in each.user]
    seen = {folder.path for folder in near}
    return near + [folder for folder in far if folder.path not in seen]


def _folders(name: str) -> AgentFolders:
    if (found := AGENT_FOLDERS.get(name)) is None:
        raise ConfigError(f"agent_dirs: {unknown_name('host', name, AGENT_FOLDERS)}")
    return found
