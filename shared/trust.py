"""Trust: which workspaces may run code and grant rights, recorded outside of them with the state they were in.

Trust belongs to a path and to the content of every file there that runs code or grants rights. One
of them changed, added, removed, renamed or replaced by a link: the workspace is no longer trusted
until a person has looked again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.config import jaato_home
from shared.errors import ConfigError
from shared.file_tree import TreeRefused, read_one, read_tree

#: Folders that count whole, and what trust lets their files do.
FOLDERS: Mapping[str, str] = {
    ".jaato/plugins": "run code, add tools and hooks",
    ".jaato/profiles": "define subagents that are spawned without a question",
    ".jaato/agents": "define subagents that are spawned without a question",
    ".jaato/skills": "add tools and hooks, run as subagents",
    ".claude/skills": "add tools and hooks, run as subagents",
    ".agents/skills": "add tools and hooks, run as subagents",
}
#: Single files, and what trust lets them do.
FILES: Mapping[str, str] = {
    "permissions.json": "allow tools without a question",
    ".permissions.json": "allow tools without a question",
    ".jaato/permissions.json": "allow tools without a question",
    ".jaato/config.yaml": "change settings",
    ".jaato/hooks.json": "run code around tool calls",
    ".mcp.json": "start servers",
}


@dataclass(frozen=True)
class Inventory:
    """The files of a workspace that trust is about: path → fingerprint."""

    workspace: str
    files: Mapping[str, str]

    def grouped(self) -> list[tuple[str, str, list[str]]]:
        """For people: place, what trusting it allows, and its files."""
        found = []
        for place, allows in {**FOLDERS, **FILES}.items():
            paths = [path for path in self.files if path == place or path.startswith(place + "/")]
            if paths:
                found.append((place, allows, paths))
        return found


@dataclass(frozen=True)
class TrustVerdict:
    """Whether a workspace is trusted; if not, why, and which file is the reason."""

    trusted: bool
    reason: str = ""
    file: str | None = None
    #: What was trusted, so that whoever loads a file can compare what was really loaded.
    files: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __bool__(self) -> bool:
        return self.trusted


def survey(workspace: Path | str) -> Inventory:
    """The files that trust is about, as they are now; raises ConfigError for what cannot be vouched for."""
    root = os.path.realpath(workspace)
    if not os.path.isdir(root):
        raise ConfigError(f"{root} is not a folder: name the folder of a project")
    try:
        return Inventory(root, _digests(root))
    except TreeRefused as error:
        raise ConfigError(f"{root} cannot be trusted: {error}") from None


class TrustStore:
    """The record of trusted workspaces, in `trust.json` of the user's own folder."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path is not None else jaato_home() / "trust.json"

    def is_trusted(self, workspace: Path | str) -> TrustVerdict:
        """Compare a workspace with what was trusted; anything doubtful is not trusted."""
        root = os.path.realpath(workspace)
        try:
            recorded = self._read().get(root)
            if recorded is None:
                return TrustVerdict(False, "nobody has trusted it: look at it with `jaato trust`")
            current = _digests(root)
        except TreeRefused as error:
            return TrustVerdict(False, f"{error}", error.path)
        except ConfigError as error:
            return TrustVerdict(False, str(error), str(self.path))
        files: Mapping[str, str] = recorded["files"]
        for path in sorted(files.keys() | current.keys()):
            if files.get(path) != current.get(path):
                what = "was added" if path not in files else "is gone" if path not in current else "has changed"
                return TrustVerdict(False, f"{path} {what} since the workspace was trusted: `jaato trust` again", path)
        return TrustVerdict(True, files=dict(files))

    def trust(self, inventory: Inventory) -> None:
        """Trust a workspace in exactly the state that was surveyed, and no other."""
        entry = {"files": dict(inventory.files), "trusted_at": int(time.time())}
        with self._changing() as entries:
            entries[inventory.workspace] = entry

    def renew(self, file: Path | str, *, former: str, now: str) -> bool:
        """Go on trusting after a change that this program made to one file on a person's word.

        Only a file that was trusted in its former state counts; a change by anyone else before that, or to
        another file, still ends the trust. False if nothing was trusted.
        """
        path = os.path.realpath(file)
        if not any(self._place(path, root) for root in self._read()):
            return False
        with self._changing() as entries:
            held = [(entry["files"], place) for root, entry in entries.items() if (place := self._place(path, root))]
            found = [(files, place) for files, place in held if files.get(place) == former]
            for files, place in found:
                files[place] = now
        return bool(found)

    @staticmethod
    def _place(path: str, root: str) -> str | None:
        return next((place for place in FILES if os.path.join(root, place) == path), None)

    def revoke(self, workspace: Path | str) -> bool:
        """Trust a workspace no longer; False if it was not trusted."""
        with self._changing() as entries:
            return entries.pop(os.path.realpath(workspace), None) is not None

    def recorded(self, workspace: Path | str) -> Inventory | None:
        """What was trusted, whatever has become of it since."""
        root = os.path.realpath(workspace)
        entry = self._read().get(root)
        return None if entry is None else Inventory(root, entry["files"])

    def workspaces(self) -> list[str]:
        """All workspaces on record."""
        return sorted(self._read())

    def _read(self) -> dict[str, Any]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read: {error.strerror}; nothing is trusted") from None
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid() or found.st_mode & 0o022:
                raise ConfigError(
                    f"{self.path} can be written by others, so nothing in it counts: check it and `chmod 600` it"
                )
            data = file.read()
        try:
            entries = json.loads(data)["workspaces"]
            if all(_is_entry(entry) for entry in entries.values()):
                return dict(entries)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise ConfigError(f"{self.path} is damaged, so nothing is trusted: remove it and trust your workspaces again")

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The entries, to be changed by one process at a time and written in one step."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entries = self._read()
            yield entries
            self._write({"version": 1, "workspaces": entries})
        finally:
            os.close(lock)

    def _write(self, value: Mapping[str, Any]) -> None:
        temporary = f"{self.path}.{secrets.token_hex(6)}.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(value, file, indent=1)
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise


def _digests(root: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in FOLDERS:
        found |= read_tree(root, place).digests(place + "/")
    for place in FILES:
        if (file := read_one(root, place)) is not None:
            found[place] = file.digest
    return found


def _is_entry(entry: Any) -> bool:
    files = entry["files"]
    return isinstance(files, dict) and all(isinstance(digest, str) for digest in files.values())
