"""A workspace and a user's folder with settings files, apart from the machine's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from shared.config import SETTING_VARIABLES
from shared.settings import Settings, load_settings
from shared.trust import TrustStore, survey


@dataclass(frozen=True)
class Desk:
    """Where a test writes its settings."""

    workspace: Path
    home: Path
    overlay: Path

    @property
    def project_file(self) -> Path:
        """The project's settings."""
        return self.workspace / ".jaato" / "config.yaml"

    def project(self, text: str) -> None:
        """Write the project's settings."""
        self.project_file.parent.mkdir(exist_ok=True)
        self.project_file.write_text(text)

    def user(self, text: str) -> None:
        """Write the user's settings."""
        (self.home / "config.yaml").write_text(text)

    def trust(self) -> None:
        """Trust the workspace as it is, as `jaato trust` does."""
        TrustStore().trust(survey(self.workspace))

    def load(self, *, trust_workspace: bool | None = None) -> Settings:
        """The settings in force."""
        return load_settings(self.workspace, trust_workspace=trust_workspace)


def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Empty folders, and none of the variables that decide settings."""
    for names in SETTING_VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("JAATO_CONFIG", raising=False)
    made = Desk(tmp_path / "workspace", tmp_path / "home", tmp_path / "overlay.yaml")
    made.workspace.mkdir()
    made.home.mkdir()
    monkeypatch.setenv("JAATO_HOME", str(made.home))
    return made
