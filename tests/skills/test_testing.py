"""SkillTestHarness and its fixture, as an author of skills uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.skills import write_skill

from shared.errors import SkillLoadError, SkillNotFoundError
from shared.skills import Skill, SkillInfo
from shared.skills.testing import SkillTestHarness, skill_harness

__all__ = ["skill_harness"]


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


def test_a_folder_is_validated_and_tried(tmp_path: Path) -> None:
    place = write_skill(tmp_path, "demo", "Do $0.", allowed_tools="read_file")
    (place / "assets").mkdir()
    (place / "assets/a.txt").write_text("A")
    harness = SkillTestHarness(place, agent_tools=["cli"])
    assert harness.validate(strict=True).is_valid
    trial = harness.invoke("it")
    assert (trial.success, trial.text, trial.tools, trial.error) == (True, "Do it.", ("read_file",), None)
    assert harness.manager.active == []
    assert harness.read("assets/a.txt") == "A"
    with pytest.raises(SkillLoadError):
        harness.read("../x")


def test_an_untrusted_trial_shows_what_is_lost(tmp_path: Path) -> None:
    place = write_skill(tmp_path, "demo", allowed_tools="read_file")
    assert SkillTestHarness(place, trusted=False).invoke().tools == ()


def test_a_skill_from_code_and_its_tools() -> None:
    skill = Skill(SkillInfo("demo", "Shows", disable_model_invocation=True), "Hi $0", (greet,))
    harness = SkillTestHarness(skill)
    assert harness.invoke("x").tools == ("demo.greet",)
    assert harness.call_tool("greet", name="Ada") == "Hello Ada"
    with pytest.raises(SkillNotFoundError, match="it has: greet"):
        harness.call_tool("grete")
    failed = harness.invoke(invoked_by="model")
    assert not failed
    assert "for people only" in (failed.error or "")
    assert harness.validate().is_valid


def test_problems_are_reported(tmp_path: Path) -> None:
    harness = SkillTestHarness(write_skill(tmp_path, "demo", version="1"))
    assert harness.problems() == ()
    assert [problem.code for problem in harness.problems(strict=True)] == ["strict-field"]


def test_the_fixture_works_in_a_project_of_its_own(tmp_path: Path) -> None:
    write_skill(tmp_path, "demo", "Do $0.")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["shared.skills.testing"]\n')
    (tmp_path / "test_demo.py").write_text(
        "def test_demo(skill_harness):\n    assert skill_harness('demo').invoke('it').text == 'Do it.'\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_demo.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(root)})
    assert "1 passed" in done.stdout, done.stdout + done.stderr
