"""Commands that a person types: parsed by their parameters, run by whatever executor a plugin has."""

from __future__ import annotations

from typing import Any

import pytest

from shared import CommandParameter, PluginRegistry, UserCommand
from shared.commands import Commands, parse_command_args, shown
from shared.errors import ToolArgumentError, ToolError

FREE = UserCommand("free", "")
TYPED = UserCommand(
    "typed",
    "",
    parameters=[
        CommandParameter("action", required=True),
        CommandParameter("count"),
        CommandParameter("rest", capture_rest=True),
    ],
)


@pytest.mark.parametrize(
    ("command", "raw", "expected"),
    [
        (FREE, "", {"args": []}),
        (FREE, 'a "b c" d', {"args": ["a", "b c", "d"]}),
        (FREE, ["x", "y z"], {"args": ["x", "y z"]}),
        (FREE, "it's fine", {"args": ["it's", "fine"]}),
        (TYPED, "go", {"action": "go"}),
        (TYPED, "go 12 and all the rest", {"action": "go", "count": 12, "rest": "and all the rest"}),
        (TYPED, "go -3", {"action": "go", "count": "-3"}),
    ],
)
def test_words_become_arguments(command: UserCommand, raw: Any, expected: dict[str, Any]) -> None:
    assert parse_command_args(command, raw) == expected


def test_a_missing_word_is_answered_with_the_usage() -> None:
    with pytest.raises(ToolArgumentError, match=r"missing <action>. Usage: typed <action> \[count\] \[rest\]"):
        parse_command_args(TYPED, "")


class Foreign:
    """A plugin of somebody else: commands with executors of every style."""

    name = "foreign"

    def get_tool_schemas(self) -> list[Any]:
        return []

    def get_executors(self) -> dict[str, Any]:
        async def later(args: dict[str, Any]) -> Any:
            return {"later": args}

        return {
            "by_dict": lambda args: {"dict": args},
            "by_keyword": lambda action, count=0: {"action": action, "count": count},
            "later": later,
        }

    def initialize(self, config: dict[str, Any] | None = None) -> None: ...
    def shutdown(self) -> None: ...
    def get_system_instructions(self) -> str | None:
        return None

    def get_auto_approved_tools(self) -> list[str]:
        return []

    def get_user_commands(self) -> list[UserCommand]:
        parameters = [CommandParameter("action", required=True), CommandParameter("count")]
        return [
            UserCommand("by_dict", ""),
            UserCommand("by_keyword", "", parameters=parameters),
            UserCommand("later", ""),
            UserCommand("missing", ""),
        ]


@pytest.fixture
def commands() -> Commands:
    registry = PluginRegistry()
    registry.register_plugin(Foreign(), expose=True)
    return Commands(registry)


def test_executors_of_every_style_are_run(commands: Commands) -> None:
    assert commands.run("by_dict", "a b")[1] == {"dict": {"args": ["a", "b"]}}
    assert commands.run("by_keyword", "go 2")[1] == {"action": "go", "count": 2}
    assert commands.run("later", "x")[1] == {"later": {"args": ["x"]}}


def test_unknown_commands_and_missing_executors_are_named(commands: Commands) -> None:
    with pytest.raises(ToolError, match="Did you mean 'by_dict'"):
        commands.run("by_dic")
    with pytest.raises(ToolError, match="'missing' has no executor of that name in plugin 'foreign'"):
        commands.run("missing")
    assert commands.completions("by_dict", []) == []


def test_results_are_shown_as_text() -> None:
    assert shown("text") == "text"
    assert shown({"count": 2, "items": [{"a": 1, "b": 2}]}) == "count: 2\nitems:\n  a: 1, b: 2"
    assert shown(5) == "5"
