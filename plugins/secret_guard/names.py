"""The tool `secret_names`: which variables a file with credentials sets, without their values."""

from __future__ import annotations

import re
from typing import Annotated, Any

from shared.errors import ToolError
from shared.tools import ToolContext
from shared.workspace import Workspace

MAX_BYTES = 1 << 20
_LINE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*(.*)$", re.MULTILINE)


def secret_names(
    context: ToolContext, path: Annotated[str, "A file such as .env, relative to the workspace"] = ".env"
) -> dict[str, Any]:
    """List the variables that a file like .env sets, and which of them are empty; never their values."""
    workspace = Workspace(context.workspace)
    location = workspace.locate(path)
    data = workspace.read(location, limit=MAX_BYTES)
    found = _LINE.findall(data.decode("utf-8", "replace"))
    if not found:
        raise ToolError(f"{location.shown} has no lines such as NAME=value")
    return {
        "file": location.shown,
        "names": list(dict.fromkeys(name for name, _ in found)),
        "empty": list(dict.fromkeys(name for name, value in found if not value.strip().strip("\"'"))),
    }
