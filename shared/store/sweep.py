"""Sweep: what is old enough leaves the store; what still runs, or has news for its parent, stays."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from shared.errors import StoreCorrupt
from shared.store import owners
from shared.store.database import Database, explained
from shared.store.recovery import recover
from shared.store.rows import UNREADABLE
from shared.store.writes import remove_agents

_LAST = """SELECT agents.key, agents.conversation, agents.agent_id, agents.parent_id,
    max(agents.created_at, coalesce(agents.closed_at, 0), coalesce((SELECT max(ended_at) FROM runs
    WHERE agent = agents.key), 0), coalesce((SELECT max(at) FROM messages WHERE agent = agents.key), 0)),
    EXISTS (SELECT 1 FROM runs WHERE agent = agents.key AND ended_at IS NULL),
    (SELECT status FROM runs WHERE agent = agents.key ORDER BY key DESC LIMIT 1),
    EXISTS (SELECT 1 FROM runs WHERE agent = agents.key AND told_at IS NULL) FROM agents"""
_IN_MEMORY = 3600.0  # seconds: younger ones may still be at hand in the process that leads their conversation


@dataclass(frozen=True)
class Swept:
    """What a sweep removed."""

    agents: int = 0
    conversations: int = 0
    bytes_freed: int = 0


@dataclass(frozen=True)
class _Agent:
    key: int
    conversation: str
    agent_id: str
    parent_id: str | None
    last: float
    is_live: int
    status: str | None  # of its newest run
    has_news: int  # for its parent


def prune(
    path: Path, *, older_than_seconds: float, statuses: Collection[str] | None = None, dry_run: bool = False
) -> Swept:
    """Remove ended agents, and whole conversations of processes that are gone, whose last sign is that old.

    With `statuses`, only agents whose newest run has one of them.
    """
    try:
        with closing(Database(path).open()) as db:
            recover(db)
            before = _size(db)
            db.execute("BEGIN IMMEDIATE")
            try:
                found = _sweep(db, time.time() - older_than_seconds, statuses)
                db.execute("ROLLBACK" if dry_run else "COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise
            if dry_run or not found.agents:
                return found
            db.executescript("PRAGMA incremental_vacuum")
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            return Swept(found.agents, found.conversations, max(0, before - _size(db)))
    except sqlite3.Error as error:
        raise explained(error, path) from error
    except UNREADABLE as error:
        raise StoreCorrupt(f"the store {path} holds something unreadable: {error!r}; move it away") from error


def _sweep(db: sqlite3.Connection, until: float, statuses: Collection[str] | None) -> Swept:
    rows = db.execute(_LAST).fetchall()
    agents = [_Agent(*row) for row in rows]
    owned = dict(db.execute("SELECT id, owner FROM conversations").fetchall())
    living = {owner for owner in set(owned.values()) if not owners.dead(db, [owner])}
    keep = {(each.conversation, each.agent_id) for each in agents if each.is_live or each.last >= until}
    keep |= {(each.conversation, each.agent_id) for each in agents if _is_needed(each, owned, living)}
    if statuses is not None:
        keep |= {(each.conversation, each.agent_id) for each in agents if each.status not in statuses}
    keep = _with_all_above(agents, keep)
    gone = [each for each in agents if (each.conversation, each.agent_id) not in keep]
    remove_agents([each.key for each in gone], db)
    emptied = set(owned) - {conversation for conversation, _ in keep}
    emptied -= {conversation for conversation, owner in owned.items() if owner in living}
    for conversation in emptied:
        db.execute("DELETE FROM conversations WHERE id = ?", (conversation,))
        db.execute("DELETE FROM state WHERE conversation = ?", (conversation,))
    _forget_owners(db)
    return Swept(len(gone), len(emptied))


def _is_needed(agent: _Agent, owned: dict[str, int], living: set[int]) -> bool:
    """Whether a process that leads the conversation may need an agent: the main one, one with news, a young one."""
    if owned.get(agent.conversation) not in living:
        return False
    return agent.parent_id is None or bool(agent.has_news) or agent.last >= time.time() - _IN_MEMORY


def _with_all_above(agents: list[_Agent], keep: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Whoever has somebody below it that stays, stays as well."""
    parents = {(each.conversation, each.agent_id): each.parent_id for each in agents}
    kept = set(keep)
    for conversation, agent_id in keep:
        above = parents.get((conversation, agent_id))
        while above is not None and (conversation, above) not in kept:
            kept.add((conversation, above))
            above = parents.get((conversation, above))
    return kept


def _forget_owners(db: sqlite3.Connection) -> None:
    """Owners that are gone and own nothing any more; the newest stays, so that ids only grow."""
    used = {row[0] for row in db.execute("SELECT owner FROM conversations UNION SELECT owner FROM runs")}
    rows = [row[0] for row in db.execute("SELECT id FROM owners ORDER BY id")]
    for owner in owners.dead(db, [each for each in rows[:-1] if each not in used]):
        db.execute("DELETE FROM owners WHERE id = ?", (owner,))


def _size(db: sqlite3.Connection) -> int:
    pages = db.execute("PRAGMA page_count").fetchone()[0] * db.execute("PRAGMA page_size").fetchone()[0]
    return int(pages)
