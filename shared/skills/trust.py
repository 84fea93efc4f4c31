"""TrustRecord: which skills came from elsewhere, and in what state a person vouched for them.

It lies outside of all workspaces. An installed skill is untrusted until somebody trusts it, and again as
soon as one of its files changes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.definitions.files import Stamp, stamp_of
from shared.errors import SkillLoadError
from shared.file_tree import FileTree, TreeRefused, read_tree


def fingerprint(tree: FileTree) -> str:
    """One digest of all files of a skill."""
    text = json.dumps(tree.digests(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class TrustRecord:
    """A JSON file: path of a skill's folder → where it came from and the digest that was trusted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_at: Stamp | None = None
        self._entries: Mapping[str, Mapping[str, Any]] = {}

    def verdict(self, folder: str) -> bool | None:
        """Whether an installed skill is trusted in its present state; None if it is not on record."""
        entry = self._look().get(os.path.realpath(folder))
        if entry is None:
            return None
        trusted = entry.get("trusted")
        if not isinstance(trusted, str):
            return False
        try:
            return fingerprint(read_tree(folder)) == trusted
        except TreeRefused:
            return False

    def source(self, folder: str) -> str | None:
        """Where an installed skill came from."""
        found = self._look().get(os.path.realpath(folder), {}).get("source")
        return found if isinstance(found, str) else None

    def note(self, folder: str, source: str) -> None:
        """Write down that a skill comes from elsewhere, before it is put there."""
        with self._changing() as entries:
            entries[os.path.realpath(folder)] = {"source": source, "trusted": None}

    def trust(self, folder: str) -> None:
        """Vouch for a skill in exactly its present state."""
        try:
            digest = fingerprint(read_tree(folder))
        except TreeRefused as error:
            raise SkillLoadError(f"{folder} cannot be trusted: {error}") from None
        with self._changing() as entries:
            key = os.path.realpath(folder)
            entries[key] = {"source": "", **entries.get(key, {}), "trusted": digest}

    def distrust(self, folder: str) -> None:
        """Vouch for a skill no longer."""
        self.note(folder, self.source(folder) or "")

    def forget(self, folder: str) -> None:
        """Remove a skill that is no longer there."""
        with self._changing() as entries:
            entries.pop(os.path.realpath(folder), None)

    # -- inside ----------------------------------------------------------------------------------

    def _look(self) -> Mapping[str, Mapping[str, Any]]:
        try:
            stamp = stamp_of(os.stat(self.path))
        except OSError:
            stamp = None
        if stamp is None:
            self._entries, self._read_at = {}, None
        elif stamp != self._read_at:
            self._entries, self._read_at = self._read(), stamp
        return self._entries

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self.path.read_bytes())
            entries = found["skills"]
            if all(isinstance(key, str) and isinstance(entry, dict) for key, entry in entries.items()):
                return dict(entries)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise SkillLoadError(f"{self.path} is damaged, so no skill can be told from another: mend or remove it")

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, Any]]]:
        """The entries, to be changed by one process at a time and written in one step."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entries = self._read()
            yield entries
            temporary = f"{self.path}.{secrets.token_hex(6)}.tmp"
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump({"version": 1, "skills": entries}, file, indent=1)
            os.replace(temporary, self.path)
        finally:
            os.close(lock)
