"""Locks: opening the file a second time in one process must not let go of those of the first."""

from __future__ import annotations

from pathlib import Path

from support.stores import add_agent, opened, python

LOOK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(sorted(row[0] for row in db.execute("SELECT agent_id FROM agents")))
db.close()
"""


def seen_elsewhere(path: Path) -> str:
    """What another process reads; when it leaves as the last one it folds the log in, and takes it away."""
    out, _ = python(LOOK, str(path)).communicate(timeout=60)
    return str(out).strip()


def test_what_is_written_after_a_second_opening_is_seen_by_others(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_agent(store, "before")
        assert store.commit()
        with opened(path):
            pass
        assert seen_elsewhere(path) == "['before']"
        add_agent(store, "after")
        assert store.commit()
        assert seen_elsewhere(path) == "['after', 'before']"
