"""Permissions in a conversation: what the model hears, and what a person can do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.tools import Lab, calls, results_of, steps

from shared.errors import ToolError
from shared.testing import scripted_client


def test_no_policy_and_no_console_denies_and_says_how_to_set_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PERMISSION_CONFIG_PATH", raising=False)
    with scripted_client(steps(calls(("add", {"a": 1})), "ok"), Lab(), permissions=None, workspace=tmp_path) as client:
        assert client.send_message("go") == "ok"
        (text,) = results_of(client.get_history())
    assert "permission denied for add" in text
    assert "configure_tools" in text


def test_a_person_changes_the_rules_with_the_permissions_command() -> None:
    script = steps(*[step for _ in range(3) for step in (calls(("add", {"a": 1})), "ok")])
    with scripted_client(script, Lab(), permissions="deny") as client:
        client.send_message("one")
        assert "denied" in results_of(client.get_history())[-1]
        client.execute_user_command("permissions", "allow add")
        client.send_message("two")
        assert results_of(client.get_history())[-1] == "2"
        client.execute_user_command("permissions", "clear")
        client.send_message("three")
        assert "denied" in results_of(client.get_history())[-1]
        said, shared = client.execute_user_command("permissions", 'check add {"a": 1}')
        assert said.startswith("deny")
        assert shared is False


def test_commands_are_listed_completed_and_unknown_ones_named() -> None:
    with scripted_client(steps("ok"), Lab(), permissions="ask") as client:
        assert "permissions" in [command.name for command in client.get_user_commands()]
        values = [found.value for found in client.get_command_completions("permissions", ["al"])]
        assert values == ["allow"]
        tools = [found.value for found in client.get_command_completions("permissions", ["allow", "ad"])]
        assert tools == ["add"]
        with pytest.raises(ToolError, match="Did you mean 'permissions'"):
            client.execute_user_command("permision")


def test_a_policy_file_by_path_and_a_broken_one(tmp_path: Path) -> None:
    good = tmp_path / "policy.json"
    good.write_text(json.dumps({"version": "1.0", "defaultPolicy": "deny", "whitelist": {"tools": ["add"]}}))
    with scripted_client(steps(calls(("add", {"a": 1}), ("crash", {})), "ok"), Lab(), permissions=str(good)) as client:
        client.send_message("go")
        allowed, denied = results_of(client.get_history())
    assert allowed == "2"
    assert "denied" in denied
    good.write_text("{")
    with scripted_client(steps(calls(("add", {"a": 1})), "ok"), Lab(), permissions=str(good)) as client:
        client.send_message("go")
        (text,) = results_of(client.get_history())
    assert "policy.json" in text
