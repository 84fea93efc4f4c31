"""Database: one SQLite file, opened safely; what can go wrong with it is told as one of our errors."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import suppress
from pathlib import Path

from shared.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked
from shared.store.schema import VERSION, migrate, version_of

BUSY_SECONDS = 5.0
_CODES: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreLocked, "another process keeps it locked: wait for it, or end it"),
    sqlite3.SQLITE_LOCKED: (StoreLocked, "another process keeps it locked: wait for it, or end it"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupt, "it is damaged: move it away and a new one is made"),
    sqlite3.SQLITE_NOTADB: (StoreCorrupt, "it is not a database of runs: move it away and a new one is made"),
    sqlite3.SQLITE_FULL: (StoreFull, "the disk is full: make room"),
    sqlite3.SQLITE_READONLY: (StoreError, "it cannot be written: check the permissions of the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: (StoreError, "it cannot be opened: check the permissions of its folder"),
    sqlite3.SQLITE_PERM: (StoreError, "it cannot be opened: check the permissions of its folder"),
    sqlite3.SQLITE_IOERR: (StoreFull, "it cannot be written: check the disk, and the room that is left on it"),
}
_making = threading.Lock()  # no connection is made between the making of a file and its closing


def explained(error: sqlite3.Error, path: Path) -> StoreError:
    """What went wrong, as one of our errors that says what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    kind, hint = _CODES.get(code, (StoreError, "look at the file, or move it away"))
    return kind(f"the store {path}: {hint} ({error}); JAATO_STORE=off works without one")


class Database:
    """Where the file is, and how connections to it are made. Every connection belongs to whoever opened it."""

    def __init__(self, path: Path, *, ignored: bool = False, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._ignored = ignored  # the folder is ours, and git shall not see it
        self._busy = busy_seconds

    def open(self) -> sqlite3.Connection:
        """A connection for writing; file and tables are made, or brought up to date, where needed."""
        try:
            self._make_file()
        except OSError as error:
            raise StoreError(
                f"the store {self.path} cannot be made: {error.strerror or error}: choose another path, or set "
                "JAATO_STORE=off to work without one"
            ) from error
        try:
            connection = self._connect()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        try:
            self._prepare(connection)
        except sqlite3.Error as error:
            connection.close()
            raise explained(error, self.path) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def read(self) -> sqlite3.Connection:
        """A connection for reading only; raises where there is no store yet, or one of another version."""
        if not self.path.is_file():
            raise StoreError(f"there is no store at {self.path}: nothing was run there yet")
        try:
            connection = self._connect()
            try:
                if version_of(connection) < VERSION:
                    migrate(connection)
                self._require_known(connection)
                connection.execute("PRAGMA query_only = ON")
            except BaseException:
                connection.close()
                raise
            return connection
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def _make_file(self) -> None:
        """The folder and an empty file for the owner alone; a link in a folder of somebody else's making is refused.

        A file that exists is never opened here: to close it would let go of the locks that other connections of this
        process hold on it, and others would throw away what those have written.
        """
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._ignored:
            if folder.is_symlink():
                raise StoreError(f"the store's folder {folder} is a link to somewhere else: remove it")
            _ignore(folder / ".gitignore")
            for end in ("", "-wal", "-shm"):
                _make_private(f"{self.path}{end}")
        with _making, suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    def _connect(self) -> sqlite3.Connection:
        with _making:
            connection = sqlite3.connect(
                self.path, timeout=self._busy, isolation_level=None, check_same_thread=False, cached_statements=256
            )
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """A process that is killed loses nothing it committed; only at a power cut the last moments may be missing."""
        version = version_of(connection)
        if not version:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # a thread in the background does it
        if version < VERSION:
            migrate(connection)
        self._require_known(connection)

    def _require_known(self, connection: sqlite3.Connection) -> None:
        if (version := version_of(connection)) > VERSION:
            raise StoreError(
                f"the store {self.path} has version {version}, this program knows {VERSION}: update the program"
            )
        foreign = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone()
        if foreign is not None:  # a file that came with somebody's project must not run anything
            raise StoreCorrupt(f"the store {self.path} holds '{foreign[0]}', which is not ours: move the file away")


def _ignore(path: Path) -> None:
    """Have git ignore the folder; a file or a link that is there already stays as it is."""
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "w") as file:
            file.write("*\n")


def _make_private(path: str) -> None:
    """Let nobody else read a file of ours: one that came with a project may be open to all, or a link."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise StoreError(f"the store's file {path} is a link to somewhere else: remove it")
    if found.st_uid == os.geteuid() and found.st_mode & 0o077:
        os.chmod(path, 0o600)


def _after_fork() -> None:
    """In a forked process the lock may be held by a thread that it does not have."""
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
