"""Place: which file is the store of a workspace, and whether the host insists on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

USUAL = Path(".jaato") / "state" / "runs.db"
_OFF = frozenset({"off", "false", "no", "none", "0"})
_ON = frozenset({"on", "true", "yes", "1"})

StoreSetting = bool | str | Path | None


@dataclass(frozen=True)
class Place:
    """A file; `strict` where the host named it itself, and so wants nothing started without it."""

    path: Path
    strict: bool = False
    ignored: bool = False  # the folder is ours, and git shall not see it


def place_of(given: StoreSetting, workspace: Path, *, configured: StoreSetting = None) -> Place | None:
    """Where to store. What the host gives in code beats what is configured; None is the usual place, False none."""
    if given is not None and not isinstance(given, bool):
        return Place(_absolute(given, workspace), strict=True)
    if given is None:
        given = _read(configured)
    if isinstance(given, bool) or given is None:
        return None if given is False else Place(workspace / USUAL, ignored=True)
    return Place(_absolute(given, workspace))


def _read(configured: StoreSetting) -> StoreSetting:
    """A setting from a file or JAATO_STORE: a word for on or off, or a path."""
    word = str(configured).strip().lower()
    if configured is None or word in _ON:
        return None
    return False if word in _OFF else configured


def _absolute(path: str | Path, workspace: Path) -> Path:
    return workspace / Path(path).expanduser()
