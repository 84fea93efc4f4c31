"""Installing a skill from a folder, an archive, an address or ClawHub: checked first, then put in place in one step."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from shared.cancel import CancelToken
from shared.definitions.source import Problem
from shared.errors import SkillConflictError, SkillLoadError, SkillNotFoundError, SkillParseError, SkillValidationError
from shared.file_tree import FileTree, TreeRefused, read_tree
from shared.skills.archive import MAX_FILES, MAX_PACKED, MAX_UNPACKED, skill_root, unpack
from shared.skills.fetch import CLAWHUB, clawhub_address, fetch, is_slug
from shared.skills.files import FILE_NAMES
from shared.skills.info import SkillInfo
from shared.skills.reader import read_skill
from shared.skills.trust import TrustRecord


@dataclass(frozen=True)
class Installed:
    """A skill that was put in place; nobody has vouched for it yet."""

    info: SkillInfo
    folder: str
    source: str
    files: int
    warnings: tuple[Problem, ...] = ()


class Installer:
    """Puts skills into one folder. Whatever fails leaves that folder as it was."""

    def __init__(self, target: Path, record: TrustRecord, *, clawhub: str = CLAWHUB) -> None:
        self.target, self._record, self._clawhub = target, record, clawhub

    def install(
        self, source: str, *, cancel: CancelToken | None = None, replace: bool = False, local: bool = True
    ) -> Installed:
        """Install the skill that a path, an address or a ClawHub slug names; raises a SkillError with the reason.

        Without `local` nothing is looked for on this machine.
        """
        token = cancel or CancelToken()
        tree = self._obtain(source.strip(), token, local=local)
        info, warnings = _checked(tree, source)
        place = self.target / info.name
        if os.path.lexists(place) and not replace:
            raise _taken(place)
        token.raise_if_cancelled()
        self._put(tree, place, source, replace=replace)
        return Installed(info, str(place), source, len(tree.files), warnings)

    def _obtain(self, source: str, cancel: CancelToken, *, local: bool) -> FileTree:
        """The files of the skill, wherever they come from."""
        if "://" in source:
            return skill_root(unpack(fetch(source, cancel), what=source), what=source)
        path = Path(source).expanduser()
        if local and path.is_dir():
            return _folder(path)
        if local and path.is_file():
            return skill_root(unpack(_read(path), what=source), what=source)
        if is_slug(source) and not source.startswith("."):
            data = fetch(clawhub_address(source, self._clawhub), cancel)
            return skill_root(unpack(data, what=source), what=source)
        raise SkillNotFoundError(f"'{source[:200]}' is no folder, archive, http address or ClawHub name")

    def _put(self, tree: FileTree, place: Path, source: str, *, replace: bool) -> None:
        """Write beside the place, on the same disk, then move; the record says 'untrusted' before anything is there."""
        self.target.mkdir(parents=True, exist_ok=True)
        staging = self.target / f".{secrets.token_hex(8)}.new"
        former = self.target / f".{secrets.token_hex(8)}.old"
        try:
            staging.mkdir(mode=0o700)
            tree.write(staging)
            self._record.note(str(place), source)
            moved = replace and os.path.lexists(place)
            if moved:
                os.rename(place, former)
            try:
                os.rename(staging, place)
            except OSError:
                if moved:
                    os.rename(former, place)
                raise
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and os.path.lexists(place):
                raise _taken(place) from None  # somebody else was faster
            raise SkillLoadError(f"{place} cannot be written: {error.strerror or error}") from None
        finally:
            _remove(staging)
            _remove(former)


def _taken(place: Path) -> SkillConflictError:
    return SkillConflictError(
        f"there is a skill '{place.name}' in {place.parent} already: remove it, or say that it is to be replaced"
    )


def _checked(tree: FileTree, source: str) -> tuple[SkillInfo, tuple[Problem, ...]]:
    """What the skill says of itself; raises if it could not be used once installed."""
    name = next(name for name in FILE_NAMES if name in tree.files)
    try:
        text = tree.files[name].data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SkillParseError(f"{source}: {name} is not UTF-8 text") from None
    # The folder will have the skill's own name, so that of the source says nothing.
    first = read_skill(text, path=f"{source}/{name}").reading
    reading = read_skill(text, path=f"{source}/{name}", folder=first.name).reading
    if reading.info is None:
        raise SkillValidationError(f"nothing was installed: {reading.problems[0] if reading.problems else source}")
    if reading.info.name.startswith(".") or len(reading.info.name.encode()) > 128:
        raise SkillValidationError(f"nothing was installed: {reading.info.name!a} cannot be the name of a folder")
    return reading.info, reading.problems


def _folder(path: Path) -> FileTree:
    try:
        tree = read_tree(path)
    except TreeRefused as error:
        raise SkillLoadError(f"{path}: {error}; nothing was installed") from None
    size = sum(len(file.data) for file in tree.files.values())
    if size > MAX_UNPACKED or len(tree.files) > MAX_FILES:
        raise SkillLoadError(f"{path} has more than {MAX_FILES:,} files or {MAX_UNPACKED >> 20} MiB")
    if not any(name in tree.files for name in FILE_NAMES):
        raise SkillLoadError(f"{path} has no {FILE_NAMES[0]}, so it is no skill")
    return tree


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_PACKED + 1)
    except OSError as error:
        raise SkillLoadError(f"{path} cannot be read: {error.strerror or error}") from None


def _remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.is_symlink() or path.is_file():
            path.unlink()
        else:
            shutil.rmtree(path)
