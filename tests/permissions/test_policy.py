"""Policies: order of evaluation, argument rules, strict loading, and never failing open."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.permission_calls import CLI, READ, WRITE, outcome, tool

from shared.errors import PolicyError
from shared.permissions import Decision, Rules, build_gate
from shared.permissions.host_queue import QueueChannel
from shared.permissions.policy_file import load_policy, parse_policy


def action(policy: Any, used: Any, args: dict[str, Any], workspace: Path | None = None) -> str:
    return build_gate(policy, workspace=workspace).evaluate(used, args).action


# -- order ---------------------------------------------------------------------------------------------------------


def test_words() -> None:
    for word in ("allow", "ask", "deny"):
        assert action(word, WRITE, {}) == word


def test_blacklist_beats_whitelist_beats_session_beats_default() -> None:
    policy = {
        "defaultPolicy": "deny",
        "blacklist": {"tools": ["write_file"], "patterns": ["rm *"]},
        "whitelist": {"tools": ["write_file", "cli"]},
    }
    gate = build_gate(policy)
    assert gate.evaluate(WRITE, {}).method == "blacklist"
    assert gate.evaluate(CLI, {"command": "rm x"}).method == "blacklist"
    assert gate.evaluate(CLI, {"command": "ls"}).method == "whitelist"
    assert gate.evaluate(tool("other"), {}).action == "deny"
    gate.allow(Rules(tools=("other", "write_file")))
    assert gate.evaluate(tool("other"), {}).method == "session_whitelist"
    assert gate.evaluate(WRITE, {}).method == "blacklist"


def test_a_persons_denial_beats_the_whitelist() -> None:
    gate = build_gate({"whitelist": {"tools": ["write_file"]}})
    gate.deny(Rules(tools=("write_file",)))
    assert gate.evaluate(WRITE, {}).action == "deny"
    gate.allow(Rules(tools=("write_file",)))
    assert gate.evaluate(WRITE, {}).action == "allow"


def test_auto_approved_tools_count_as_whitelisted_and_the_blacklist_beats_them() -> None:
    assert action("deny", READ, {}) == "allow"
    assert action({"blacklist": {"tools": ["read_*"]}}, READ, {}) == "deny"
    assert (
        action(
            {"defaultPolicy": "allow", "blacklist": {"patterns": ["read_file(path=/etc*)"]}}, READ, {"path": "/etc/x"}
        )
        == "deny"
    )


def test_tool_names_may_be_globs() -> None:
    policy = {"defaultPolicy": "ask", "whitelist": {"tools": ["read_*"]}, "blacklist": {"tools": ["WRITE_*"]}}
    assert action(policy, tool("read_dir"), {}) == "allow"
    assert action(policy, WRITE, {}) == "deny"
    assert action({"whitelist": {"tools": ["READ_*"]}}, tool("read_dir"), {}) == "ask"


@pytest.mark.parametrize("name", ["cli", "cli_based_tool", "run_command"])
def test_patterns_are_held_against_the_command_line_of_shell_tools(name: str) -> None:
    policy = {"whitelist": {"patterns": ["git *"]}, "blacklist": {"patterns": ["git push*"]}}
    assert action(policy, tool(name), {"command": "git status"}) == "allow"
    assert action(policy, tool(name), {"command": "git status; rm -rf ~"}) == "ask"
    assert action(policy, tool(name), {"command": "git push"}) == "deny"
    assert action(policy, tool("other"), {"command": "git status"}) == "ask"


def test_the_table_of_shell_tools_can_be_extended() -> None:
    policy = {"shellTools": {"sh": "line"}, "whitelist": {"patterns": ["git *"]}}
    assert action(policy, tool("sh"), {"line": "git status"}) == "allow"
    assert action(policy, tool("sh"), {"line": "git status|sh"}) == "ask"


@pytest.mark.parametrize(
    "extra",
    [
        {"env": {"LD_PRELOAD": "x"}},
        {"cwd": "/evil"},
        {"cwd": ".."},
        {"stdin": "x"},
        {"args": ["x"]},
        {"shell": "/tmp/sh"},
    ],
)
def test_a_command_pattern_says_nothing_about_other_arguments(extra: dict[str, Any]) -> None:
    assert action({"whitelist": {"patterns": ["git *"]}}, CLI, {"command": "git status", **extra}) == "ask"


@pytest.mark.parametrize("extra", [{"timeout_seconds": 5}, {"cwd": "."}, {"cwd": None}, {"args": []}, {"env": {}}])
def test_arguments_that_change_nothing_do_not_matter(extra: dict[str, Any]) -> None:
    assert action({"whitelist": {"patterns": ["git *"]}}, CLI, {"command": "git status", **extra}) == "allow"


@pytest.mark.parametrize("command", [["git", "status"], 5, None, {"a": 1}])
def test_a_command_that_is_no_text_is_never_whitelisted_by_pattern(command: Any) -> None:
    assert action({"whitelist": {"patterns": ["git *", "*"]}}, CLI, {"command": command}) == "ask"


def test_separate_argument_lists_are_seen_by_the_blacklist() -> None:
    policy = {"defaultPolicy": "allow", "blacklist": {"patterns": ["rm -rf *"]}}
    assert action(policy, CLI, {"command": "rm", "args": ["-rf", "x"]}) == "deny"
    assert action(policy, CLI, {"command": ["rm", "-rf", "x"]}) == "deny"


def test_a_line_that_hides_its_program_is_not_let_through_by_default() -> None:
    policy = {"defaultPolicy": "allow", "blacklist": {"patterns": ["rm -rf *"]}}
    assert action(policy, CLI, {"command": "$(echo rm) -rf x"}) == "ask"
    assert action(policy, CLI, {"command": "make test"}) == "allow"
    assert action({**policy, "whitelist": {"tools": ["cli"]}}, CLI, {"command": "$(echo rm) -rf x"}) == "ask"
    assert action({**policy, "whitelist": {"patterns": ["bash"]}}, CLI, {"command": "bash"}) == "allow"


# -- signatures of other tools -------------------------------------------------------------------------------------


def test_signatures_have_sorted_keys() -> None:
    policy = {"whitelist": {"patterns": ["write_file(content=*, path=src/*)"]}}
    assert action(policy, WRITE, {"path": "src/a", "content": "x"}) == "allow"
    assert action(policy, WRITE, {"path": "etc/a", "content": "x"}) == "ask"


@pytest.mark.parametrize(
    "args",
    [
        {"content": "x, path=src/a", "path": "/etc/passwd"},
        {"content": "path=src/a", "path": "/etc/passwd"},
        {"content": "x", "path": "src/../../etc/passwd"},
        {"path": "/etc/passwd", "path=src/x, z": 1},
        {"content": "x", "path": "src/\u202ea"},
        {"content": "x", "path": "src/\uff0e\uff0e/a"},
        {"content": "x", "path": "src/\x1b[2J"},
    ],
)
def test_no_value_can_pose_as_another_argument(args: dict[str, Any]) -> None:
    assert action({"whitelist": {"patterns": ["write_file(*path=src/*)"]}}, WRITE, args) == "ask"


@pytest.mark.parametrize("content", ["half a ½ and so on…", "two\nlines", "a/b 中文 ü", "k=v, (x)"])
def test_ordinary_text_in_a_value_is_no_obstacle(content: str) -> None:
    policy = {"whitelist": {"patterns": ["write_file(content=*, path=src/*)"]}}
    assert action(policy, WRITE, {"content": content, "path": "src/a"}) == "allow"


def test_a_rule_about_the_folder_of_a_command_does_not_allow_the_command() -> None:
    policy = {"whitelist": {"arguments": {"cli": {"cwd": ["src/"]}}}}
    assert action(policy, CLI, {"command": "rm -rf x", "cwd": "src/a"}) == "ask"


def test_patterns_for_other_tools_leave_no_doubt_about_commands() -> None:
    policy = {"defaultPolicy": "allow", "blacklist": {"patterns": ["write_file(path=/etc/*)"]}}
    assert action(policy, CLI, {"command": "cat x | bash"}) == "allow"


def test_blacklist_patterns_see_through_spelling() -> None:
    policy = {"defaultPolicy": "allow", "blacklist": {"patterns": ["*path=/etc/*"]}}
    for path in ("/etc/x", "/tmp/../etc/x", "/e\u200btc/x", "\uff0fetc\uff0fx"):
        assert action(policy, WRITE, {"path": path}) == "deny"
    assert action(policy, WRITE, {"path": "/srv/x"}) == "allow"


# -- argument prefixes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "value", "expected"),
    [
        ("src/", "src/a.py", "allow"),
        ("src", "src/a.py", "allow"),
        ("src", "src", "allow"),
        ("src", "src-secret/a", "ask"),
        ("src/", "src/../secret", "ask"),
        ("src/", "src/../src/a", "allow"),
        ("src/", "src\\..\\..\\x", "ask"),
        ("src/", "src/\uff0e\uff0e/x", "ask"),
        ("src/", "sr\u0441/a", "ask"),  # Cyrillic
        ("src/", "src/a\u200b", "ask"),
        ("src/", "/etc/src/", "ask"),
        ("src/test_", "src/test_a.py", "allow"),
        ("https://example.com", "https://example.com/a", "allow"),
        ("https://example.com", "https://example.com.evil.org", "ask"),
        ("https://example.com", "https://example.com@evil.org/", "ask"),
        ("https://example.com", "https://example.com:80@evil.org/", "ask"),
        ("https://example.com/api/", "https://example.com/api/../admin", "ask"),
        ("https://example.com/api/", "https://example.com/api/%2e%2e/admin", "ask"),
        ("weather", "weather in Rome", "allow"),
        ("src/", ["src/a", "src/b"], "allow"),
        ("src/", ["src/a", "/etc/b"], "ask"),
        ("src/", [], "ask"),
        ("src/", None, "ask"),
    ],
)
def test_whitelisted_prefixes_are_not_dodged(tmp_path: Path, prefix: str, value: Any, expected: str) -> None:
    policy = {"whitelist": {"arguments": {"write_file": {"path": [prefix]}}}}
    assert action(policy, WRITE, {"path": value}, tmp_path) == expected


def test_a_link_out_of_a_whitelisted_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "out").symlink_to("/etc")
    policy = {"whitelist": {"arguments": {"write_file": {"path": ["src/"]}}}}
    assert action(policy, WRITE, {"path": "src/out/passwd"}, tmp_path) == "ask"
    assert action(policy, WRITE, {"path": "src/in/passwd"}, tmp_path) == "allow"


def test_every_listed_argument_must_fit() -> None:
    policy = {"whitelist": {"arguments": {"write_file": {"path": ["src/"], "mode": ["w"]}}}}
    assert action(policy, WRITE, {"path": "src/a", "mode": "w"}) == "allow"
    assert action(policy, WRITE, {"path": "src/a", "mode": "x"}) == "ask"
    assert action(policy, WRITE, {"path": "src/a"}) == "ask"


@pytest.mark.parametrize(
    "value",
    [
        "/etc/x",
        "/etc",
        "/srv/../etc/x",
        "//etc/x",
        "/ETC/x",
        "file:///etc/x",
        "/e\u200btc/x",
        " /etc/x",
        ["a", "/etc/x"],
    ],
)
def test_blacklisted_prefixes_are_hard_to_dodge(tmp_path: Path, value: Any) -> None:
    policy = {"defaultPolicy": "allow", "blacklist": {"arguments": {"write_file": {"path": ["/etc"]}}}}
    assert action(policy, WRITE, {"path": value}, tmp_path) == "deny"
    assert action(policy, WRITE, {"path": "/srv/etc"}, tmp_path) == "allow"


def test_a_link_into_a_blacklisted_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    policy = {"defaultPolicy": "allow", "blacklist": {"arguments": {"write_file": {"path": ["/etc/"]}}}}
    assert action(policy, WRITE, {"path": "link/passwd"}, tmp_path) == "deny"


def test_prefixes_of_a_command_are_commands_too() -> None:
    policy = {"whitelist": {"arguments": {"cli": {"command": ["git "]}}}}
    assert action(policy, CLI, {"command": "git status"}) == "allow"
    assert action(policy, CLI, {"command": "git status; rm x"}) == "ask"
    denied = {"defaultPolicy": "allow", "blacklist": {"arguments": {"cli": {"command": ["rm "]}}}}
    assert action(denied, CLI, {"command": "true; /bin/rm x"}) == "deny"


# -- loading -------------------------------------------------------------------------------------------------------

BROKEN: list[tuple[str, str]] = [
    ("", "not valid JSON"),
    ("{", "line 1"),
    ("[]", "expected an object"),
    ("null", "expected an object"),
    ('"allow"', "expected an object"),
    ('{"defaultPolicy": "alow"}', "Did you mean 'allow'?"),
    ('{"defaultPolicy": true}', "defaultPolicy"),
    ('{"default_policy": "allow"}', "Did you mean 'defaultPolicy'?"),
    ('{"blacklst": {}}', "Did you mean 'blacklist'?"),
    ('{"blacklist": []}', "blacklist: expected an object"),
    ('{"blacklist": null}', "blacklist: expected an object"),
    ('{"blacklist": {"tool": ["x"]}}', "Did you mean 'tools'?"),
    ('{"blacklist": {"tools": "cli"}}', "blacklist.tools: expected a list"),
    ('{"blacklist": {"patterns": ["x", 5]}}', "blacklist.patterns[1]"),
    ('{"whitelist": {"patterns": [""]}}', "whitelist.patterns[0]"),
    ('{"whitelist": {"arguments": ["x"]}}', "whitelist.arguments"),
    ('{"whitelist": {"arguments": {"cli": ["x"]}}}', "whitelist.arguments.cli"),
    ('{"whitelist": {"arguments": {"cli": {}}}}', "whitelist.arguments.cli"),
    ('{"whitelist": {"arguments": {"cli": {"command": "x"}}}}', "whitelist.arguments.cli.command"),
    ('{"channel": {"type": "fax"}}', "unknown channel 'fax'"),
    ('{"channel": {"type": "webhook"}}', "channel.endpoint"),
    ('{"channel": {"type": "webhook", "endpoint": "ftp://x"}}', "channel.endpoint"),
    ('{"channel": {"type": "file"}}', "channel.endpoint"),
    ('{"channel": {"timeout": 0}}', "channel.timeout"),
    ('{"channel": {"timeout": "5"}}', "channel.timeout"),
    ('{"channel": {"timeout": NaN}}', "channel.timeout"),
    ('{"version": "2.0"}', "version"),
    ('{"sanitization": {}}', "sanitization"),
    ('{"defaultPolicy": "deny", "defaultPolicy": "allow"}', "written twice"),
    ("[" * 100_000, "nested too deeply"),
    ('{"shellTools": {"x": 5}}', "shellTools"),
]


@pytest.mark.parametrize(("text", "problem"), BROKEN)
def test_a_broken_file_denies_everything_and_says_where(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "policy.json"
    path.write_text(text)
    gate = build_gate(path, channel=QueueChannel())
    for used in (WRITE, READ, CLI):
        said = outcome(gate, used, {"command": "ls"})
        assert str(path) in said
        assert problem in said
        assert "Do not try the same call again" in said


def test_an_unreadable_or_missing_file_denies_everything(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin").write_bytes(b'{"x": "\xe9"}')
    (tmp_path / "large").write_text(" " * 1_000_001)
    for name in ("missing", "dangling", "folder", "pipe", "latin", "large"):
        said = outcome(build_gate(tmp_path / name), READ, {})
        assert str(tmp_path / name) in said
        assert "broken" in said


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_read_permission_denies_everything(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"defaultPolicy": "allow"}')
    path.chmod(0)
    assert "cannot be read" in outcome(build_gate(path), READ, {})


@pytest.mark.parametrize(
    ("text", "problem"), [case for case in BROKEN if case[0].startswith('{"') and "twice" not in case[1]]
)
def test_a_broken_mapping_is_an_error_at_once(text: str, problem: str) -> None:
    with pytest.raises(PolicyError, match="permissions"):
        build_gate(json.loads(text))


def test_a_mistyped_word_is_an_error_at_once() -> None:
    with pytest.raises(PolicyError, match="Did you mean 'allow'"):
        build_gate("alow")


def test_a_good_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text("\ufeff" + json.dumps({"version": "1.0", "defaultPolicy": "deny", "whitelist": {"tools": ["cli"]}}))
    policy = load_policy(path)
    assert (policy.default, policy.whitelist.tools, policy.source, policy.problem) == ("deny", ("cli",), path, "")
    assert outcome(build_gate(str(path)), CLI, {"command": "ls"}) == "yes"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tools", "patterns", "arguments", "defaultPolicy", "blacklist", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_any_json_is_a_policy_or_a_policy_error(value: Any) -> None:
    with contextlib.suppress(PolicyError):
        assert parse_policy(value).default in ("allow", "ask", "deny")


def test_reload_reads_the_file_again(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"defaultPolicy": "deny"}')
    gate = build_gate(path)
    path.write_text('{"defaultPolicy": "allow"}')
    assert gate.evaluate(WRITE, {}).action == "deny"
    gate.reload()
    assert outcome(gate, WRITE, {}) == "yes"
    path.write_text("broken")
    gate.reload()
    assert "broken" in outcome(gate, WRITE, {})


def test_decisions_have_names() -> None:
    assert Decision.parse(" Y ") == Decision(True)
    assert Decision.parse("Session  Tool") == Decision(True, "session", "tool")
    assert Decision.parse("never").allow is False
