"""Workspace: a folder whose files can be read and written, and that no path leads out of.

A path is resolved first, links included, and must then lie beneath the root. The file itself is
reached from the root folder by folder, each opened relative to the one before and without
following links: a link that is swapped in after the check makes the call fail instead of
leading outside.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.errors import ToolError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# O_NONBLOCK: opening a FIFO that was swapped in must not wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


@dataclass(frozen=True)
class Location:
    """A resolved place in a workspace, as the names from the root down to it."""

    root: str
    parts: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The path relative to the workspace, as people and models read it."""
        return "/".join(self.parts) or "."

    @property
    def absolute(self) -> str:
        """The full path."""
        return os.path.join(self.root, *self.parts)


class Workspace:
    """Files beneath one folder; everything that fails raises ToolError with a sentence."""

    def __init__(self, root: Path | str) -> None:
        self.root = os.path.realpath(root)

    def locate(self, path: str) -> Location:
        """Where a path leads, links resolved; refused if that is outside the workspace."""
        if not path.strip():
            raise ToolError("the path is empty: give one relative to the workspace")
        if "\0" in path:
            raise ToolError("the path contains a NUL character, which no file name can have")
        if path == "~" or path.startswith("~/"):
            raise ToolError(f"'{path}': the home folder is outside the workspace; use a path relative to the workspace")
        with _explained(path):
            real = os.path.realpath(os.path.join(self.root, path))
        base = self.root.rstrip("/") + "/"
        if real != self.root and not real.startswith(base):
            raise ToolError(f"'{path}' is outside the workspace {self.root}: use a path inside it")
        return Location(self.root, tuple(part for part in real[len(base) :].split("/") if part))

    @contextlib.contextmanager
    def folder(self, location: Location, *, create: bool = False) -> Iterator[int]:
        """A descriptor of a folder, valid inside the `with` block."""
        with _explained(location.shown), self._reach(location.parts, create=create) as descriptor:
            yield descriptor

    def open(self, location: Location) -> int:
        """A descriptor of a regular file, for reading; folders, devices, FIFOs and sockets are refused."""
        with self._parent(location) as (folder, name):
            # Looked at before opening too: merely opening some devices has effects.
            _require_file(os.stat(name, dir_fd=folder, follow_symlinks=False), location)
            descriptor = os.open(name, _READ, dir_fd=folder)
            try:
                _require_file(os.fstat(descriptor), location)
            except ToolError:
                os.close(descriptor)
                raise
            return descriptor

    def read(self, location: Location, *, limit: int) -> bytes:
        """All bytes of a file that has at most `limit` of them."""
        with os.fdopen(self.open(location), "rb") as stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise ToolError(f"'{location.shown}' is larger than {limit:,} bytes, the most that can be handled at once")
        return data

    def replace(self, location: Location, data: bytes, *, mode: int | None = None) -> None:
        """Put a file in place in one step; an existing one keeps its mode and owner."""
        with self._parent(location, create=True) as (folder, name):
            old = _existing(folder, name, location)
            if old is not None and not os.access(name, os.W_OK, dir_fd=folder):
                raise ToolError(f"'{location.shown}' is read-only")
            temporary = f".{secrets.token_hex(8)}.tmp"
            descriptor = os.open(temporary, _CREATE, 0o666, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data)
                    _keep_rights(descriptor, old, mode)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise

    def remove(self, location: Location) -> None:
        """Delete a regular file."""
        with self._parent(location) as (folder, name):
            _require_file(os.stat(name, dir_fd=folder, follow_symlinks=False), location)
            os.unlink(name, dir_fd=folder)

    def mode(self, location: Location) -> int | None:
        """The permission bits of a regular file; None where there is nothing, an error if it is something else."""
        try:
            with self._parent(location) as (folder, name):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                _require_file(found, location)
                return stat.S_IMODE(found.st_mode)
        except FileMissing:
            return None

    @contextlib.contextmanager
    def _parent(self, location: Location, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """The folder that holds a file, and the file's name in it."""
        if not location.parts:
            raise ToolError("'.' is a folder, not a file")
        with _explained(location.shown), self._reach(location.parts[:-1], create=create) as folder:
            yield folder, location.parts[-1]

    @contextlib.contextmanager
    def _reach(self, names: tuple[str, ...], *, create: bool) -> Iterator[int]:
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in names:
                descriptor = _step(descriptor, name, create=create)
            yield descriptor
        finally:
            os.close(descriptor)


class FileMissing(ToolError):
    """There is no such file or folder."""


def _step(descriptor: int, name: str, *, create: bool) -> int:
    """From one folder into the next; closes the first only when the second is open."""
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=descriptor)
    inner = os.open(name, _FOLDER, dir_fd=descriptor)
    os.close(descriptor)
    return inner


def _existing(folder: int, name: str, location: Location) -> os.stat_result | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _require_file(found, location)
    return found


def _require_file(found: os.stat_result, location: Location) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFLNK: "a link",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    raise ToolError(f"'{location.shown}' is {kinds.get(stat.S_IFMT(found.st_mode), 'special')}, not a regular file")


def _keep_rights(descriptor: int, old: os.stat_result | None, mode: int | None) -> None:
    if old is not None:
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
            with contextlib.suppress(PermissionError):  # only a privileged process can give files away
                os.fchown(descriptor, old.st_uid, old.st_gid)
        mode = stat.S_IMODE(old.st_mode)
    if mode is not None:
        os.fchmod(descriptor, mode)


@contextlib.contextmanager
def _explained(shown: str) -> Iterator[None]:
    """Turn what the system says into a sentence for the model."""
    try:
        yield
    except FileNotFoundError:
        raise FileMissing(f"'{shown}' does not exist") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolError(f"'{shown}' runs into a link that changed or loops; nothing was done") from None
        if error.errno == errno.ENOTDIR:
            raise ToolError(f"'{shown}': a part of the path is not a folder, or was replaced by a link") from None
        raise ToolError(f"'{shown}': {os.strerror(error.errno or 0)}") from None
    except ValueError as error:  # characters that a file name cannot have
        raise ToolError(f"{shown!r} is not a usable path: {error}") from None
