"""Trust is about a path and the content of its files: whatever is done to them afterwards asks again."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.errors import ConfigError
from shared.trust import TrustStore, survey

PLUGIN = ".jaato/plugins/p/plugin.json"


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "home" / "trust.json")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for path in (PLUGIN, ".jaato/plugins/p/__init__.py", ".jaato/profiles/a.yaml", ".mcp.json", "README.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    return root


def test_a_workspace_is_trusted_as_it_was_and_no_longer_after_that_is_taken_back(
    store: TrustStore, project: Path
) -> None:
    verdict = store.is_trusted(project)
    assert not verdict
    assert "nobody has trusted it" in verdict.reason
    store.trust(survey(project))
    assert store.is_trusted(project)
    (project / "README.md").write_text("changed")
    assert store.is_trusted(project), "files that grant nothing do not count"
    assert store.revoke(project)
    assert not store.revoke(project)
    assert not store.is_trusted(project)


def change(path: Path) -> None:
    path.write_text("changed")


def replace_keeping_size_and_time(path: Path) -> None:
    before = path.stat()
    path.write_text(path.read_text()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def rename(path: Path) -> None:
    path.rename(path.with_name("other"))


def link_to_a_copy(path: Path) -> None:
    copy = path.parents[3] / "copy"
    path.rename(copy)
    path.symlink_to(copy)


def make_executable(path: Path) -> None:
    path.chmod(0o755)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "harm",
    [change, Path.unlink, replace_keeping_size_and_time, rename, link_to_a_copy, make_executable, make_folder],
)
def test_whatever_happens_to_a_trusted_file_ends_the_trust(
    store: TrustStore, project: Path, harm: Callable[[Path], object]
) -> None:
    store.trust(survey(project))
    harm(project / PLUGIN)
    verdict = store.is_trusted(project)
    assert not verdict
    assert verdict.file is not None
    assert verdict.file.startswith(".jaato/plugins/p")


@pytest.mark.parametrize(
    "path",
    [
        ".jaato/plugins/p/nested/plugin.json",
        ".jaato/plugins/q/plugin.json",
        ".jaato/agents/x.md",
        ".jaato/permissions.json",
        "permissions.json",
        ".jaato/skills/s/SKILL.md",
    ],
)
def test_a_file_that_is_added_ends_the_trust(store: TrustStore, project: Path, path: str) -> None:
    store.trust(survey(project))
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_text("new")
    verdict = store.is_trusted(project)
    assert (bool(verdict), verdict.file) == (False, path)
    assert "was added" in verdict.reason


@pytest.mark.parametrize("place", [".jaato", ".jaato/plugins", ".jaato/plugins/p"])
def test_a_folder_replaced_by_a_link_to_the_same_files_ends_the_trust(
    store: TrustStore, project: Path, place: str
) -> None:
    store.trust(survey(project))
    (project / place).rename(project / "elsewhere")
    (project / place).symlink_to(project / "elsewhere")
    verdict = store.is_trusted(project)
    assert (bool(verdict), verdict.file) == (False, place)
    with pytest.raises(ConfigError, match="is a link"):
        survey(project)


def test_special_files_cannot_be_trusted_and_do_not_block(store: TrustStore, project: Path) -> None:
    store.trust(survey(project))
    os.mkfifo(project / ".jaato/plugins/p/pipe")
    assert not store.is_trusted(project)
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        survey(project)


def test_what_was_shown_is_trusted_and_not_what_came_after(store: TrustStore, project: Path) -> None:
    shown = survey(project)
    (project / PLUGIN).write_text("swapped while the person was reading")
    store.trust(shown)
    assert store.is_trusted(project).file == PLUGIN


def test_trust_does_not_follow_a_copy_or_reach_into_subfolders(store: TrustStore, project: Path) -> None:
    store.trust(survey(project))
    moved = project.rename(project.with_name("moved"))
    assert not store.is_trusted(moved)
    moved.rename(project)
    (project / "inner" / ".jaato").mkdir(parents=True)
    assert not store.is_trusted(project / "inner")
    assert store.is_trusted(project / "inner" / "..")


def test_the_record_is_private_and_survives_many_writers(store: TrustStore, tmp_path: Path) -> None:
    projects = [tmp_path / f"p{number}" for number in range(16)]
    for project in projects:
        project.mkdir()
    threads = [threading.Thread(target=lambda p=p: TrustStore(store.path).trust(survey(p))) for p in projects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert len(store.workspaces()) == 16
    assert all(store.is_trusted(project) for project in projects)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"workspaces": {"/": 3}}', '{"workspaces": {"/": {"files": {"a": 1}}}}']
)
def test_a_damaged_record_trusts_nothing_and_says_so(store: TrustStore, project: Path, text: str) -> None:
    store.trust(survey(project))
    store.path.write_text(text)
    verdict = store.is_trusted(project)
    assert not verdict
    assert "damaged" in verdict.reason
    with pytest.raises(ConfigError, match="damaged"):
        store.trust(survey(project))


def test_a_record_that_others_can_write_trusts_nothing(store: TrustStore, project: Path) -> None:
    store.trust(survey(project))
    store.path.chmod(0o666)
    assert "written by others" in store.is_trusted(project).reason


def test_a_record_that_is_a_link_trusts_nothing(store: TrustStore, project: Path) -> None:
    store.trust(survey(project))
    store.path.rename(project / "mine.json")
    store.path.symlink_to(project / "mine.json")
    assert not store.is_trusted(project)


def test_compiled_code_and_version_control_do_not_count(store: TrustStore, project: Path) -> None:
    store.trust(survey(project))
    (project / ".jaato/plugins/p/__pycache__").mkdir()
    (project / ".jaato/plugins/p/__pycache__/x.pyc").write_text("x")
    assert store.is_trusted(project)
    assert json.loads(store.path.read_text())["workspaces"]
