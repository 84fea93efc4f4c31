"""`jaato run`: tasks for subagents, limits, and the status as exit code."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.command import ROOT, jaato

RULES: list[dict[str, Any]] = [
    {"when": "loop", "replies": [{"calls": [{"name": "read_file", "args": {"path": "notes.txt"}}]}]},
    {"when": "shell", "replies": [{"calls": [{"name": "cli", "args": {"command": "echo hi"}}]}, "I may not."]},
    {"when": "slow", "replies": [{"text": "late", "delay": 60}]},
    {"when": ".", "replies": ["done"]},
]


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.yaml").write_text(yaml.safe_dump(RULES))
    (folder / "notes.txt").write_text("notes\n")
    return jaato("run", "--provider", "script", "--model", "script.yaml", *words, cwd=folder, **variables)


def report(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_a_profile_does_it(tmp_path: Path) -> None:
    done = run(tmp_path, "--profile", "summarizer", "some text", "--json")
    assert done.returncode == 0
    result = report(done)
    assert (result["status"], result["response"], result["task"]) == ("completed", "done", "some text")


def test_a_profile_with_a_model_needs_no_other(tmp_path: Path) -> None:
    profiles = tmp_path / ".jaato" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "echo.yaml").write_text("description: Says it back\nprovider: script\nmodel: echo\n")
    done = jaato("run", "--profile", "echo", "some text", "--json", cwd=tmp_path)
    result = report(done)
    assert (result["status"], result["model"], result["provider"]) == ("completed", "echo", "script")


def test_without_a_choice_it_is_the_provider_that_has_a_key(tmp_path: Path) -> None:
    nobody = jaato("run", "some text", cwd=tmp_path)
    assert nobody.returncode == 2
    assert "export ANTHROPIC_API_KEY=" in nobody.stderr
    somebody = jaato("run", "some text", cwd=tmp_path, ANTHROPIC_API_KEY="k")
    assert (somebody.returncode, "no model for anthropic: pass --model" in somebody.stderr) == (2, True)


def test_the_usual_plugins_are_there_unless_others_are_named(tmp_path: Path) -> None:
    usual = report(run(tmp_path, "--max-turns", "3", "loop", "--json"))
    assert (usual["reason"], usual["tool_calls"]) == ("max_turns", 2)
    other = run(tmp_path, "-p", "todo", "--max-turns", "2", "loop", "--json")
    assert "unknown tool 'read_file'" in other.stderr


def test_an_unknown_profile_starts_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "--profile", "sumarizer", "some text")
    assert done.returncode == 2
    assert "Did you mean 'summarizer'?" in done.stderr


def test_several_tasks_in_the_background(tmp_path: Path) -> None:
    words = [f"task {number}" for number in range(30)]
    done = run(tmp_path, "--background", "4", *words, "--json")
    results = report(done)
    assert [result["task"] for result in results] == words, "in the order in which they were given"
    assert {result["status"] for result in results} == {"completed"}
    assert len({result["agent_id"] for result in results}) == 30


def test_several_tasks_as_text(tmp_path: Path) -> None:
    done = run(tmp_path, "-b", "2", "one", "two")
    assert done.returncode == 0
    for head in ("## 1. one (completed)\ndone\n", "## 2. two (completed)\ndone\n"):
        assert head in done.stdout


def test_several_tasks_need_to_be_meant(tmp_path: Path) -> None:
    done = run(tmp_path, "one", "two")
    assert done.returncode == 2
    assert "--background N" in done.stderr


@pytest.mark.parametrize("as_subagent", [(), ("--background", "1")], ids=["main", "subagent"])
@pytest.mark.parametrize(
    ("words", "code", "status", "reason"),
    [
        (("hello",), 0, "completed", None),
        (("-p", "file_edit", "--max-turns", "3", "loop"), 3, "partial", "max_turns"),
        (("-p", "file_edit", "--max-tokens", "3000", "loop"), 3, "partial", "budget"),
        (("-p", "cli", "--permissions", "deny", "shell"), 4, "denied", None),
        (("--timeout", "0.3", "slow"), 124, "timed_out", None),
    ],
    ids=["completed", "turns", "budget", "denied", "time"],
)
def test_the_exit_code_says_how_it_ended(
    words: tuple[str, ...], code: int, status: str, reason: str | None, as_subagent: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(tmp_path, *words, *as_subagent, "--json")
    found = report(done)
    assert (found["status"], found.get("reason")) == (status, reason), found
    assert done.returncode == code
    assert found["success"] is (code == 0)


def test_a_model_that_fails_is_told_on_stderr_and_in_json(tmp_path: Path) -> None:
    done = jaato(
        *(
            "run",
            "--provider",
            "openai_compatible",
            "--model",
            "m",
            "--base-url",
            "http://127.0.0.1:9/v1",
            "--json",
            "x",
        ),
        cwd=tmp_path,
        AI_RETRY_ATTEMPTS="1",
    )
    assert done.returncode == 1
    assert report(done)["status"] == "failed"
    assert "cannot connect" in report(done)["error"]
    assert "cannot connect" in done.stderr


def test_ctrl_c_stops_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(RULES))
    command = [sys.executable, "-m", "shared.cli", "run", "--provider", "script", "--model", "script.yaml"]
    env = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "JAATO_TRACE_LOG": str(tmp_path / "trace")}
    process = subprocess.Popen(
        [*command, "-b", "2", "slow one", "slow two", "quick"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    # With two places for three tasks, of which two never end, nothing is printed: wait until both are at work.
    while "running" not in _trace(tmp_path):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130


def _trace(folder: Path) -> str:
    path = folder / "trace"
    return path.read_text() if path.exists() else ""
