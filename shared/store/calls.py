"""Calls: the tool calls of an agent, those that have ended and those that its last message asks for."""

from __future__ import annotations

import json
import sqlite3

from shared.store.records import ToolCallRecord
from shared.store.rows import TOOL_CALL, checked, message_of
from shared.types import Role

_ENDED = """SELECT key, call_id, name, started_at, ended_at, is_error, error_kind, result, tells
    FROM tool_calls WHERE agent = ? AND key > ? ORDER BY key"""
_LAST = "SELECT key, body, at FROM messages WHERE agent = ? ORDER BY key DESC LIMIT 1"


def calls_of(db: sqlite3.Connection, agent: int, *, after: int = 0) -> list[ToolCallRecord]:
    """All calls after a message, oldest first; one without an end is at work, or was when its process ended."""
    ended = [_call(*checked(row, TOOL_CALL)) for row in db.execute(_ENDED, (agent, after))]
    return [*ended, *_open(db, agent, ended)]


def _open(db: sqlite3.Connection, agent: int, ended: list[ToolCallRecord]) -> list[ToolCallRecord]:
    """The calls that the last message asks for and that have no result: then nothing follows it."""
    row = db.execute(_LAST, (agent,)).fetchone()
    if row is None:
        return []
    last = message_of(row)
    if last.message.role is not Role.MODEL:
        return []
    known = {call.call_id for call in ended if call.key > last.key}
    asked = [call for call in last.message.function_calls if call.id not in known]
    return [ToolCallRecord(last.key, call.id, call.name, last.at) for call in asked]


def _call(
    key: int,
    call_id: str,
    name: str,
    started: float,
    ended: float | None,
    is_error: int | None,
    kind: str | None,
    result: str | None,
    tells: str | None,
) -> ToolCallRecord:
    told = tuple(json.loads(tells)) if tells else ()
    return ToolCallRecord(key, call_id, name, started, ended, bool(is_error), kind, result, told)
