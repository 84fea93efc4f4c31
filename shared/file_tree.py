"""FileTree: the files below a folder, read once without following links, with a fingerprint of each."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_FILES = 5_000
MAX_TREE_BYTES = 64 << 20
MAX_TREE_DEPTH = 24
#: Folders that are made by tools and never loaded from: neither read nor copied.
IGNORED = frozenset({"__pycache__", ".git"})

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class TreeRefused(Exception):
    """A tree that cannot be vouched for, with the entry that is the reason."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True)
class TreeFile:
    """One file: its content, and whether it may be run as a program."""

    data: bytes = field(repr=False)
    executable: bool = False

    @property
    def digest(self) -> str:
        """The fingerprint; a change of the content or of the right to run it changes it."""
        mark = b"x" if self.executable else b"-"
        return hashlib.sha256(mark + self.data).hexdigest()


@dataclass(frozen=True)
class FileTree:
    """Files by their path relative to the folder, sorted."""

    files: Mapping[str, TreeFile]

    def digests(self, prefix: str = "") -> dict[str, str]:
        """The fingerprint of every file, by its path with `prefix` in front."""
        return {f"{prefix}{path}": file.digest for path, file in self.files.items()}

    def write(self, folder: Path) -> None:
        """Put all files below a folder that exists, for its owner alone."""
        for path, file in self.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            target.write_bytes(file.data)
            target.chmod(0o700 if file.executable else 0o600)


def read_tree(root: str | Path, inside: str = "") -> FileTree:
    """Everything below `root/inside`; no files if it does not exist.

    A link, a special file, or too much of anything raises TreeRefused: what is not read here could
    not be told from what is loaded later.
    """
    prefix = f"{inside}/" if inside else ""
    try:
        with _opened(os.fspath(root), inside) as descriptor:
            found = {path.removeprefix(prefix): file for path, file in _Walk().files(descriptor, prefix, 0)}
    except FileNotFoundError:
        found = {}
    except OSError as error:
        raise TreeRefused(inside or ".", f"cannot be read: {error.strerror or error}") from None
    return FileTree(dict(sorted(found.items())))


def read_one(root: str | Path, path: str) -> TreeFile | None:
    """One file below a root, reached without following links; None if there is none."""
    folder, _, name = path.rpartition("/")
    try:
        with _opened(os.fspath(root), folder) as descriptor:
            return _Walk().file(descriptor, name, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TreeRefused(path, f"cannot be read: {error.strerror or error}") from None


class _opened:  # noqa: N801 - used like a function
    """A descriptor of a folder below a root, reached step by step without following links."""

    def __init__(self, root: str, inside: str) -> None:
        self._root, self._parts = root, [part for part in inside.split("/") if part]

    def __enter__(self) -> int:
        self._descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for depth, part in enumerate(self._parts, 1):
                shown = "/".join(self._parts[:depth])
                _refuse_link(os.stat(part, dir_fd=self._descriptor, follow_symlinks=False), shown)
                inner = os.open(part, _FOLDER, dir_fd=self._descriptor)
                os.close(self._descriptor)
                self._descriptor = inner
        except BaseException:
            os.close(self._descriptor)
            raise
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class _Walk:
    """Reads files and keeps count, so that a hostile tree ends the reading instead of the host."""

    def __init__(self) -> None:
        self._count = 0
        self._bytes = 0

    def files(self, descriptor: int, prefix: str, depth: int) -> Iterator[tuple[str, TreeFile]]:
        if depth > MAX_TREE_DEPTH:
            raise TreeRefused(prefix.rstrip("/"), f"is nested deeper than {MAX_TREE_DEPTH} folders")
        for name in sorted(os.listdir(descriptor)):
            path = prefix + name
            found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            _refuse_link(found, path)
            if not stat.S_ISDIR(found.st_mode):
                yield path, self.file(descriptor, name, path)
            elif name not in IGNORED:
                inner = os.open(name, _FOLDER, dir_fd=descriptor)
                try:
                    yield from self.files(inner, path + "/", depth + 1)
                finally:
                    os.close(inner)

    def file(self, folder: int, name: str, path: str) -> TreeFile:
        _require_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
        descriptor = os.open(name, _FILE, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as stream:
            mode = os.fstat(descriptor).st_mode
            _require_regular(os.fstat(descriptor), path)
            data = stream.read(MAX_TREE_BYTES - self._bytes + 1)
        self._count += 1
        self._bytes += len(data)
        if self._count > MAX_FILES:
            raise TreeRefused(path, f"is one of more than {MAX_FILES:,} files, the most that can be vouched for")
        if self._bytes > MAX_TREE_BYTES:
            raise TreeRefused(path, f"is beyond {MAX_TREE_BYTES >> 20} MiB, the most that can be vouched for")
        return TreeFile(data, bool(mode & stat.S_IXUSR))


def _refuse_link(found: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise TreeRefused(path, "is a link, which could point elsewhere tomorrow; put the file itself there")


def _require_regular(found: os.stat_result, path: str) -> None:
    _refuse_link(found, path)
    if not stat.S_ISREG(found.st_mode):
        raise TreeRefused(path, "is neither a file nor a folder")
