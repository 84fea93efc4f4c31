"""Reading a SKILL.md: what loads, what is tolerated and said, what is refused, and that no right is gained."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.skills import manager_in, write_skill

from shared.errors import SkillNotFoundError, SkillParseError, SkillValidationError
from shared.skills import SkillInfo
from shared.skills.reader import SkillReading, read_skill
from shared.skills.requirements import missing


def reading(text: str, folder: str = "demo") -> SkillReading:
    return read_skill(text, path=f"/skills/{folder}/SKILL.md").reading


def usable(*lines: str, folder: str = "demo") -> SkillInfo:
    found = reading("\n".join(["---", "name: demo", "description: Shows.", *lines, "---", "Body"]), folder)
    assert found.info is not None, found.problems
    return found.info


def codes(text: str, folder: str = "demo") -> set[str]:
    return {problem.code for problem in reading(text, folder).problems}


def test_every_field_of_the_specification_and_the_extensions() -> None:
    text = """---
name: demo
description: Shows everything.
license: MIT
compatibility: needs git
metadata:
  author: me
  conduit:
    agent: weatherman
allowed-tools: Read, Bash(git add *)
disallowed-tools: [Write]
model: small
context: fork
agent: explorer
disable-model-invocation: true
user-invocable: false
argument-hint: "[file]"
hooks:
  PreToolUse: []
color: red
---

# Body
"""
    found = read_skill(text, path="/skills/demo/SKILL.md")
    info = found.reading.info
    assert info is not None
    assert found.reading.problems == ()
    assert (info.allowed_tools, info.disallowed_tools) == (("Read", "Bash(git add *)"), ("Write",))
    assert (info.model, info.context, info.agent, info.affinity) == ("small", "fork", "explorer", "weatherman")
    assert (info.disable_model_invocation, info.user_invocable, info.argument_hint) == (True, False, "[file]")
    assert info.has_hooks
    assert (found.details.license, found.details.compatibility) == ("MIT", "needs git")
    assert found.details.metadata["author"] == "me"
    assert found.details.hooks == {"PreToolUse": []}
    assert found.details.extra == {"color": "red"}
    assert found.body == "# Body"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no fences at all", "no-frontmatter"),
        ("---\nname: demo\ndescription: x\n", "unclosed-frontmatter"),
        ("---\nname: demo\n---\nBody", "description-missing"),
        ("---\nname: demo\ndescription: '  '\n---\nBody", "description-missing"),
        ("---\nname: demo\ndescription: [a]\n---\nBody", "description-missing"),
        ("---\nname: ../demo\ndescription: x\n---\n", "name-unsafe"),
        ('---\nname: "a\\u202eb"\ndescription: x\n---\n', "name-unsafe"),
        ("---\nname: ..\ndescription: x\n---\n", "name-unsafe"),
        ("---\nname: demo\ndescription: x\nagent: [a]\n---\n", "field-type"),
        ("---\nname: demo\ndescription: x\ndisallowed-tools: {a: b}\n---\n", "tools-unreadable"),
    ],
)
def test_refused(text: str, code: str) -> None:
    found = reading(text)
    assert found.info is None
    assert code in {problem.code for problem in found.problems if problem.severity == "error"}
    assert all(problem.line for problem in found.problems)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("---\ndescription: x\n---\nBody", "name-missing"),
        ("---\nname: Demo\ndescription: x\n---\n", "name-format"),
        ("---\nname: bad--name\ndescription: x\n---\n", "name-format"),
        ("---\nname: other\ndescription: x\n---\n", "name-folder-mismatch"),
        (f"---\nname: {'a' * 65}\ndescription: x\n---\n", "name-too-long"),
        ("---\nname: 123\ndescription: x\n---\n", "name-type"),
        (f"---\nname: demo\ndescription: {'x' * 1025}\n---\n", "description-too-long"),
        (f"---\nname: demo\ndescription: x\ncompatibility: {'x' * 501}\n---\n", "compatibility-too-long"),
        ("---\nname: demo\ndescription: When: now\n---\n", "yaml-repaired:description"),
        ("---\nname: demo\ndescription: x\ncontext: knife\n---\n", "unknown-value"),
        ("---\nname: demo\ndescription: x\nmetadata: 3\n---\n", "field-type"),
        ("---\nname: demo\ndescription: x\nuser-invokable: true\n---\n", "unknown-field"),
        ("---\nname: demo\ndescription: x\n---\n" + "line\n" * 501, "body-long"),
    ],
)
def test_tolerated_and_said(text: str, code: str) -> None:
    found = reading(text)
    assert found.info is not None
    assert code in {problem.code for problem in found.problems}
    assert all(problem.severity == "warning" for problem in found.problems)


def test_a_typo_is_answered_with_what_was_probably_meant() -> None:
    [problem] = reading("---\nname: demo\ndescription: x\nuser-invokable: true\n---\n").problems
    assert "Did you mean 'user-invocable'?" in str(problem)
    assert str(problem).startswith("/skills/demo/SKILL.md:4: unknown-field:")


def test_bom_and_windows_line_ends_are_no_defect() -> None:
    found = read_skill("\ufeff---\r\nname: demo\r\ndescription: x\r\n---\r\nBody\r\n", path="/s/demo/SKILL.md")
    assert found.reading.problems == ()
    assert found.body == "Body"


def test_four_states_of_a_tool_list_are_kept_apart() -> None:
    assert usable().allowed_tools is None
    assert usable("allowed-tools: []").allowed_tools == ()
    assert usable("allowed-tools:").allowed_tools == ()
    assert usable("allowed-tools: {Read: true}").allowed_tools == ()
    assert codes("---\nname: demo\ndescription: x\nallowed-tools:\n---\n") == {"tools-empty"}
    assert codes("---\nname: demo\ndescription: x\nallowed-tools: {Read: true}\n---\n") == {"tools-unreadable"}


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        ("Read, Grep", ("Read", "Grep")),
        ("Read Grep", ("Read", "Grep")),
        ("Bash(git add *) Bash(git, commit:*)", ("Bash(git add *)", "Bash(git, commit:*)")),
        ("Bash(git add *), Read", ("Bash(git add *)", "Read")),
        ("[Read, 'Bash(a b)']", ("Read", "Bash(a b)")),
        ("mcp__x__*", ("mcp__x__*",)),
        ("'Bash(git'", ()),
    ],
)
def test_shapes_of_tool_lists(written: str, tools: tuple[str, ...]) -> None:
    assert usable(f"allowed-tools: {written}").allowed_tools == tools


def test_an_unreadable_switch_is_taken_in_the_careful_way() -> None:
    info = usable("disable-model-invocation: maybe", "user-invocable: maybe")
    assert info.disable_model_invocation
    assert not info.user_invocable
    written = usable('disable-model-invocation: "yes"', "user-invocable: off")
    assert written.disable_model_invocation
    assert not written.user_invocable


@pytest.mark.parametrize("namespace", ["openclaw", "clawdbot", "clawdis", "moltbot", "nanobot"])
def test_requirements_under_every_name_of_the_format(namespace: str) -> None:
    block = (
        f'{{"{namespace}": {{"os": ["macos"], "requires": {{"bins": ["a"], "anyBins": ["b", "c"], "env": ["D"]}}}}}}'
    )
    for written in (block, f"'{block}'"):
        requires = usable(f"metadata: {written}").requires
        assert requires is not None
        assert (requires.bins, requires.any_bins, requires.env, requires.os) == (
            ("a",),
            ("b", "c"),
            ("D",),
            ("darwin",),
        )


def test_odd_requirements_are_understood() -> None:
    requires = usable('metadata: {"openclaw": {"requires": {"bin": "sh", "envs": "PATH"}}}').requires
    assert requires is not None
    assert (requires.bins, requires.env) == (("sh",), ("PATH",))
    assert missing(requires) is None


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    metadata = '{"openclaw": {"os": ["plan9"], "requires": {"bins": ["no-such-program"], "env": ["NO_SUCH_VAR"]}}}'
    write_skill(tmp_path / "project/.jaato/skills", "demo", metadata=metadata)
    manager = manager_in(tmp_path)
    assert [info.name for info in manager.list()] == ["demo"]
    reason = manager.unavailable("demo")
    assert reason is not None
    for word in ("plan9", "no-such-program", "NO_SUCH_VAR"):
        assert word in reason
    with pytest.raises(SkillValidationError, match="no-such-program"):
        manager.activate("demo")


def test_register_from_a_path_raises_what_fits(tmp_path: Path) -> None:
    manager = manager_in(tmp_path)
    with pytest.raises(SkillNotFoundError, match="no such file"):
        manager.register(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SkillNotFoundError, match=r"SKILL\.md"):
        manager.register(tmp_path / "empty")
    (tmp_path / "empty/SKILL.md").write_text("just text")
    with pytest.raises(SkillParseError, match="no-frontmatter"):
        manager.register(tmp_path / "empty")
    (tmp_path / "empty/SKILL.md").write_text("---\nname: empty\n---\n")
    with pytest.raises(SkillValidationError, match="description"):
        manager.register(tmp_path / "empty")
