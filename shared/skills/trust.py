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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.definitions.files import Stamp, stamp_of
from shared.errors import SkillLoadError
from shared.file_tree import FileTree, TreeRefused, read_tree


def fingerprint(tree: FileTree) -> str:
    """One digest of all files of a skill."""
    text = json.dumps(tree.digests(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class _Seen:
    """What was read of the record, when it looked like this; or why it cannot be read."""

    stamp: Stamp | None = None
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    damage: str | None = None


class TrustRecord:
    """A JSON file: path of a skill's folder → where it came from and the digest that was trusted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = _Seen()

    def verdict(self, folder: str) -> bool | None:
        """Whether an installed skill is trusted in its present state; None if it is not on record.

        With a damaged record nothing is trusted, because nobody knows what was installed.
        """
        seen = self._look()
        if seen.damage is not None:
            return False
        entry = seen.entries.get(os.path.realpath(folder)) if seen.entries else None
        if entry is None:
            return None
        trusted = entry.get("trusted")
        if not isinstance(trusted, str):
            return False
        try:
            return fingerprint(read_tree(folder)) == trusted
        except TreeRefused:
            return False

    def damage(self) -> str | None:
        """Why the record cannot be read; None if it can."""
        return self._look().damage

    def source(self, folder: str) -> str | None:
        """Where an installed skill came from."""
        found = self._look().entries.get(os.path.realpath(folder), {}).get("source")
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

    def _look(self) -> _Seen:
        """The record as it is now; replaced as a whole, so that no thread sees half of it."""
        try:
            stamp = stamp_of(os.stat(self.path))
        except OSError:
            return _Seen()
        if stamp == self._seen.stamp:
            return self._seen
        try:
            self._seen = seen = _Seen(stamp, self._read())
        except SkillLoadError as error:
            self._seen = seen = _Seen(stamp, {}, str(error))
        return seen

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
