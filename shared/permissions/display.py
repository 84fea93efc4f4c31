"""What a person sees of a request: a summary and details in which no argument can fake the prompt."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from shared.permissions.call import Call
from shared.permissions.visible import is_stable, mixes_scripts, visible
from shared.plugin import PermissionDisplayInfo
from shared.tools import Tool, ToolContext

log = logging.getLogger(__name__)


def describe(tool: Tool, call: Call, context: ToolContext) -> PermissionDisplayInfo:
    """The tool's own description of a call, or its arguments; a display that fails costs only its niceness."""
    args = call.args
    if tool.display is not None:
        try:
            shown = tool.display(args, context)
        except Exception:  # foreign code: the arguments are shown instead
            log.warning("the display of tool %s failed", tool.name, exc_info=True)
        else:
            if isinstance(shown, PermissionDisplayInfo):
                return shown
    if call.command is not None:
        rest = {name: value for name, value in args.items() if name != call.shell_argument}
        details = call.command + (f"\n{_json(rest)}" if rest else "")
        return PermissionDisplayInfo(f"run: {first_line(call.command)}", details, "code", "sh")
    return PermissionDisplayInfo(f"call {tool.name}", _json(args), "json")


def one_line(text: str, limit: int = 200) -> str:
    """The text as one visible line of limited length."""
    line = visible(text).replace("\n", "\\n").replace("\t", " ")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def first_line(text: str, limit: int = 120) -> str:
    """The first line, with a mark if there is more."""
    line, more, _ = text.partition("\n")
    return line[:limit] + ("…" if more or len(line) > limit else "")


def is_deceptive(text: str) -> bool:
    """Whether a text holds characters that look like something else than they are."""
    return not is_stable(text) or any(mixes_scripts(word) for word in re.findall(r"[^\W\d_]+", text))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), indent=2, ensure_ascii=False, default=repr)
