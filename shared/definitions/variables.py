"""Variables in plugin settings: `${NAME}` becomes a value from a small, explicit table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shared.config import environment

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ROOT_MARKS = (".git", ".jaato")


def workspace_root(cwd: Path | str) -> Path:
    """The nearest folder at or above this one with `.git` or `.jaato` in it, else this one."""
    start = Path(cwd).absolute()
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in _ROOT_MARKS):
            return folder
    return start


def variables_for(cwd: Path | str, *, allowed: Iterable[str] = ()) -> dict[str, str]:
    """The table for a spawn: cwd, workspaceRoot, HOME, USER, then environment variables that the host allows."""
    outside = environment()
    table = {name: outside[name] for name in allowed if name in outside}
    user = outside.get("USER") or outside.get("LOGNAME")
    if user:
        table["USER"] = user
    home = outside.get("HOME") or str(Path.home())
    return {**table, "HOME": home, "cwd": str(Path(cwd).absolute()), "workspaceRoot": str(workspace_root(cwd))}


def expand_variables(value: Any, variables: Mapping[str, str]) -> Any:
    """A copy with every known `${NAME}` in its texts replaced, once; unknown names stay as they are."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), value)
    if isinstance(value, Mapping):
        return {key: expand_variables(item, variables) for key, item in value.items()}
    return [expand_variables(item, variables) for item in value] if isinstance(value, list | tuple) else value


def expand_plugin_configs(
    configs: Mapping[str, Mapping[str, Any]], variables: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """The settings of each plugin of a profile, expanded, as fresh objects that a plugin may keep."""
    return {name: expand_variables(config, variables) for name, config in configs.items()}
