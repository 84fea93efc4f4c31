"""DefinitionFolder: the definition files of one folder, read again only when they change."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from shared.definitions.document import Fault, Unreadable
from shared.definitions.files import Stamp, is_inside, is_young, read_file, stamp_of
from shared.definitions.formats import Loader, loader_for, stem_of
from shared.definitions.profile_file import Reading, unreadable
from shared.definitions.source import Problem, Source

MAX_FOLDER_DEPTH, MAX_FOLDERS = 8, 500


@dataclass(frozen=True)
class _Kept:
    """What became of a file, how it looked just before it was read, and what was in it."""

    reading: Reading
    stamp: Stamp | None  # None: look again
    digest: bytes | None = None


class DefinitionFolder:
    """One folder, in sorted order. Not safe for threads: its owner holds a lock.

    `root` is what links must not lead out of; the folder itself if it is left out. The folders inside
    count only if it is `recursive`.
    """

    def __init__(
        self, path: Path | str, source: Source, *, root: Path | str | None = None, recursive: bool = False
    ) -> None:
        self.path = os.path.abspath(path)
        self.readings: tuple[Reading, ...] = ()
        self.problems: tuple[Problem, ...] = ()
        self._source = source
        self._root = root
        self._real_root = ""
        self._recursive = recursive
        self._listed: dict[str, Stamp] = {}  # each folder that was listed; empty: list again
        self._names: dict[str, Loader] = {}
        self._files: dict[str, _Kept] = {}

    def look(self) -> bool:
        """Notice what was added, edited or removed; True if anything was."""
        before = self.problems
        self._list()
        files = {name: self._kept(name, loader) for name, loader in self._names.items()}
        same = len(files) == len(self._files) and all(
            (old := self._files.get(name)) is not None and old.reading is kept.reading for name, kept in files.items()
        )
        self._files = files
        if not same:
            self.readings = tuple(kept.reading for kept in files.values())
        return not same or self.problems != before

    def vouch(self, trusted: bool) -> None:
        """Take its files for trusted, or no longer; the next look reads them as such."""
        if self._source.trusted != trusted:
            self._source, self._files = replace(self._source, trusted=trusted), {}

    def _list(self) -> None:
        """The names of the folder; listed again only when the folder, or one inside, has changed."""
        try:
            if self._listed and all(stamp_of(os.stat(path)) == stamp for path, stamp in self._listed.items()):
                return
            found = os.stat(self.path)
            self._resolve_root()
            walk = _Walk(self.path, recursive=self._recursive)
            walk.enter("", found)
        except (FileNotFoundError, NotADirectoryError):
            self._set({}, {})
        except OSError as error:
            self._set({}, {}, Fault("folder-unreadable", f"cannot be read: {error.strerror or error}"))
        except Unreadable as error:
            self._set({}, {}, *error.faults)
        else:
            loaders = {
                name: loader for name in walk.names if (loader := loader_for(os.path.basename(name))) is not None
            }
            self._set(loaders, {} if walk.young else walk.stamps, *walk.faults)

    def _set(self, names: dict[str, Loader], listed: dict[str, Stamp], *faults: Fault) -> None:
        self._names, self._listed = names, listed
        self.problems = tuple(Problem(self.path, None, fault.code, None, fault.text) for fault in faults)

    def _resolve_root(self) -> None:
        real = os.path.realpath(self.path)
        self._real_root = os.path.realpath(self._root) if self._root is not None else real
        if not is_inside(real, self._real_root):
            raise Unreadable(
                Fault("link-outside", f"is a link out of {self._real_root}; put the files themselves here")
            )

    def _kept(self, name: str, loader: Loader) -> _Kept:
        path = f"{self.path}{os.sep}{name}"
        old = self._files.get(name)
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return self._read(path, loader, old, None)  # which will say why
        stamp = stamp_of(found)
        if old is not None and old.stamp == stamp:
            return old
        return self._read(path, loader, old, None if is_young(found) else stamp)

    def _read(self, path: str, loader: Loader, old: _Kept | None, stamp: Stamp | None) -> _Kept:
        source = replace(self._source, path=path)
        stem = stem_of(path)
        try:
            file = read_file(path, root=self._real_root)
        except Unreadable as error:
            reading = unreadable(error, stem=stem, source=source)
            return _Kept(old.reading if old is not None and old.reading == reading else reading, stamp)
        if old is not None and old.digest == file.digest:
            return _Kept(old.reading, stamp, file.digest)
        return _Kept(loader(file.text, stem=stem, source=source), stamp, file.digest)


class _Walk:
    """The names in a folder and, if wanted, in those inside it, none of them reached through a link."""

    def __init__(self, top: str, *, recursive: bool) -> None:
        self.names: list[str] = []
        self.stamps: dict[str, Stamp] = {}
        self.young = False
        self.faults: list[Fault] = []
        self._top, self._recursive = top, recursive

    def enter(self, inside: str, found: os.stat_result, depth: int = 0) -> None:
        """List one folder; a change while it is listed leaves the older stamp, so it is noticed later."""
        path = os.path.join(self._top, inside) if inside else self._top
        self.stamps[path] = stamp_of(found)
        self.young = self.young or is_young(found)
        with os.scandir(path) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        for entry in listed:
            name = os.path.join(inside, entry.name)
            if not (self._recursive and entry.is_dir(follow_symlinks=False)):
                self.names.append(name)
            elif depth >= MAX_FOLDER_DEPTH or len(self.stamps) >= MAX_FOLDERS:
                self.faults.append(
                    Fault("too-many-folders", f"the folder '{name}' is left out: nested too deep or too many")
                )
            elif not entry.name.startswith("."):
                self._enter_quietly(name, entry, depth)

    def _enter_quietly(self, name: str, entry: os.DirEntry[str], depth: int) -> None:
        try:
            self.enter(name, entry.stat(follow_symlinks=False), depth + 1)
        except FileNotFoundError:
            self.young = True  # it went while we looked: look again
        except OSError as error:
            self.faults.append(
                Fault("folder-unreadable", f"the folder '{name}' cannot be read: {error.strerror or error}")
            )
