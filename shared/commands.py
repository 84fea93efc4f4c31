"""Commands that a person types: finding, parsing and running them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from shared.errors import ToolArgumentError
from shared.plugin import UserCommand


def parse_command_args(command: UserCommand, raw: str | Sequence[str]) -> dict[str, Any]:
    """Typed words as named arguments; without declared parameters they come as `args`."""
    words = _split(raw) if isinstance(raw, str) else [str(word) for word in raw]
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
            parsed[parameter.name] = " ".join(words[index:])
            break
        parsed[parameter.name] = int(words[index]) if words[index].isdecimal() else words[index]
    return parsed


def _split(raw: str) -> list[str]:
    try:
        return shlex.split(raw)
    except ValueError:  # an unbalanced quote in free text is no reason to refuse it
        return raw.split()


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
