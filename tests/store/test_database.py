"""The file itself: where it is, who may read it, its version, and everything that can be wrong with it."""

from __future__ import annotations

import logging
import sqlite3
import stat
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.stores import opened, python, statuses

from shared.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked
from shared.store import Reader, Store
from shared.store.database import Database, explained
from shared.store.place import USUAL, Place, place_of
from shared.store.schema import VERSION, migrate


def test_file_and_folder_are_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / USUAL
    store = Store(Place(path, ignored=True))
    assert store.open()
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(Path(f"{path}-wal").stat().st_mode) == 0o600
        assert (path.parent / ".gitignore").read_text() == "*\n"
    finally:
        store.close()


def test_git_does_not_see_the_usual_place(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    store = Store(Place(tmp_path / USUAL, ignored=True))
    store.open()
    store.close()
    seen = subprocess.run(["git", "-C", str(tmp_path), "status", "--porcelain"], capture_output=True, text=True)
    assert seen.stdout == ""


@pytest.mark.parametrize(
    ("given", "configured", "expected"),
    [
        (None, None, USUAL),
        (True, "off", USUAL),
        (None, True, USUAL),
        (None, "off", None),
        (None, False, None),
        (False, "runs.db", None),
        (None, "elsewhere.db", "elsewhere.db"),
        ("mine.db", "elsewhere.db", "mine.db"),
    ],
)
def test_where_it_is(given: str | bool | None, configured: str | bool | None, expected: str | None) -> None:
    place = place_of(given, Path("/w"), configured=configured)
    assert (None if place is None else place.path) == (None if expected is None else Path("/w") / expected)
    assert place is None or place.strict == isinstance(given, str)


def test_a_link_in_somebodys_project_leads_nowhere(tmp_path: Path) -> None:
    target = tmp_path / "precious.txt"
    target.write_text("")
    folder = tmp_path / USUAL.parent
    folder.mkdir(parents=True)
    (folder / USUAL.name).symlink_to(target)
    with pytest.raises(StoreError, match=r"runs\.db"):
        Database(tmp_path / USUAL, ignored=True).open()
    assert target.read_text() == ""


def test_a_file_that_runs_something_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path):
        pass
    with sqlite3.connect(path) as db:
        db.execute("CREATE TRIGGER evil AFTER INSERT ON owners BEGIN DELETE FROM owners; END")
    with pytest.raises(StoreCorrupt, match="evil"):
        Store(Place(path, strict=True)).open()


def test_version_1_is_brought_up_to_date_with_all_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    db = sqlite3.connect(path, isolation_level=None)
    migrate(db, to=1)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.execute("INSERT INTO conversations VALUES ('c1', 1, '/w', 5.0)")
    db.execute("INSERT INTO agents VALUES (7, 'c1', 'a', 'main', 'a', 1, 'a', NULL, 'm', 'p', '{}', 5.0, NULL)")
    db.execute(
        """INSERT INTO runs VALUES (8, 7, 1, 'completed', 1, '{"role":"user","parts":[]}', 5.0, 5.0, 6.0,
           '{"status":"completed","response":"kept"}', NULL)"""
    )
    db.close()
    with opened(path) as store:
        [run] = store.reader.runs(7)
        assert run.result == {"status": "completed", "response": "kept"}
        assert store.requests() == []
        assert store.reader.mail(7) == []
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_a_reader_brings_an_old_version_up_to_date_too(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    db = sqlite3.connect(path, isolation_level=None)
    migrate(db, to=1)
    db.close()
    with Reader(path) as reader:
        assert reader.agents() == []


def test_many_processes_may_migrate_at_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    code = """import sys; from pathlib import Path; from support.stores import opened
with opened(Path(sys.argv[1])) as store: print(store.owner)"""
    processes = [python(code, str(path)) for _ in range(6)]
    owners = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert len(owners) == 6
    assert "" not in owners


def test_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError, match="update the program"):
        Store(Place(path, strict=True)).open()
    with pytest.raises(StoreError, match="update the program"):
        Reader(path).agents()


def test_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing was run there yet"):
        Reader(tmp_path / "runs.db").agents()


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_corrupt_file_is_named_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"runs\.db.*move it away"):
        Store(Place(path, strict=True)).open()
    assert path.read_bytes() == content


def test_a_lenient_store_that_cannot_be_opened_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(b"not a database at all" * 100)
    told: list[StoreError] = []
    store = Store(Place(path), on_trouble=told.append)
    with caplog.at_level(logging.WARNING):
        assert [store.open() for _ in range(3)] == [False, False, False]
    assert len(told) == len([record for record in caplog.records if "not stored" in record.message]) == 1


READ_ONLY = """
import os, sys
from pathlib import Path
from shared.store import Store
from shared.store.place import Place
if os.geteuid() == 0:  # root may write everywhere
    os.setuid(65534)
store = Store(Place(Path(sys.argv[1]), strict=sys.argv[2] == "strict"))
try:
    print("opened" if store.open() else "goes on")
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("strict", [True, False])
def test_a_read_only_folder(strict: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        path = str(folder / "runs.db")
        process = python(READ_ONLY, path, "strict" if strict else "", stderr=subprocess.PIPE)
        output, errors = process.communicate(timeout=60)
        folder.chmod(0o755)
    if strict:
        assert output.startswith("StoreError the store ")
        assert path in output
    else:
        assert output == "goes on\n"
        assert path in errors
        assert "not stored" in errors


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made"):
        Store(Place(tmp_path / "file" / "runs.db", strict=True)).open()


def test_a_locked_database_is_told_after_a_while(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path):
        pass
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    waiting = Database(path, busy_seconds=0.05).open()
    try:
        with pytest.raises(sqlite3.OperationalError) as caught:
            waiting.execute("BEGIN IMMEDIATE")
        error = explained(caught.value, path)
        assert isinstance(error, StoreLocked)
        assert "another process keeps it locked" in str(error)
    finally:
        waiting.close()
        holder.close()


FULL = """
import resource, sys
from pathlib import Path
from support.stores import add_agent, add_run, end_run, opened
path = Path(sys.argv[1])
with opened(path, strict=False) as store:
    first = add_agent(store, "first")
    end_run(store, add_run(store, first), response="kept")
    assert store.commit()
    size = Path(f"{path}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
    second = add_agent(store, "second")
    end_run(store, add_run(store, second), response="x" * 500_000)
    print("written" if store.commit() else "refused", flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    import time
    from shared.store.journal import PATIENCE
    deadline = time.monotonic() + 60
    while not store.commit() and time.monotonic() < deadline:
        time.sleep(PATIENCE / 10)
    print("written" if store.commit() else "refused", flush=True)
"""


def test_a_full_disk_loses_nothing_and_what_waits_is_written_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    process = python(FULL, str(path), stderr=subprocess.PIPE)
    output, errors = process.communicate(timeout=100)
    assert output.split() == ["refused", "written"], errors
    assert "check the disk" in errors or "disk is full" in errors
    assert statuses(path) == {"first": "completed", "second": "completed"}


def test_a_database_that_may_not_grow(tmp_path: Path) -> None:
    db = Database(tmp_path / "runs.db").open()
    try:
        db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(sqlite3.OperationalError) as caught:
            db.execute("INSERT INTO state VALUES ('c', 'k', ?, 1, NULL, 0)", ("y" * 100_000,))
        error = explained(caught.value, tmp_path / "runs.db")
        assert isinstance(error, StoreFull)
        assert "make room" in str(error)
    finally:
        db.close()


@pytest.mark.parametrize(
    "body", ["not json", "{}", '{"role":"nobody","parts":[]}', '{"role":"user","parts":[{"call":1}]}']
)
def test_a_message_that_nobody_wrote_is_told_as_such(tmp_path: Path, body: str) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store, sqlite3.connect(path) as db:
        db.execute("INSERT INTO messages VALUES (1, 7, ?, 0)", (body,))
        db.commit()
        with pytest.raises(StoreCorrupt, match="unreadable"):
            store.reader.transcript(7)
