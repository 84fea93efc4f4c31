"""`jaato profiles` as a person meets it: real processes, lists, lint with exit codes, explanations."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.command import jaato
from support.plugin_folders import write_plugin


def profiles(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return jaato("profiles", *args, cwd=cwd, HOME=str(cwd / "home"))


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


def test_a_plugin_that_nobody_has_is_told_before_a_spawn_fails(work: Path) -> None:
    path = work / ".jaato/profiles/typo.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("description: d\nplugins: [file_edt, theirs]\nbudget: {cost_usd: 0.1}\n")
    write_plugin(work / ".jaato/plugins/theirs", {"name": "theirs"})
    done = profiles("lint", str(path), cwd=work)
    assert done.returncode == 0
    assert (
        f"{path}: warning: unknown-plugin: plugins: unknown plugin 'file_edt'. Did you mean 'file_edit'?" in done.stdout
    )
    assert done.stdout.count("unknown-plugin") == 1, "one that is there and not trusted is known"
    assert profiles("lint", "--strict", str(path), cwd=work).returncode == 1
    told = profiles("explain", "typo", cwd=work)
    assert "! plugins: unknown plugin 'file_edt'. Did you mean 'file_edit'?" in told.stdout
    assert "limits: max_turns 10, cost_usd 0.1" in told.stdout
    assert "not trusted: never more than its caller has" in told.stdout
    assert told.stderr == ""


def test_lint_says_so_when_nothing_is_wrong(tmp_path: Path) -> None:
    _write(tmp_path / ".jaato/agents/fine.md", "name: fine\ndescription: d")
    done = profiles("lint", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing wrong in definition files\n")


def test_explain_of_a_broken_or_unknown_profile(work: Path) -> None:
    _write(work / ".jaato/agents/bad.md", "name: bad\ntools: [Read")
    done = profiles("explain", "bad", cwd=work)
    assert done.returncode == 0
    assert "bad: no usable profile" in done.stdout
    assert done.stdout.count("yaml-unreadable") == 1, "told once"
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
