"""`jaato skills` as a person uses it: a process of its own in a folder of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.command import jaato
from support.skills import write_skill

from shared.trust import TrustStore, survey


def skills(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return jaato("skills", *arguments, cwd=folder, JAATO_HOME=str(folder / "home"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_skill(tmp_path / ".jaato/skills", "good", "Do $ARGUMENTS.")
    write_skill(tmp_path / "home/skills", "needy", metadata='{"clawdbot": {"requires": {"bins": ["no-such-bin"]}}}')
    return tmp_path


def test_list(project: Path) -> None:
    done = skills(project, "list")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "good (project, untrusted): Does good things.",
        "needy (user, unavailable: the program no-such-bin is not on the PATH): Does needy things.",
    ]
    TrustStore(project / "home" / "trust.json").trust(survey(project))
    assert skills(project, "list").stdout.startswith("good (project, trusted): ")
    found = json.loads(skills(project, "list", "--json").stdout)
    assert [each["name"] for each in found["skills"]] == ["good", "needy"]
    assert found["problems"] == []


def test_show(project: Path) -> None:
    done = skills(project, "show", "good", "--arguments", "it")
    assert "Do it." in done.stdout
    assert json.loads(skills(project, "show", "needy", "--json").stdout)["body"].strip() == "Do it."
    wrong = skills(project, "show", "goood")
    assert wrong.returncode == 2
    assert "Did you mean 'good'?" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_validate(project: Path) -> None:
    assert skills(project, "validate").returncode == 0
    write_skill(project / ".jaato/skills", "typo", user_invokable="true")
    done = skills(project, "validate")
    assert done.returncode == 0
    [line] = done.stdout.splitlines()
    assert line.startswith(f"{project}/.jaato/skills/typo/SKILL.md:4: warning: unknown-field: ")
    assert "Did you mean 'user-invocable'?" in line
    assert done.stderr.endswith(" skills, 0 errors, 1 warning\n")
    assert skills(project, "validate", "--strict").returncode == 1
    (project / ".jaato/skills/typo/SKILL.md").write_text("nothing")
    assert skills(project, "validate").returncode == 1
    found = json.loads(skills(project, "validate", ".jaato/skills/typo", "--json").stdout)
    assert (found[0]["valid"], found[0]["problems"][0]["code"]) == (False, "no-frontmatter")
    assert skills(project, "validate", "nowhere").returncode == 1


def test_duplicates_are_found(project: Path) -> None:
    write_skill(project / "skills", "twin", folder="a")
    write_skill(project / "skills", "twin", folder="twin")
    done = skills(project, "validate", "skills")
    assert done.returncode == 1
    assert done.stdout.count("duplicate-name") == 2
