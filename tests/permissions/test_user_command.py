"""The `permissions` command, as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.permission_calls import CLI, READ, WRITE, Asking, outcome, until

from shared.errors import ToolError
from shared.permissions import PermissionBroker, build_gate
from shared.permissions.host_queue import QueueChannel


@pytest.fixture
def broker() -> PermissionBroker:
    policy = {"blacklist": {"patterns": ["rm *"]}, "whitelist": {"arguments": {"write_file": {"path": ["src/"]}}}}
    return build_gate(policy, channel=QueueChannel(), tools=lambda: [CLI, READ, WRITE])


def run(broker: PermissionBroker, action: str = "", rest: str = "") -> str:
    return broker.run_command("permissions", {"action": action, "rest": rest})


def test_it_is_one_command_that_the_model_does_not_see(broker: PermissionBroker) -> None:
    (command,) = broker.get_user_commands()
    with pytest.raises(ToolError, match="unknown command 'other'"):
        broker.run_command("other", {})
    assert broker.get_command_completions("other", []) == []
    assert (command.name, command.share_with_model) == ("permissions", False)


def test_show(broker: PermissionBroker) -> None:
    shown = run(broker)
    assert "default: ask" in shown
    assert "blacklist: pattern 'rm *'" in shown
    assert "whitelist: write_file.path starting with 'src/'" in shown
    run(broker, "allow", "git *")
    run(broker, "deny", "write_file")
    shown = run(broker, "show")
    assert "this session: allow: pattern 'git *'" in shown
    assert "this session: deny: tool 'write_file'" in shown


def test_show_lists_problems_and_waiting_questions(tmp_path: Path) -> None:
    broken = build_gate(tmp_path / "missing.json")
    assert "broken, everything is denied" in run(broken)
    broker = build_gate("ask", channel=QueueChannel())
    asking = Asking(broker, WRITE, {})
    until(broker.pending)
    assert "waiting: main: write_file" in run(broker)
    broker.close()
    asking.join()


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ('cli {"command": "rm x"}', "deny: blacklisted by pattern 'rm *'"),
        ("cli true; rm x", "deny: blacklisted by pattern 'rm *'"),
        ("cli", "ask:"),
        ('write_file {"path": "src/a"}', "allow: whitelisted by arguments of 'write_file'"),
        ("read_file", "allow: its plugin approves it"),
        ("nothing", "(no tool 'nothing' is exposed)"),
        ("", "Error: check needs a tool"),
        ("write_file {", "Error: the arguments are not valid JSON"),
        ("write_file [1]", "Error: the arguments must be a JSON object"),
    ],
)
def test_check(broker: PermissionBroker, rest: str, expected: str) -> None:
    assert expected in run(broker, "check", rest)


def test_allow_deny_default_clear() -> None:
    broker = build_gate("deny")
    assert outcome(broker, WRITE, {}) != "yes"
    run(broker, "allow", "write_file")
    assert outcome(broker, WRITE, {}) == "yes"
    run(broker, "allow", "git *")
    assert outcome(broker, CLI, {"command": "git status"}) == "yes"
    assert outcome(broker, CLI, {"command": "git status; rm x"}) != "yes"
    run(broker, "deny", "write_file")
    assert outcome(broker, WRITE, {}) != "yes"
    run(broker, "default", "allow")
    assert outcome(broker, CLI, {"command": "make; make"}) == "yes"
    run(broker, "clear")
    assert outcome(broker, CLI, {"command": "make; make"}) != "yes"


@pytest.mark.parametrize(
    ("action", "rest", "expected"),
    [("shwo", "", "Did you mean 'show'?"), ("allow", "", "allow needs"), ("default", "alow", "Did you mean 'allow'?")],
)
def test_mistakes_are_answered_with_a_sentence(broker: PermissionBroker, action: str, rest: str, expected: str) -> None:
    assert expected in run(broker, action, rest)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], ["show", "check", "allow", "deny", "default", "clear"]),
        (["d"], ["deny", "default"]),
        (["default", ""], ["allow", "ask", "deny"]),
        (["check", "w"], ["write_file"]),
        (["show", ""], []),
        (["check", "cli", "x"], []),
    ],
)
def test_completions(broker: PermissionBroker, args: list[str], expected: list[str]) -> None:
    assert [found.value for found in broker.get_command_completions("permissions", args)] == expected
