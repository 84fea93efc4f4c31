"""Requirements: what a skill needs on this machine, and what of it is missing."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from shared.config import environment
from shared.definitions.source import one_line
from shared.skills.info import Requirements

#: The name of the format today, and those it had before; most public skills still use an older one.
NAMESPACES = ("openclaw", "clawdbot", "clawdis", "moltbot", "nanobot")
_SYSTEMS = {"macos": "darwin", "mac": "darwin", "osx": "darwin", "windows": "win32", "win": "win32"}


def metadata_of(value: Any) -> dict[str, Any] | None:
    """The metadata of a skill; a JSON object in a text counts too. None if it is neither."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return dict(value) if isinstance(value, Mapping) else None


def requirements_of(metadata: Mapping[str, Any]) -> Requirements | None:
    """What the metadata asks for, under whichever name of the format; None if nothing."""
    for namespace in NAMESPACES:
        block = metadata_of(metadata.get(namespace))
        if block is None:
            continue
        asked = metadata_of(block.get("requires")) or {}
        found = Requirements(
            bins=_names(asked, "bins", "bin"),
            any_bins=_names(asked, "anyBins", "any_bins", "anyBin"),
            env=_names(asked, "env", "envs"),
            os=tuple(_SYSTEMS.get(name.lower(), name.lower()) for name in _names(block, "os") or _names(asked, "os")),
            namespace=namespace,
        )
        if found.bins or found.any_bins or found.env or found.os:
            return found
    return None


def missing(requires: Requirements | None) -> str | None:
    """Why a skill cannot be used here, in words; None if nothing is missing."""
    if requires is None:
        return None
    reasons = []
    if requires.os and _system() not in requires.os:
        reasons.append(f"it is for {' or '.join(requires.os)}, and this is {_system()}")
    absent = [name for name in requires.bins if not _is_program(name)]
    if absent:
        reasons.append(f"{_all(absent, 'program')} not on the PATH")
    if requires.any_bins and not any(map(_is_program, requires.any_bins)):
        reasons.append(f"none of the programs {', '.join(requires.any_bins)} is on the PATH")
    outside = environment()
    unset = [name for name in requires.env if not outside.get(name, "").strip()]
    if unset:
        reasons.append(f"{_all(unset, 'environment variable')} not set")
    return one_line("; ".join(reasons)) or None


def _all(names: list[str], kind: str) -> str:
    return f"the {kind} {names[0]} is" if len(names) == 1 else f"the {kind}s {', '.join(names)} are"


def _is_program(name: str) -> bool:
    return "/" not in name and "\0" not in name and shutil.which(name) is not None


def _system() -> str:
    return "linux" if sys.platform.startswith("linux") else sys.platform


def _names(block: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    """A list of names, or a single one; entries that are no text are left out."""
    for key in keys:
        value = block.get(key)
        if isinstance(value, str):
            return (value.strip(),) if value.strip() else ()
        if isinstance(value, list):
            return tuple(each.strip() for each in value if isinstance(each, str) and each.strip())
    return ()
