"""Command tools: a program of the plugin that reads the arguments as JSON on stdin and answers on stdout."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.command_environment import command_environment
from shared.config import environment
from shared.definitions.files import is_inside
from shared.definitions.manifest_entries import CommandEntry
from shared.errors import ToolDenied, ToolError, ToolTimeout
from shared.process import run_process
from shared.toolbox import ToolOutput
from shared.tools import Tool, ToolContext
from shared.types import ToolSchema

MAX_OUTPUT_BYTES = 4 << 20
ERROR_CHARS = 4_000
_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w.-]*)\}")
_PYTHONS = ("python", "python3")


def command_tool(entry: CommandEntry, *, plugin: str, root: Path, config: Mapping[str, Any]) -> Tool:
    """The tool of a command entry; its program runs in the plugin's folder."""

    def invoke(args: Mapping[str, Any], context: ToolContext) -> Any:
        _require_caller(entry, context)
        return _run(entry, args, context, root=root, config=config)

    schema = ToolSchema(entry.name, entry.description, {"type": "object", "properties": {}, **entry.schema})
    only = entry.agents[0] if entry.agents is not None and len(entry.agents) == 1 else None
    return Tool(schema, invoke, plugin=plugin, auto_approved=entry.auto_approved, required_agent=only)


def _require_caller(entry: CommandEntry, context: ToolContext) -> None:
    """The rule for several agents, or none at all; that for one is the toolbox's."""
    if entry.agents is None or len(entry.agents) == 1:
        return
    caller = context.session.spec.profile if context.session is not None else None
    if caller not in entry.agents:
        named = ", ".join(f"'{name}'" for name in entry.agents) or "none"
        raise ToolDenied(f"tool '{entry.name}' may only be called by these agents: {named}")


def _run(
    entry: CommandEntry, args: Mapping[str, Any], context: ToolContext, *, root: Path, config: Mapping[str, Any]
) -> Any:
    output = bytearray()

    def take(chunk: bytes) -> None:
        output.extend(chunk)
        if len(output) > MAX_OUTPUT_BYTES:
            raise ToolError(f"{entry.name} was stopped: it printed more than {MAX_OUTPUT_BYTES:,} bytes")

    with tempfile.TemporaryFile() as errors:
        end = run_process(
            _argv(entry, args, context, root=root, config=config),
            cwd=str(root),
            env=_environment(context, root, config),
            cancel=context.cancel,
            timeout=entry.timeout_seconds,
            on_output=take,
            stdin=json.dumps(dict(args), ensure_ascii=False).encode("utf-8", "replace"),
            stderr_to=errors.fileno(),
        )
        context.cancel.raise_if_cancelled()
        said = _end_of(errors)
    if end.outcome == "timed_out":
        raise ToolTimeout(f"{entry.name} took longer than {entry.timeout_seconds:g} s and was stopped")
    return _answer(entry.name, bytes(output), end.exit_code or 0, said)


def _answer(name: str, output: bytes, code: int, said: str) -> Any:
    """What a program printed, as JSON if it is some; a failure, in whichever way it is told, is an error."""
    text = output.decode("utf-8", "replace").replace("\0", "\ufffd").strip()
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        value = text
    if code:
        detail = value if value is not None else said or "it printed nothing"
        return ToolOutput({"error": f"{name} failed with exit code {code}", "detail": detail}, is_error=True)
    if isinstance(value, dict) and value.get("success") is False:
        return ToolOutput(value, is_error=True)
    return value if value is not None else ""


def _argv(
    entry: CommandEntry, args: Mapping[str, Any], context: ToolContext, *, root: Path, config: Mapping[str, Any]
) -> list[str]:
    fixed = {"plugin_dir": str(root), "workspace": str(context.workspace.absolute())}

    def value_of(name: str) -> str:
        kind, _, key = name.partition(".")
        held = {"config": config, "args": args}.get(kind)
        if held is None or not key:
            return fixed.get(name, f"${{{name}}}")
        value = held.get(key)
        return value if isinstance(value, str) else "" if value is None else json.dumps(value)

    def filled(template: str) -> str:
        text = _VARIABLE.sub(lambda match: value_of(match[1]), template)
        if "\0" in text:
            raise ToolError(f"{entry.name}: an argument contains a NUL character, which no program can be given")
        if text.startswith("-") and not template.startswith("-"):
            raise ToolError(f"{entry.name}: an argument begins with '-', which the program would take for an option")
        return text

    return [_program(entry.command, root), *map(filled, entry.args)]


def _program(command: str, root: Path) -> str:
    """A program of the plugin by its path, any other by the name it has on this machine."""
    if "/" in command:
        inside = os.path.realpath(root / command)
        if not os.path.isabs(command) and not is_inside(inside, os.path.realpath(root)):
            raise ToolError(f"the program '{command}' is outside of its plugin")
        return command if os.path.isabs(command) else inside
    found = shutil.which(command)
    if found is None and command in _PYTHONS:
        found = sys.executable
    if not found:
        raise ToolError(f"the program '{command}' is not installed here")
    return found


def _environment(context: ToolContext, root: Path, config: Mapping[str, Any]) -> dict[str, str]:
    extra = {
        "JAATO_WORKSPACE": str(context.workspace.absolute()),
        "JAATO_PLUGIN_DIR": str(root),
        "JAATO_PLUGIN_CONFIG": json.dumps(dict(config)),
        "PYTHONDONTWRITEBYTECODE": "1",  # a plugin's folder stays as it was checked
    }
    return command_environment(environment(), extra=extra)


def _end_of(errors: Any) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - ERROR_CHARS))
    text: str = errors.read().decode("utf-8", "replace").replace("\0", "\ufffd").strip()
    return text
