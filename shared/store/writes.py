"""Writes: every change to the database as a function; the connection is the last argument, so the rest can be bound."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence

from shared.ledger import LedgerRow
from shared.store.codec import encode_message, encode_result, encoded
from shared.store.records import AgentRecord, Request, RunRecord
from shared.store.schema import REMOVE_AGENT
from shared.types import FunctionCall, Message, ToolResult

_FORGETTABLE = """SELECT agents.key FROM runs JOIN agents ON agents.key = runs.agent WHERE runs.key = ?1
    AND agents.cleanup AND NOT EXISTS (SELECT 1 FROM runs AS others WHERE others.agent = agents.key
    AND others.told_at IS NULL)"""


def add_conversation(conversation: str, owner: int, workspace: str, db: sqlite3.Connection) -> None:
    """A main session is kept from now on."""
    db.execute("INSERT OR IGNORE INTO conversations VALUES (?, ?, ?, ?)", (conversation, owner, workspace, time.time()))


def add_agent(agent: AgentRecord, db: sqlite3.Connection) -> None:
    """An agent exists."""
    db.execute(
        "INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            agent.key,
            agent.conversation,
            agent.agent_id,
            agent.parent_id,
            agent.name,
            agent.depth,
            agent.path,
            agent.profile,
            agent.model,
            agent.provider,
            encoded(agent.spec),
            agent.created_at,
            agent.closed_at,
            agent.cleanup,
        ),
    )


def add_run(run: RunRecord, db: sqlite3.Connection) -> None:
    """A run is queued."""
    db.execute(
        "INSERT INTO runs (key, agent, owner, status, background, message, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (run.key, run.agent, run.owner, run.status, run.background, encode_message(run.message), run.created_at),
    )


def begin_run(run: int, at: float, db: sqlite3.Connection) -> None:
    """A run is at work."""
    db.execute("UPDATE runs SET status = 'running', started_at = ? WHERE key = ? AND ended_at IS NULL", (at, run))


def end_run(run: int, status: str, result: str, at: float, db: sqlite3.Connection) -> None:
    """A run has its one result; a second one changes nothing."""
    db.execute(
        "UPDATE runs SET status = ?, result = ?, ended_at = ? WHERE key = ? AND ended_at IS NULL",
        (status, result, at, run),
    )


def tell(runs: Iterable[int], db: sqlite3.Connection) -> None:
    """The parents of these runs have their results; agents that were to be forgotten then are."""
    now = time.time()
    for run in runs:
        db.execute("UPDATE runs SET told_at = ? WHERE key = ? AND told_at IS NULL", (now, run))
        for (agent,) in db.execute(_FORGETTABLE, (run,)).fetchall():
            remove_agents([agent], db)


def set_model(agent: int, model: str, provider: str, db: sqlite3.Connection) -> None:
    """An agent goes on with another model than it began with."""
    db.execute("UPDATE agents SET model = ?, provider = ? WHERE key = ?", (model, provider, agent))


def narrow_agent(agent: int, tools: Sequence[str], db: sqlite3.Connection) -> None:
    """An agent may call these tools only, from now on."""
    row = db.execute("SELECT spec FROM agents WHERE key = ?", (agent,)).fetchone()
    if row is not None:
        spec = {**json.loads(row[0]), "tools": list(tools)}
        db.execute("UPDATE agents SET spec = ? WHERE key = ?", (encoded(spec), agent))


def close_agents(agents: Sequence[int], db: sqlite3.Connection) -> None:
    """Agents are closed for good."""
    now = time.time()
    db.executemany("UPDATE agents SET closed_at = ? WHERE key = ? AND closed_at IS NULL", [(now, a) for a in agents])


def say(
    key: int,
    agent: int,
    message: Message,
    at: float,
    told: Sequence[int],
    letters: Sequence[int],
    db: sqlite3.Connection,
) -> None:
    """A message is in an agent's history: the results it tells of are delivered, the letters it consists of read."""
    db.execute("INSERT INTO messages VALUES (?, ?, ?, ?)", (key, agent, encode_message(message), at))
    if told:
        tell(told, db)
    if letters:
        drop_mail(letters, db)


def add_mail(key: int, agent: int, text: str, at: float, db: sqlite3.Connection) -> None:
    """A letter waits for an agent's next model call, unless the agent is gone."""
    known = "SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM agents WHERE key = ?2)"
    db.execute(f"INSERT INTO mail {known}", (key, agent, _clean(text), at))


def drop_mail(letters: Iterable[int], db: sqlite3.Connection) -> None:
    """Letters were read, or taken back."""
    db.executemany("DELETE FROM mail WHERE key = ?", [(key,) for key in letters])


def rewrite(agent: int, after: int, keys: Sequence[int], db: sqlite3.Connection) -> None:
    """A history now consists of these messages, and of what is said after them; nothing that was said is lost."""
    db.execute("INSERT OR REPLACE INTO histories VALUES (?, ?, ?)", (agent, after, json.dumps(keys)))


def add_call(
    agent: int,
    key: int,
    call: FunctionCall,
    started_at: float,
    ended_at: float | None,
    result: ToolResult | None,
    tells: Sequence[int] | None,
    db: sqlite3.Connection,
) -> None:
    """A tool has run, or nobody knows: that it was about to is in the message that asks for it.

    `tells` is given where others of the same reply still run: then the result is kept here, with the runs it tells of.
    """
    kept = (None, None) if tells is None or result is None else (encode_result(result), json.dumps(tells))
    ended = (None, None, None) if result is None else (ended_at, result.is_error, result.error_kind)
    db.execute(
        "INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (agent, key, _clean(call.id), _clean(call.name), started_at, *ended, *kept),
    )


def book(key: int, agent: int, row: LedgerRow, db: sqlite3.Connection) -> None:
    """A model call was made."""
    usage, cost = row.usage, None if row.cost_usd is None else str(row.cost_usd)
    tokens = usage.prompt_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
    rest = row.purpose, row.duration_seconds, row.retries, _clean(row.error or "") or None, row.at
    values = (agent, key, row.provider, row.model, *tokens, cost, *rest)
    db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def share(
    conversation: str, name: str, value: str, version: int, expires_at: float | None, db: sqlite3.Connection
) -> None:
    """A shared value is another one; an older version never replaces a newer one."""
    db.execute(
        """INSERT INTO state VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (conversation, name) DO UPDATE SET
           value = excluded.value, version = excluded.version, expires_at = excluded.expires_at, at = excluded.at
           WHERE excluded.version > state.version""",
        (conversation, name, value, version, expires_at, time.time()),
    )


def remove_agents(agents: Sequence[int], db: sqlite3.Connection) -> None:
    """Agents and everything about them are gone."""
    keys = [(agent,) for agent in agents]
    for statement in REMOVE_AGENT:
        db.executemany(statement, keys)


def read_requests(owners: Iterable[int], db: sqlite3.Connection) -> list[Request]:
    """The requests to these owners that have no answer."""
    query = "SELECT id, agent, kind, body FROM requests WHERE owner = ? AND answered_at IS NULL ORDER BY id"
    return [
        Request(number, agent, kind, json.loads(body))
        for owner in owners
        for number, agent, kind, body in db.execute(query, (owner,))
    ]


def answer_request(request: int, answer: str, db: sqlite3.Connection) -> None:
    """A request has its answer."""
    db.execute("UPDATE requests SET answered_at = ?, answer = ? WHERE id = ?", (time.time(), answer, request))


def _clean(text: str) -> str:
    """A text that a column takes: halves of characters, as broken output has them, are written out."""
    return text.encode("utf-8", "backslashreplace").decode()
