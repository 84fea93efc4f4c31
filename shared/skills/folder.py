"""SkillFolder: the skills below one folder, read again only when they change."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from shared.definitions.document import Fault, Unreadable
from shared.definitions.files import Stamp, is_inside, is_young, read_file, stamp_of
from shared.definitions.source import Problem
from shared.skills.files import FILE_NAMES, SKILL_FILE, skill_file
from shared.skills.info import SkillScope, TrustLevel
from shared.skills.reader import SkillReading, SkillText, read_skill


@dataclass(frozen=True, slots=True)
class _Kept:
    """What became of a file, and how it looked just before it was read."""

    reading: SkillReading
    stamp: int | None  # a hash of it, to be small; None: look again


class SkillFolder:
    """Every `name/SKILL.md` of a folder, or the folder's own. Not safe for threads: its owner holds a lock.

    `root` is what links must not lead out of; the folder itself if it is left out.
    """

    def __init__(
        self, path: Path | str, scope: SkillScope, trust: TrustLevel, *, root: Path | str | None = None
    ) -> None:
        self.path = os.path.abspath(path)
        self.scope, self.trust = scope, trust
        self.readings: tuple[SkillReading, ...] = ()
        self.problems: tuple[Problem, ...] = ()
        self._root = root
        self._real_root = ""
        self._listed: Stamp | None = None
        self._folders: tuple[str, ...] = ()
        self._kept: dict[str, _Kept] = {}

    def look(self) -> bool:
        """Notice what was added, edited or removed; True if anything was."""
        before = self.problems
        self._list()
        kept: dict[str, _Kept] = {}
        for folder in self._folders:
            if (found := self._look_at(folder)) is not None:
                kept[folder] = found
        same = len(kept) == len(self._kept) and all(
            (old := self._kept.get(folder)) is not None and old.reading is each.reading for folder, each in kept.items()
        )
        self._kept = kept
        if not same:
            self.readings = tuple(each.reading for each in kept.values())
        return not same or self.problems != before

    def load(self, folder: str) -> SkillText:
        """A skill of this folder with its body; raises Unreadable when its file cannot be read."""
        path = skill_file(folder)
        if path is None:
            raise Unreadable(Fault("missing", f"there is no {SKILL_FILE} in it any more"))
        text = read_file(path, root=self._real_root or os.path.realpath(self.path)).text
        return read_skill(text, path=path, scope=self.scope, trust=self.trust)

    def _list(self) -> None:
        """The folders below; listed again only when this folder has changed."""
        try:
            found = os.stat(self.path)
            if self._listed == stamp_of(found):
                return
            self._resolve_root()
            self._folders = self._names()
        except (FileNotFoundError, NotADirectoryError):
            self._set(None)
        except OSError as error:
            self._set(None, Fault("folder-unreadable", f"cannot be read: {error.strerror or error}"))
        except Unreadable as error:
            self._set(None, *error.faults)
        else:
            self.problems = ()
            self._listed = None if is_young(found) else stamp_of(found)

    def _names(self) -> tuple[str, ...]:
        if skill_file(self.path) is not None:
            return (self.path,)
        with os.scandir(self.path) as entries:
            # A folder whose name begins with a dot is hidden, or a skill that is being put in place.
            names = sorted(entry.name for entry in entries if not entry.name.startswith(".") and _is_folder(entry))
        return tuple(f"{self.path}{os.sep}{name}" for name in names)

    def _set(self, listed: Stamp | None, *faults: Fault) -> None:
        self._folders, self._listed = (), listed
        self.problems = tuple(fault.at(self.path) for fault in faults)

    def _resolve_root(self) -> None:
        real = os.path.realpath(self.path)
        self._real_root = os.path.realpath(self._root) if self._root is not None else real
        if not is_inside(real, self._real_root):
            raise Unreadable(
                Fault("link-outside", f"is a link out of {self._real_root}; put the skills themselves here")
            )

    def _look_at(self, folder: str) -> _Kept | None:
        old = self._kept.get(folder)
        for name in FILE_NAMES:
            path = f"{folder}{os.sep}{name}"
            try:
                found = os.stat(path)
            except (OSError, ValueError):
                if not os.path.lexists(path):
                    continue
                return self._read(folder, path, old, None)  # which will say why
            stamp = hash(stamp_of(found))
            if old is not None and old.stamp == stamp:
                return old
            return self._read(folder, path, old, None if is_young(found) else stamp)
        problem = Problem(folder, None, "no-skill-file", None, f"has no {SKILL_FILE}, so it is no skill", "warning")
        return self._same(old, SkillReading(os.path.basename(folder), folder, None, (problem,)), None)

    def _read(self, folder: str, path: str, old: _Kept | None, stamp: int | None) -> _Kept:
        try:
            file = read_file(path, root=self._real_root)
        except Unreadable as error:
            problems = tuple(fault.at(path) for fault in error.faults)
            return self._same(old, SkillReading(os.path.basename(folder), folder, None, problems), stamp)
        text = read_skill(file.text, path=path, folder=folder, scope=self.scope, trust=self.trust)
        return self._same(old, text.reading, stamp)

    @staticmethod
    def _same(old: _Kept | None, reading: SkillReading, stamp: int | None) -> _Kept:
        return _Kept(old.reading if old is not None and old.reading == reading else reading, stamp)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
