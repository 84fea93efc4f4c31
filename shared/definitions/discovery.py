"""Profiles of one folder, for hosts that want them as a plain dict."""

from __future__ import annotations

import logging
from pathlib import Path

from shared.definitions.catalogue import PROFILES_DIR
from shared.definitions.folder import DefinitionFolder
from shared.definitions.precedence import Scope, rank
from shared.definitions.profile import SubagentProfile
from shared.definitions.source import Source

log = logging.getLogger(__name__)


def discover_profiles(
    profiles_dir: Path | str = PROFILES_DIR, base_path: Path | str | None = None, *, trust_workspace: bool = False
) -> dict[str, SubagentProfile]:
    """The profiles in a folder by name; what is wrong with the other files is logged."""
    base = Path(base_path or Path.cwd()).absolute()
    path = base / Path(profiles_dir).expanduser()
    root = base if path.is_relative_to(base) else None
    folder = DefinitionFolder(path, Source("project", None, trust_workspace), root=root)
    folder.look()
    ranking = rank([Scope("project", folder.readings)], folder.problems)
    for problem in ranking.problems:
        log.log(logging.INFO if problem.severity == "info" else logging.WARNING, "%s", problem)
    return dict(sorted(ranking.winners.items()))
