"""`jaato profiles` as a person meets it: real processes, lists, lint with exit codes, explanations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def profiles(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder that is its own home, and check that it never shows a traceback."""
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env = {**keep, "HOME": str(cwd / "home"), "PYTHONPATH": str(ROOT), "JAATO_TRACE_LOG": ""}
    command = [sys.executable, "-m", "shared.cli", "profiles", *args]
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


def _write(path: Path, front: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{front}\n---\nDo it.\n")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    _write(tmp_path / ".jaato/agents/rev.md", "name: rev\ndescription: ours\ntools: Read, Bash(git *)\nmaxTurns: 4")
    _write(tmp_path / ".claude/agents/rev.md", "name: rev\ndescription: theirs")
    _write(tmp_path / ".claude/agents/other.md", "name: other\ndescription: more: of it\ntools: Grep, WebFetch")
    return tmp_path


def test_list(work: Path) -> None:
    done = profiles(cwd=work)
    assert done.returncode == 0
    assert "rev  [project]  ours" in done.stdout.splitlines()
    assert "summarizer  [builtin]" in done.stdout
    assert "other" not in done.stdout
    assert "1 warning in definition files" in done.stderr
    both = profiles("--all", "--agents", "claude", cwd=work).stdout
    assert "other  [extra]  more: of it" in both
    assert "lost: rev from extra" in both
    assert "overridden by project" in both


def test_list_as_json(work: Path) -> None:
    report = json.loads(profiles("--all", "--json", "--agents", "claude", cwd=work).stdout)
    by_name = {each["name"]: each for each in report["profiles"]}
    assert by_name["rev"]["tools"] == ["read_file"]
    assert by_name["other"]["unmapped_tools"] == ["WebFetch"]
    assert [each["name"] for each in report["lost"]] == ["rev"]
    assert {each["code"] for each in report["problems"]} == {
        "tool-pattern",
        "yaml-repaired:description",
        "tool-unmapped",
    }


def test_lint_leaves_with_one_for_errors_and_in_strict_mode_for_warnings(work: Path) -> None:
    done = profiles("lint", cwd=work)
    assert done.returncode == 0
    assert ".jaato/agents/rev.md:4: warning: tool-pattern: " in done.stdout
    assert profiles("lint", "--strict", cwd=work).returncode == 1
    _write(work / ".jaato/agents/bad.md", "name: bad\ndescription: d\ntols: Read")
    done = profiles("lint", cwd=work)
    assert done.returncode == 1
    assert "bad.md:4: error: unknown-field: " in done.stdout
    assert "did you mean 'tools'" in done.stdout
    assert "1 error and 1 warning" in done.stderr
    found = json.loads(profiles("lint", "--json", cwd=work).stdout)
    assert [(each["line"], each["code"]) for each in found] == [(4, "unknown-field"), (4, "tool-pattern")]


def test_lint_of_one_file_or_folder(work: Path) -> None:
    file = profiles("lint", ".claude/agents/other.md", cwd=work)
    assert [line.split(": ")[2] for line in file.stdout.splitlines()] == ["yaml-repaired:description", "tool-unmapped"]
    assert "more: of it" in file.stdout
    assert profiles("lint", ".claude", cwd=work).stdout == file.stdout
    assert profiles("lint", "nowhere.md", cwd=work).returncode == 1


def test_explain_tells_the_source_the_losers_and_the_tools(work: Path) -> None:
    done = profiles("explain", "rev", "--agents", "claude", cwd=work)
    assert done.returncode == 0
    assert done.stdout.startswith("rev: from project (")
    assert "lost: rev from extra" in done.stdout
    assert "  + read_file: is asked for (tools), plugin 'file_edit'" in done.stdout
    assert "  - Bash(git *): allows a part of what a tool does" in done.stdout
    story = json.loads(profiles("explain", "other", "--json", "--agents", "claude", cwd=work).stdout)
    given = {each["tool"]: each["given"] for each in story["tools"]}
    assert given == {"search_files": True, "WebFetch": False}
    assert story["winner"]["tools"] == ["search_files"]


def test_explain_of_a_broken_or_unknown_profile(work: Path) -> None:
    _write(work / ".jaato/agents/bad.md", "name: bad\ntools: [Read")
    done = profiles("explain", "bad", cwd=work)
    assert done.returncode == 0
    assert "bad: no usable profile" in done.stdout
    unknown = profiles("explain", "revv", cwd=work)
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("jaato: unknown profile 'revv'")
    assert "rev" in unknown.stderr


def test_explain_of_a_profile_that_inherits_or_denies(work: Path) -> None:
    _write(work / ".jaato/agents/i.md", "name: i\ndescription: d\ndisallowedTools: Bash")
    out = profiles("explain", "i", cwd=work).stdout
    assert "  + *: all tools of the caller" in out
    assert "  - cli: is denied" in out
    _write(work / ".jaato/agents/n.md", "name: n\ndescription: d\ntools: []")
    assert "  no tools: none are asked for" in profiles("explain", "n", cwd=work).stdout
