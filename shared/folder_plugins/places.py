"""Where drop-in plugins are found, and whether each place is trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.bundled import bundled_folder
from shared.config import jaato_home
from shared.definitions.source import SourceKind

PROJECT_FOLDER = ".jaato/plugins"
MANIFEST = "plugin.json"
CLAUDE_MANIFEST = ".claude-plugin/plugin.json"


@dataclass(frozen=True)
class PluginFolder:
    """One folder with a manifest; `distrust` says why it must not be loaded, empty if it may.

    `held_to` has the fingerprints of its files when a person trusted them: what is loaded must match.
    """

    path: Path
    scope: SourceKind
    distrust: str = ""
    held_to: Mapping[str, str] | None = None

    @property
    def manifest(self) -> str:
        """The manifest's path inside the folder."""
        return MANIFEST if (self.path / MANIFEST).is_file() else CLAUDE_MANIFEST


def plugin_folders(
    workspace: Path | None = None, *, trust_workspace: bool | None = None, home: Path | None = None
) -> list[PluginFolder]:
    """All folders with a manifest: the project's, the user's, and those that come with this package.

    With `trust_workspace` None the record of trusted workspaces decides about the project's.
    """
    users = (home or jaato_home()) / "plugins"
    found = []
    project = Path(os.path.realpath(workspace or Path.cwd())) / PROJECT_FOLDER
    if os.path.realpath(project) != os.path.realpath(users):
        found += _project(project, trust_workspace, home)
    found += [PluginFolder(path, "user") for path in _with_manifest(users)]
    found += [PluginFolder(path, "builtin") for path in _with_manifest(bundled_folder("plugins"))]
    return found


def _project(place: Path, trust: bool | None, home: Path | None) -> list[PluginFolder]:
    folders = list(_with_manifest(place))
    if not folders or trust:
        return [PluginFolder(path, "project") for path in folders]
    if trust is False:
        return [PluginFolder(path, "project", "the workspace is not trusted") for path in folders]
    from shared.trust import TrustStore

    root = place.parent.parent
    verdict = TrustStore(home / "trust.json" if home is not None else None).is_trusted(root)
    reason = "" if verdict else f"the workspace is not trusted: {verdict.reason}"
    return [PluginFolder(path, "project", reason, _below(verdict.files, path, root)) for path in folders]


def _below(files: Mapping[str, str], folder: Path, root: Path) -> dict[str, str]:
    prefix = f"{folder.relative_to(root).as_posix()}/"
    return {path.removeprefix(prefix): digest for path, digest in files.items() if path.startswith(prefix)}


def _with_manifest(place: Path) -> Iterator[Path]:
    """The folders right below a place that have a manifest; what lies deeper belongs to its plugin."""
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    except OSError:
        return
    for name in names:
        folder = place / name
        if any(os.path.lexists(folder / manifest) for manifest in (MANIFEST, CLAUDE_MANIFEST)):
            yield folder
