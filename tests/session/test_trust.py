"""Trust in a workspace: said in code, or recorded by `jaato trust`, and gone when a file changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.permission_calls import WRITE, until

from shared import JaatoRuntime, PluginRegistry
from shared.cancel import CancelToken
from shared.permissions import Channel, Decision, PermissionBroker, PermissionRequest, build_gate
from shared.tools import ToolContext
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


class Always(Channel):
    """A person who says "always" to everything."""

    name = "always"

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        return Decision.parse("always")


def answer_always(workspace: Path) -> PermissionBroker:
    """A call that a person allows for good, under the policy of a trusted project."""
    broker = build_gate(None, workspace=workspace, trust_workspace=True, channel=Always())
    broker.check(WRITE, {"x": 1}, ToolContext("main", CancelToken(), workspace=workspace))
    assert until(lambda: "write_file" in (workspace / "permissions.json").read_text())
    return broker


@pytest.fixture
def with_policy(workspace: Path) -> Path:
    (workspace / "permissions.json").write_text(json.dumps({"defaultPolicy": "ask"}))
    TrustStore().trust(survey(workspace))
    return workspace


def test_an_answer_for_good_does_not_end_the_trust(with_policy: Path) -> None:
    answer_always(with_policy)
    assert until(lambda: bool(TrustStore().is_trusted(with_policy)))
    runtime = JaatoRuntime("script", workspace=with_policy)
    runtime.configure_plugins(PluginRegistry())
    assert runtime.broker is not None
    assert runtime.broker.evaluate(WRITE, {}).action == "allow"


@pytest.mark.parametrize("file", ["permissions.json", ".jaato/profiles/helper.json"])
def test_a_change_by_somebody_else_still_does(with_policy: Path, file: str) -> None:
    answer_always(with_policy)
    assert until(lambda: bool(TrustStore().is_trusted(with_policy)))
    path = with_policy / file
    path.write_text(path.read_text() + " ")
    verdict = TrustStore().is_trusted(with_policy)
    assert not verdict
    assert verdict.file == file


def test_an_answer_does_not_cover_up_a_change_that_came_before_it(with_policy: Path) -> None:
    broker = build_gate(None, workspace=with_policy, trust_workspace=True, channel=Always())
    (with_policy / "permissions.json").write_text('{"defaultPolicy": "ask", "whitelist": {"tools": ["cli"]}}')
    broker.check(WRITE, {"x": 1}, ToolContext("main", CancelToken(), workspace=with_policy))
    assert until(lambda: "write_file" in (with_policy / "permissions.json").read_text())
    broker.close()
    assert not TrustStore().is_trusted(with_policy)


def test_a_workspace_that_was_not_trusted_is_not_trusted_by_an_answer(workspace: Path) -> None:
    (workspace / "permissions.json").write_text(json.dumps({"defaultPolicy": "ask"}))
    answer_always(workspace).close()
    assert not TrustStore().is_trusted(workspace)
    assert TrustStore().workspaces() == []


def test_trust_as_it_is_at_this_moment(workspace: Path) -> None:
    TrustStore().trust(survey(workspace))
    runtime = JaatoRuntime("script", workspace=workspace)
    assert runtime.trust_workspace
    assert runtime.is_trusted_now()
    (workspace / ".jaato" / "profiles" / "other.json").write_text('{"name": "other"}')
    assert not runtime.is_trusted_now()
    assert JaatoRuntime("script", workspace=workspace, trust_workspace=True).is_trusted_now()
