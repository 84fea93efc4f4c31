"""Dialects: for which host an agent file was written, and what that host takes silence to mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.definitions.rights_keys import plain


@dataclass(frozen=True)
class Dialect:
    """One host's way of writing agents."""

    name: str
    silent_tools: bool = True  # without `tools`: all that the caller has; False: none
    required: frozenset[str] = frozenset()  # of name, description, body: what it cannot do without
    max_turns: int | None = None  # where it says how many, and it is not ours
    any_model: bool = False  # a model's name that nobody knows is one of the host's own, not a mistake


CLAUDE = Dialect("claude")
OPENCODE = Dialect("opencode")
GEMINI = Dialect("gemini", max_turns=30)
ALLY = Dialect("ally", any_model=True)
PI = Dialect("pi")
MAMBA = Dialect("mamba", silent_tools=False, required=frozenset({"name"}), max_turns=50)
NETCLAW = Dialect("netclaw", silent_tools=False, required=frozenset({"name", "description", "body"}))

#: Folders that belong to one host; the innermost of them on a path tells.
_FOLDERS: Mapping[str, Dialect] = {
    ".claude": CLAUDE,
    ".opencode": OPENCODE,
    "opencode": OPENCODE,  # ~/.config/opencode
    ".gemini": GEMINI,
    ".ally": ALLY,
    ".pi": PI,
    ".mamba": MAMBA,
    ".netclaw": NETCLAW,
}
#: Keys that only one host has, for files that lie elsewhere.
_FIELDS: Mapping[str, Dialect] = {
    "modelRole": NETCLAW,
    "timeoutSeconds": NETCLAW,
    "emitStructuredFindings": NETCLAW,
    "mode": OPENCODE,
    "steps": OPENCODE,
    "maxSteps": OPENCODE,
    "hidden": OPENCODE,
    "disable": OPENCODE,
    "permission": OPENCODE,
    "timeout_mins": GEMINI,
    "kind": GEMINI,
    "display_name": GEMINI,
    "usage_guidelines": ALLY,
    "created_at": ALLY,
    "disallowed-tools": MAMBA,
    "permission-mode": MAMBA,
}


def dialect_of(path: str | None, fields: Mapping[str, Any]) -> Dialect:
    """The dialect by the folder, else by the fields, else Claude Code's, which most others follow."""
    for part in reversed((path or "").split(os.sep)[:-1]):
        if (dialect := _FOLDERS.get(part)) is not None:
            return dialect
        if part == ".jaato":
            break
    if any(isinstance(value, Mapping) and plain(key) == "tools" for key, value in fields.items()):
        return OPENCODE
    return next((dialect for key, dialect in _FIELDS.items() if key in fields), CLAUDE)
