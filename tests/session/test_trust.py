"""Trust in a workspace: said in code, or recorded by `jaato trust`, and gone when a file changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared import JaatoRuntime
from shared.trust import TrustStore, survey


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    profiles = folder / ".jaato" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "helper.json").write_text(json.dumps({"name": "helper", "auto_approved": True}))
    return folder


def test_a_workspace_is_not_trusted_by_itself(workspace: Path) -> None:
    assert JaatoRuntime("script", workspace=workspace).trust_workspace is False
    assert JaatoRuntime("script", workspace=workspace, trust_workspace=True).trust_workspace is True


def test_recorded_trust_counts_until_a_file_changes(workspace: Path) -> None:
    TrustStore().trust(survey(workspace))
    assert JaatoRuntime("script", workspace=workspace).trust_workspace is True
    assert JaatoRuntime("script", workspace=workspace, trust_workspace=False).trust_workspace is False
    (workspace / ".jaato" / "profiles" / "other.json").write_text('{"name": "other"}')
    assert JaatoRuntime("script", workspace=workspace).trust_workspace is False
