"""Commands that a person types: finding, parsing and running them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from shared.errors import ToolArgumentError, ToolError, unknown_name
from shared.plugin import CommandCompletion, ToolPlugin, UserCommand
from shared.registry import PluginRegistry
from shared.tools import Tool
from shared.types import ToolSchema


class CommandSource(Protocol):
    """Something besides plugins that offers commands, out of the model's reach."""

    def get_user_commands(self) -> list[UserCommand]: ...
    def get_command_completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]: ...
    def run_command(self, name: str, args: Mapping[str, Any]) -> Any: ...


class _PluginCommands:
    """The commands of a plugin: its executors hold one under each command's name."""

    def __init__(self, plugin: ToolPlugin) -> None:
        self._plugin = plugin

    def get_user_commands(self) -> list[UserCommand]:
        return self._plugin.get_user_commands()

    def get_command_completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]:
        complete = getattr(self._plugin, "get_command_completions", None)
        return list(complete(command, list(args))) if complete is not None else []

    def run_command(self, name: str, args: Mapping[str, Any]) -> Any:
        executor = self._plugin.get_executors().get(name)
        if executor is None:
            raise ToolError(f"command '{name}' has no executor of that name in plugin '{self._plugin.name}'")
        command = next(each for each in self.get_user_commands() if each.name == name)
        fields: dict[str, Any] = {parameter.name: {} for parameter in command.parameters or ()}
        schema = ToolSchema(name, command.description, {"type": "object", "properties": fields})
        return Tool.from_executor(schema, executor, plugin=self._plugin.name).as_executor()(args)


class Commands:
    """All commands of a runtime: those of the exposed plugins, and of other sources."""

    def __init__(self, registry: PluginRegistry | None = None, extra: Sequence[CommandSource] = ()) -> None:
        self._registry, self._extra = registry, tuple(extra)

    def all(self) -> list[UserCommand]:
        """The commands; of two with one name the first counts."""
        return [command for command, _ in self._found().values()]

    def completions(self, name: str, args: Sequence[str]) -> list[CommandCompletion]:
        """How the arguments of a command may be completed."""
        found = self._found().get(name)
        return found[1].get_command_completions(name, args) if found is not None else []

    def run(self, name: str, args: str | Sequence[str] = "") -> tuple[UserCommand, Any]:
        """Run a command that a person typed."""
        found = self._found()
        if name not in found:
            raise ToolError(unknown_name("command", name, found))
        command, source = found[name]
        return command, source.run_command(name, parse_command_args(command, args))

    def _found(self) -> dict[str, tuple[UserCommand, CommandSource]]:
        names = self._registry.list_exposed() if self._registry is not None else []
        plugins = [plugin for name in names if self._registry and (plugin := self._registry.get_plugin(name))]
        found: dict[str, tuple[UserCommand, CommandSource]] = {}
        for source in [*self._extra, *map(_PluginCommands, plugins)]:
            for command in source.get_user_commands():
                found.setdefault(command.name, (command, source))
        return found


def parse_command_args(command: UserCommand, raw: str | Sequence[str]) -> dict[str, Any]:
    """Typed words as named arguments; without declared parameters they come as `args`."""
    words, rests = _split(raw) if isinstance(raw, str) else _given(raw)
    if not command.parameters:
        return {"args": words}
    parsed: dict[str, Any] = {}
    for index, parameter in enumerate(command.parameters):
        if index >= len(words):
            if parameter.required:
                usage = " ".join(f"<{p.name}>" if p.required else f"[{p.name}]" for p in command.parameters)
                raise ToolArgumentError(f"{command.name}: missing <{parameter.name}>. Usage: {command.name} {usage}")
            continue
        if parameter.capture_rest:
            parsed[parameter.name] = rests[index]
            break
        parsed[parameter.name] = int(words[index]) if words[index].isdecimal() else words[index]
    return parsed


_WORD = re.compile(r"""\s*((?:[^\s"']|"[^"]*"|'[^']*'|["'])+)""")


def _split(raw: str) -> tuple[list[str], list[str]]:
    """Words without their quotes; and for each word, the text from there on as it was typed."""
    words, rests = [], []
    for match in _WORD.finditer(raw):
        rests.append(raw[match.start(1) :].strip())
        words.append(re.sub(r""""([^"]*)"|'([^']*)'""", lambda m: m[1] or m[2] or "", match[1]))
    return words, rests


def _given(raw: Sequence[str]) -> tuple[list[str], list[str]]:
    words = [str(word) for word in raw]
    return words, [" ".join(words[index:]) for index in range(len(words))]


def shown(result: Any) -> str:
    """The result of a command as text for a person."""
    if isinstance(result, str):
        return result
    if isinstance(result, Mapping):
        return "\n".join(_entry(str(key), value) for key, value in result.items())
    return str(result)


def _entry(key: str, value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        lines = [", ".join(f"{k}: {v}" for k, v in item.items()) for item in value]
        return f"{key}:\n" + "\n".join(f"  {line}" for line in lines)
    return f"{key}: {value}"
