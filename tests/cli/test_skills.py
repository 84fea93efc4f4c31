"""`jaato skills` as a person uses it: a process of its own in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.skills import write_skill

ROOT = Path(__file__).parents[2]


def jaato(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAATO_HOME": str(folder / "home"), "JAATO_TRACE_LOG": ""}
    command = [sys.executable, "-m", "shared.cli", "skills", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_skill(tmp_path / ".jaato/skills", "good", "Do $ARGUMENTS.")
    write_skill(tmp_path / "home/skills", "needy", metadata='{"clawdbot": {"requires": {"bins": ["no-such-bin"]}}}')
    return tmp_path


def test_list(project: Path) -> None:
    done = jaato(project, "list")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "good (project, untrusted): Does good things.",
        "needy (user, unavailable: the program no-such-bin is not on the PATH): Does needy things.",
    ]
    found = json.loads(jaato(project, "list", "--json").stdout)
    assert [each["name"] for each in found["skills"]] == ["good", "needy"]
    assert found["problems"] == []


def test_show(project: Path) -> None:
    done = jaato(project, "show", "good", "--arguments", "it")
    assert "Do it." in done.stdout
    assert json.loads(jaato(project, "show", "needy", "--json").stdout)["body"].strip() == "Do it."
    wrong = jaato(project, "show", "goood")
    assert wrong.returncode == 2
    assert "Did you mean 'good'?" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_validate(project: Path) -> None:
    assert jaato(project, "validate").returncode == 0
    write_skill(project / ".jaato/skills", "typo", user_invokable="true")
    done = jaato(project, "validate")
    assert done.returncode == 0
    [line] = done.stdout.splitlines()
    assert line.startswith(f"{project}/.jaato/skills/typo/SKILL.md:4: unknown-field: ")
    assert "Did you mean 'user-invocable'?" in line
    assert jaato(project, "validate", "--strict").returncode == 1
    (project / ".jaato/skills/typo/SKILL.md").write_text("nothing")
    assert jaato(project, "validate").returncode == 1
    found = json.loads(jaato(project, "validate", ".jaato/skills/typo", "--json").stdout)
    assert (found[0]["valid"], found[0]["problems"][0]["code"]) == (False, "no-frontmatter")
    assert jaato(project, "validate", "nowhere").returncode == 1


def test_duplicates_are_found(project: Path) -> None:
    write_skill(project / "skills", "twin", folder="a")
    write_skill(project / "skills", "twin", folder="twin")
    done = jaato(project, "validate", "skills")
    assert done.returncode == 1
    assert done.stdout.count("duplicate-name") == 2
