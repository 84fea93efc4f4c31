"""Recovery: runs whose process is gone become `interrupted`, once, by whoever notices first."""

from __future__ import annotations

import logging
import sqlite3
import time
from typing import Any

from shared.store import owners
from shared.store.calls import calls_of
from shared.store.codec import decode_message, encoded
from shared.store.costs import spent_by
from shared.store.writes import end_run
from shared.types import Role

log = logging.getLogger(__name__)

WHY = "its process ended before it had finished; continue_subagent takes it up from what is stored"
_UNFINISHED = "SELECT DISTINCT owner FROM runs WHERE ended_at IS NULL"


def abandoned(db: sqlite3.Connection) -> list[int]:
    """Owners that are gone and left runs unfinished."""
    return owners.dead(db, [row[0] for row in db.execute(_UNFINISHED)])


def recover(db: sqlite3.Connection) -> int:
    """End the runs of owners that are gone as `interrupted`, in one transaction; returns how many."""
    if not abandoned(db):
        return 0
    db.execute("BEGIN IMMEDIATE")
    try:
        count = sum(_interrupt(db, owner) for owner in abandoned(db))  # looked up again: another was quicker, maybe
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    if count:
        log.info("%d runs were interrupted when their process ended", count)
    return count


def _interrupt(db: sqlite3.Connection, owner: int) -> int:
    query = """SELECT runs.key, runs.agent, runs.created_at, agents.agent_id, agents.model, agents.provider
               FROM runs LEFT JOIN agents ON agents.key = runs.agent WHERE runs.owner = ? AND runs.ended_at IS NULL"""
    rows = db.execute(query, (owner,)).fetchall()
    for run, agent, created_at, agent_id, model, provider in rows:
        result = {"agent_id": agent_id or "", "model": model or "", "provider": provider or ""}
        text = encoded({**result, **_so_far(db, agent, created_at), "status": "interrupted", "error": WHY})
        end_run(run, "interrupted", text, time.time(), db)
    return len(rows)


def _so_far(db: sqlite3.Connection, agent: int, since: float) -> dict[str, Any]:
    """What a run had said and used, as far as it is stored."""
    said: list[str] = []
    turns = 0
    for (body,) in db.execute("SELECT body FROM messages WHERE agent = ? AND at >= ? ORDER BY key", (agent, since)):
        message = decode_message(body)
        if message.role is Role.MODEL:
            turns += 1
            said += [message.text] if message.text else []
    spent = spent_by(db, [agent], since=since)
    return {
        "response": "\n".join(said),
        "turns_used": turns,
        "tool_calls": sum(call.started_at >= since for call in calls_of(db, agent)),
        "token_usage": spent.usage.as_dict(),
        "cost_usd": None if spent.unpriced_calls == spent.calls else str(spent.cost_usd),
    }
