"""How `jaato run` ends: nothing that was begun is thrown away, what is not whole says why, lines are whole."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.command import jaato

SPAWN = {"name": "spawn_subagent", "args": {"task": "slow work", "name": "turtle", "background": True}}
ENDLESS = {"name": "spawn_subagent", "args": {"task": "endless", "background": True}}
RULES: list[dict[str, Any]] = [
    {"when": "slow", "replies": [{"text": "found it", "delay": 0.5}]},
    {"when": "endless", "replies": [{"text": "never said", "delay": 600}]},
    {"when": "delegate for ever", "replies": [{"calls": [ENDLESS]}, "ok"]},
    {"when": "delegate", "replies": [{"text": "Delegating.", "calls": [SPAWN]}, "It is under way."]},
    {"when": "shell", "replies": [{"calls": [{"name": "cli", "args": {"command": "echo hi"}}]}, "I may not."]},
]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.yaml").write_text(yaml.safe_dump(RULES))
    return jaato("run", "--provider", "script", "--model", "script.yaml", *words, cwd=folder)


def test_subagents_in_the_background_are_waited_for_and_told(tmp_path: Path) -> None:
    done = run(tmp_path, "-p", "subagent", "--permissions", "allow", "delegate")
    first, second, third = done.stdout.splitlines()
    assert (done.returncode, first, second) == (0, "Delegating.", "It is under way.")
    assert third.endswith("(completed): found it")
    assert "jaato: waiting for turtle" in done.stderr


def test_subagents_in_the_background_are_in_the_report(tmp_path: Path) -> None:
    done = run(tmp_path, "-p", "subagent", "--permissions", "allow", "--json", "-q", "delegate")
    report = json.loads(done.stdout)
    assert [(each["status"], each["response"]) for each in report["background"]] == [("completed", "found it")]
    assert report["usage"]["calls"] == 3, "those of the subagent count"
    assert done.stderr == ""


def test_time_is_up_for_subagents_in_the_background_too(tmp_path: Path) -> None:
    done = run(tmp_path, "-p", "subagent", "--permissions", "allow", "--timeout", "1", "--json", "delegate for ever")
    report = json.loads(done.stdout)
    assert (done.returncode, report["status"], report["background"]) == (124, "timed_out", [])


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("--timeout", "0.3", "endless"), 124, "the time was up"),
        (("-p", "cli", "--permissions", "deny", "shell"), 4, "--permissions says what is"),
    ],
)
def test_an_end_that_is_not_whole_says_why(words: tuple[str, ...], code: int, why: str, tmp_path: Path) -> None:
    done = run(tmp_path, *words)
    assert done.returncode == code
    assert why in done.stderr.splitlines()[-1]
    assert done.stdout in ("", "I may not.\n"), "no empty line for an answer that there is not"


def test_who_cannot_be_asked_is_told_first_what_can_be_typed(tmp_path: Path) -> None:
    done = run(tmp_path, "-p", "cli", "shell")
    assert "nobody can be asked: say what is allowed with --permissions" in done.stderr


def test_a_policy_that_is_not_there_is_typed_wrongly(tmp_path: Path) -> None:
    done = run(tmp_path, "--permissions", "nowhere.json", "shell")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--permissions nowhere.json" in done.stderr
