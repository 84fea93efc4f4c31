"""CliPlugin: the `cli` tool, which runs one shell command."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from shared import config
from shared.command_environment import command_environment
from shared.errors import ToolError
from shared.plugin import PermissionDisplayInfo
from shared.plugins._base import WORKSPACE_SCHEMA, WorkspacePlugin
from shared.plugins._visible import visible, visible_line
from shared.plugins.cli.output import Output
from shared.process import ProcessEnd, run_process
from shared.toolbox import ToolOutput
from shared.tools import ToolContext, tool


class CliPlugin(WorkspacePlugin):
    """Runs shell commands in the workspace, each in a process session of its own."""

    name = "cli"
    config_keys: ClassVar[Mapping[str, Any]] = {
        "timeout_seconds": 120,
        "max_timeout_seconds": 3600,
        "output_chars": 30_000,
        "kill_grace_seconds": 0.5,
        "env_allow": [],
        "env": {},
        "workspace": None,
    }
    harmless_settings: ClassVar[frozenset[str]] = frozenset({"timeout_seconds", "output_chars"})
    config_schema: ClassVar[Mapping[str, Any]] = {
        "timeout_seconds": {"type": "number", "exclusiveMinimum": 0},
        "max_timeout_seconds": {"type": "number", "exclusiveMinimum": 0},
        "output_chars": {"type": "integer", "minimum": 200},
        "kill_grace_seconds": {"type": "number", "minimum": 0, "maximum": 60},
        "env_allow": {"type": "array", "items": {"type": "string"}},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "workspace": WORKSPACE_SCHEMA,
    }
    instructions = (
        "`cli` runs a shell command in the workspace and returns its exit code and output (stdout and stderr "
        "together). Nobody can answer a prompt: pass flags such as `--yes`. Start a server or another long job as "
        "`command >file.log 2>&1 &`, so that it does not hold the call's output. Variables that look like "
        "credentials are not passed on."
    )

    @tool
    def cli(
        self,
        context: ToolContext,
        command: Annotated[str, "The command line, as for `bash -c`"],
        timeout_seconds: Annotated[float | None, "Stop the command after this time", {"exclusiveMinimum": 0}] = None,
        cwd: Annotated[str, "Folder to run in, relative to the workspace"] = ".",
    ) -> dict[str, Any] | ToolOutput:
        """Run a shell command and wait for its end.

        Returns the exit code and the output; a failing command is a normal result.
        """
        argv = _argv(command)
        folder = self._folder(cwd, context)
        limit = self._limit(timeout_seconds)
        output = Output(self.config["output_chars"])
        end = run_process(
            argv,
            cwd=folder,
            env=command_environment(config.environment(), allow=self.config["env_allow"], extra=self.config["env"]),
            cancel=context.cancel,
            timeout=limit,
            on_output=lambda chunk: _report(output.add(chunk), context),
            grace=self.config["kill_grace_seconds"],
        )
        context.cancel.raise_if_cancelled()
        _report(output.add(b"", final=True), context)
        return _answer(end, output, limit)

    def format_permission_request(
        self, tool_name: str, arguments: Mapping[str, Any], channel_type: str, *, context: ToolContext | None = None
    ) -> PermissionDisplayInfo | None:
        """The command as it will run, with nothing in it hidden."""
        cwd = str(arguments.get("cwd") or ".")
        root = self.workspace(context).root
        where = root if cwd == "." else os.path.join(root, cwd)
        return PermissionDisplayInfo(
            summary=f"Run a command in {visible_line(where)}",
            details=visible(str(arguments.get("command", ""))),
            format_hint="code",
            language="bash",
        )

    def _folder(self, cwd: str, context: ToolContext) -> str:
        workspace = self.workspace(context)
        location = workspace.locate(cwd)
        with workspace.folder(location):  # says clearly what is wrong with it, if anything
            return location.absolute

    def _limit(self, asked: float | None) -> float:
        most = float(self.config["max_timeout_seconds"])
        if asked is None:
            return min(float(self.config["timeout_seconds"]), most)
        if asked > most:
            raise ToolError(f"timeout_seconds may be at most {most:g}; run longer work in the background")
        return asked


def _argv(command: str) -> list[str]:
    if not command.strip():
        raise ToolError("the command is empty")
    if "\0" in command:
        raise ToolError("the command contains a NUL character; write it as an escape, such as printf '\\0'")
    shell = shutil.which("bash") or "/bin/sh"
    return [shell, "-c", "--", command]


def _report(text: str, context: ToolContext) -> None:
    if text:
        context.output(text)


def _answer(end: ProcessEnd, output: Output, limit: float) -> dict[str, Any] | ToolOutput:
    if end.outcome == "timed_out":
        note = f"stopped after {limit:g} s, with everything it had started; output so far is kept"
        return ToolOutput({"exit_code": None, "timed_out": True, "output": output.text(), "note": note}, is_error=True)
    code = end.exit_code or 0
    answer: dict[str, Any] = {"exit_code": code if code >= 0 else 128 - code, "output": output.text()}
    notes = []
    if code < 0:
        notes.append(f"ended by {_signal_name(-code)}")
    if end.left_behind:
        notes.append("a background process still runs; what it prints from now on is lost")
    if notes:
        answer["note"] = "; ".join(notes)
    return answer


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
