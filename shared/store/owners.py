"""Owners: which process a store was opened by, and whether that process still lives."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from shared.errors import StoreCorrupt

EPOCH = 40  # bits of a key that count within one owner; the bits above are the owner's id
MOST = (1 << (63 - EPOCH)) - 2  # owners whose keys SQLite can hold
_KEYED = (
    *(("agents", "key"), ("runs", "key"), ("messages", "key"), ("mail", "key")),
    *(("runs", "agent"), ("messages", "agent"), ("histories", "agent"), ("tool_calls", "agent"), ("ledger", "agent")),
    ("mail", "agent"),
)


@dataclass(frozen=True)
class ProcessMark:
    """What tells a process from every other: a number alone is given out again."""

    pid: int
    started: str
    boot: str
    host: str


def this_process() -> ProcessMark:
    """The mark of the process that asks."""
    return _mark(os.getpid())


@lru_cache(maxsize=2)
def _mark(pid: int) -> ProcessMark:
    return ProcessMark(pid, _started(pid) or "", _boot(), _host())


def is_alive(mark: ProcessMark) -> bool:
    """Whether a process still runs; one on another machine, or in a container, counts as alive: nobody can tell."""
    here = this_process()
    if mark.host != here.host:
        return True
    if mark.boot != here.boot:
        return False
    if mark == here:
        return True
    started = _started(mark.pid)
    return started is not None and started == mark.started


def keys_of(owner: int) -> tuple[int, int]:
    """The first and the last key that an owner gives out."""
    return owner << EPOCH, ((owner + 1) << EPOCH) - 1


def register(connection: sqlite3.Connection) -> int:
    """Enter this process as an owner; returns the owner's id, higher than all before it.

    What the file holds under numbers that nobody has given out yet, somebody put there to be taken for ours: it goes.
    """
    mark = this_process()
    row = connection.execute(
        "INSERT INTO owners (pid, started, boot, host, opened_at) VALUES (?, ?, ?, ?, ?) RETURNING id",
        (mark.pid, mark.started, mark.boot, mark.host, time.time()),
    ).fetchone()
    found: int = row[0]
    if found > MOST:
        raise StoreCorrupt(f"the store has had {found:,} owners, which cannot be: move the file away")
    connection.execute("DELETE FROM requests WHERE owner = ?", (found,))
    for table, column in _KEYED:
        connection.execute(f"DELETE FROM {table} WHERE {column} BETWEEN ? AND ?", keys_of(found))  # noqa: S608 - no input
    return found


def close(owners: Iterable[int], connection: sqlite3.Connection) -> None:
    """Note that owners are done: what they left unfinished is nobody's."""
    now = time.time()
    connection.executemany("UPDATE owners SET closed_at = ? WHERE id = ?", [(now, owner) for owner in owners])


def dead(connection: sqlite3.Connection, owners: Iterable[int]) -> list[int]:
    """Those of these owners that are gone: closed, killed, or removed."""
    return [owner for owner in owners if _is_dead(connection, owner)]


def _is_dead(connection: sqlite3.Connection, owner: int) -> bool:
    query = "SELECT pid, started, boot, host, closed_at FROM owners WHERE id = ?"
    row = connection.execute(query, (owner,)).fetchone()
    return row is None or row[4] is not None or not is_alive(ProcessMark(*row[:4]))


def _started(pid: int) -> str | None:
    """When a process began, as its system tells; None if there is no such process, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _asked(pid)
    except (OSError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _asked(pid: int) -> str | None:
    """The same where there is no /proc."""
    command = [shutil.which("ps") or "/bin/ps", "-o", "lstart=", "-p", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() or None


@lru_cache(maxsize=1)
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@lru_cache(maxsize=1)
def _host() -> str:
    """The machine and, in a container, its space of process numbers: elsewhere the same number is another process."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{platform.node()} {space}".strip()
