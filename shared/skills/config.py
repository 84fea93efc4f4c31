"""SkillConfig: where skills are looked for, and which of them are vouched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.config import jaato_home

PROJECT_DIRS = (".jaato/skills", ".claude/skills", ".agents/skills")

PathLike = Path | str


@dataclass(frozen=True, kw_only=True)
class SkillConfig:
    """Settings of a SkillManager; folders are relative to the workspace, strongest first."""

    workspace: PathLike | None = None  # None: the current folder
    skills_dirs: Sequence[PathLike] = PROJECT_DIRS
    user_skills_dir: PathLike | None = None  # None: `skills` in the user's own folder
    custom_paths: Sequence[PathLike] = ()
    trusted_paths: Sequence[PathLike] = ()
    trust_workspace: bool = False
    auto_discover: bool = True
    namespace_tools: bool = True
    record: PathLike | None = None  # what was installed, and which of it is trusted; None: in the user's own folder

    @property
    def root(self) -> Path:
        """The workspace."""
        return Path(self.workspace or Path.cwd()).expanduser().absolute()

    @property
    def user_dir(self) -> Path:
        """The user's own skills."""
        return Path(self.user_skills_dir or jaato_home() / "skills").expanduser().absolute()

    @property
    def record_path(self) -> Path:
        """The record of installed skills."""
        return Path(self.record or jaato_home() / "installed-skills.json").expanduser().absolute()

    def resolved(self, path: PathLike) -> Path:
        """A folder from the settings."""
        return self.root / Path(path).expanduser()
