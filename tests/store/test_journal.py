"""Writes are batched; a commit is a barrier for all that was put before it; a bad write takes nothing along."""

from __future__ import annotations

import logging
import sqlite3
import threading
from functools import partial
from pathlib import Path

import pytest
from support.stores import add_agent, add_run, end_run, opened, statuses

from shared.errors import StoreError
from shared.store import Reader, Store, writes
from shared.store.database import Database
from shared.store.journal import Journal
from shared.store.place import Place


def count(path: Path, table: str) -> int:
    with sqlite3.connect(path) as db:
        found: int = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return found


def test_a_commit_holds_for_all_that_was_put_before(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        for number in range(50):
            add_agent(store, f"a{number}")
        assert store.commit()
        assert count(path, "agents") == 50


def test_what_nobody_commits_is_written_soon(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_agent(store, "a")
        seen = threading.Event()
        store.put(lambda db: seen.set())
        assert seen.wait(20)
        assert store.commit()
        assert count(path, "agents") == 1


def test_threads_that_commit_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    wrong: list[str] = []
    with opened(path) as store:
        start = threading.Barrier(8)

        def work(name: str) -> None:
            start.wait(20)
            for number in range(25):
                agent = add_agent(store, f"{name}-{number}")
                end_run(store, add_run(store, agent))
                with sqlite3.connect(path) as db:
                    if not store.commit():
                        wrong.append(agent.agent_id)
                    found = db.execute("SELECT ended_at FROM runs WHERE agent = ?", (agent.key,)).fetchone()
                    if found is None or found[0] is None:
                        wrong.append(agent.agent_id)
                db.close()

        threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not wrong
    assert len(statuses(path)) == 200


def test_runs_that_end_together_share_a_transaction(tmp_path: Path) -> None:
    """While one thread writes, others queue up; the next one writes for all of them."""
    path = tmp_path / "runs.db"
    inside, go_on = threading.Event(), threading.Event()
    transactions: list[str] = []
    with opened(path) as store:

        def slow(db: sqlite3.Connection) -> None:
            db.set_trace_callback(lambda text: transactions.append(text) if text == "COMMIT" else None)
            inside.set()
            assert go_on.wait(20)

        store.put(slow)
        leader = threading.Thread(target=store.commit)
        leader.start()
        assert inside.wait(20)
        waiting = []
        for number in range(10):
            end_run(store, add_run(store, add_agent(store, f"a{number}")))
            waiting.append(threading.Thread(target=store.commit))
            waiting[-1].start()
        go_on.set()
        for thread in (leader, *waiting):
            thread.join(20)
        assert len(transactions) == 2
    assert len(statuses(path)) == 10


def test_a_write_that_cannot_be_done_takes_no_other_with_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_agent(store, "before")
        store.put(partial(writes.share, "c1", "bad \ud800 name", "1", 1, None))
        add_agent(store, "after")
        with caplog.at_level(logging.ERROR):
            assert store.commit()
    assert "could not be stored" in caplog.text
    with Reader(path) as reader:
        assert [agent.agent_id for agent in reader.agents()] == ["before", "after"]


def test_trouble_is_told_once_and_what_waits_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    told: list[StoreError] = []
    database = Database(path, busy_seconds=0.01)
    journal = Journal(database, database.open(), told.append)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    journal.put(partial(writes.add_conversation, "c1", 1, "/w"))
    assert [journal.commit() for _ in range(3)] == [False, False, False]
    assert [type(error).__name__ for error in told] == ["StoreLocked"]
    holder.close()
    assert journal.close()
    assert count(path, "conversations") == 1


def test_after_closing_nothing_is_written_and_nothing_breaks(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_agent(store, "a")
    add_agent(store, "late")
    assert not store.commit()
    with Reader(path) as reader:
        assert [agent.agent_id for agent in reader.agents()] == ["a"]


def test_a_strict_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "runs.db"
    path.parent.write_text("in the way")
    store = Store(Place(path, strict=True))
    with pytest.raises(StoreError, match="cannot be made"):
        store.open()
    path.parent.unlink()
    assert store.open(), "once it is mended, it works"
    store.close()
