"""Running a skill's hook: JSON on stdin, exit code 2 or a JSON answer refuses, anything else lets pass."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.cancel import CancelToken
from shared.command_environment import command_environment
from shared.config import environment
from shared.errors import ToolError
from shared.process import run_process
from shared.skills.hook_entries import SkillHook

log = logging.getLogger(__name__)

MAX_OUTPUT_BYTES = 1 << 20
MAX_REASON_CHARS = 2_000
BLOCK_EXIT_CODE = 2
_SHELL = "/bin/sh"


@dataclass(frozen=True)
class HookAnswer:
    """What a hook's program says: whether it refuses, and a text for the model."""

    refuses: bool = False
    text: str = ""


PASSES = HookAnswer()


def run_hook(
    hook: SkillHook, facts: Mapping[str, Any], *, folder: str, workspace: Path, cancel: CancelToken
) -> HookAnswer:
    """Run the program of a hook in its skill's folder; one that fails or takes too long lets pass and is logged."""
    output = bytearray()

    def take(chunk: bytes) -> None:
        output.extend(chunk)
        if len(output) > MAX_OUTPUT_BYTES:
            raise ToolError(f"it printed more than {MAX_OUTPUT_BYTES:,} bytes")

    told = {"hook_event_name": hook.event, "cwd": str(workspace), **facts}
    extra = {
        "CLAUDE_PROJECT_DIR": str(workspace),
        "CLAUDE_SKILL_DIR": folder,
        "JAATO_WORKSPACE": str(workspace),
        "PYTHONPYCACHEPREFIX": os.devnull,  # compiled code beside a script is in no fingerprint: never read or written
    }
    with tempfile.TemporaryFile() as errors:
        try:
            end = run_process(
                [_SHELL, "-c", _filled(hook.command, folder)],
                cwd=folder or str(workspace),
                env=command_environment(environment(), extra=extra),
                cancel=cancel,
                timeout=hook.timeout_seconds,
                on_output=take,
                stdin=json.dumps(told, ensure_ascii=False, default=str).encode("utf-8", "replace"),
                stderr_to=errors.fileno(),
            )
        except ToolError as error:
            log.warning("the hook '%s' of a skill failed: %s", hook.command, error)
            return PASSES
        said = _start_of(errors)
    if end.outcome != "exited":
        log.warning("the hook '%s' of a skill was stopped: %s", hook.command, end.outcome)
        return PASSES
    return _answer(hook, end.exit_code or 0, bytes(output), said)


def _answer(hook: SkillHook, code: int, output: bytes, said: str) -> HookAnswer:
    if code == BLOCK_EXIT_CODE:
        return HookAnswer(True, said)
    if code:
        log.warning("the hook '%s' of a skill ended with exit code %d: %s", hook.command, code, said[:200])
        return PASSES
    text = output.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return _structured(value)
    return HookAnswer(False, text if hook.event == "UserPromptSubmit" else "")


def _structured(value: Mapping[str, Any]) -> HookAnswer:
    """The answer of a program that prints an object; it can refuse a call, never allow one."""
    details = value.get("hookSpecificOutput")
    details = details if isinstance(details, Mapping) else {}
    if details.get("permissionDecision") == "deny":
        return HookAnswer(True, _text(details.get("permissionDecisionReason")))
    if value.get("decision") in ("block", "deny"):
        return HookAnswer(True, _text(value.get("reason")))
    if value.get("continue") is False:
        return HookAnswer(True, _text(value.get("stopReason")))
    return HookAnswer(False, _text(details.get("additionalContext")))


def _text(value: Any) -> str:
    return value.strip()[:MAX_REASON_CHARS] if isinstance(value, str) else ""


def _filled(command: str, folder: str) -> str:
    """The skill's folder in the notation of another host; the shell knows the variables by itself."""
    return re.sub(r"(?<!\$)\{baseDir\}", "${CLAUDE_SKILL_DIR}", command) if folder else command


def _start_of(errors: Any) -> str:
    errors.seek(0, os.SEEK_SET)
    text: str = errors.read(MAX_REASON_CHARS * 4).decode("utf-8", "replace").replace("\0", "\ufffd").strip()
    return text[:MAX_REASON_CHARS]
