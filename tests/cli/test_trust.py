"""`jaato trust` as a person meets it: shown first, asked, taken back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.command import jaato as run_jaato
from support.plugin_folders import command, write_plugin


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_plugin(tmp_path / "project" / ".jaato" / "plugins" / "p", {"name": "p", "tools": [command()]})
    return tmp_path / "project"


def jaato(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run_jaato(*args, cwd=cwd, stdin=stdin, JAATO_HOME=str(cwd.parent / "home"))


def test_what_will_be_trusted_is_shown_before_the_question(project: Path) -> None:
    done = jaato("trust", cwd=project, stdin="n\n")
    assert done.returncode == 1
    assert "Nothing has changed" in done.stdout
    assert "interrupted" not in done.stderr
    assert done.stdout.index(".jaato/plugins/p/plugin.json") < done.stdout.index("Trust all of this")
    assert "may run code" in done.stdout
    assert jaato("trust", "--show", cwd=project).returncode == 1


def test_trust_is_given_used_shown_ended_by_a_change_and_taken_back(project: Path) -> None:
    assert jaato("trust", cwd=project, stdin="y\n").returncode == 0
    shown = jaato("trust", "--show", cwd=project)
    assert (shown.returncode, "It is trusted." in shown.stdout) == (0, True)
    assert "untrusted" not in jaato("plugins", cwd=project).stdout
    write_plugin(project / ".jaato" / "plugins" / "p", {"name": "p", "tools": [command("other")]})
    shown = jaato("trust", "--show", cwd=project)
    assert shown.returncode == 1
    assert ".jaato/plugins/p/plugin.json has changed" in shown.stdout
    assert "untrusted" in jaato("plugins", cwd=project).stdout
    assert jaato("trust", "--yes", cwd=project).returncode == 0
    assert "no longer trusted" in jaato("trust", "--revoke", cwd=project).stdout
    assert "is not trusted" in jaato("trust", "--revoke", cwd=project).stdout


def test_a_link_is_refused_in_one_sentence(project: Path) -> None:
    (project / ".jaato" / "plugins" / "p" / "link").symlink_to("/etc/passwd")
    done = jaato("trust", "--yes", cwd=project)
    assert done.returncode == 2
    assert ".jaato/plugins/p/link is a link" in done.stderr


def test_a_folder_that_is_not_there_is_named(project: Path) -> None:
    done = jaato("trust", "nowhere", cwd=project)
    assert done.returncode == 2
    assert "is not a folder" in done.stderr


def test_without_anybody_to_answer_nothing_is_trusted(project: Path) -> None:
    done = jaato("trust", cwd=project, stdin="")
    assert done.returncode == 2
    assert "nobody answered" in done.stderr
    assert jaato("trust", "--show", cwd=project).returncode == 1
