"""Schema: the tables by version, and the steps that lead from one version to the next."""

from __future__ import annotations

import sqlite3

#: One tuple of statements per version; the first makes version 1. Steps are never changed once released.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE owners (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            pid INTEGER NOT NULL, started TEXT NOT NULL, boot TEXT NOT NULL, host TEXT NOT NULL,
            opened_at REAL NOT NULL, closed_at REAL)""",
        """CREATE TABLE conversations (
            id TEXT PRIMARY KEY, owner INTEGER NOT NULL, workspace TEXT NOT NULL, created_at REAL NOT NULL)
            WITHOUT ROWID""",
        """CREATE TABLE agents (
            key INTEGER PRIMARY KEY, conversation TEXT NOT NULL, agent_id TEXT NOT NULL, parent_id TEXT,
            name TEXT NOT NULL, depth INTEGER NOT NULL, path TEXT NOT NULL, profile TEXT, model TEXT NOT NULL,
            provider TEXT NOT NULL, spec TEXT NOT NULL, created_at REAL NOT NULL, closed_at REAL,
            UNIQUE (conversation, agent_id))""",
        """CREATE TABLE runs (
            key INTEGER PRIMARY KEY, agent INTEGER NOT NULL, owner INTEGER NOT NULL, status TEXT NOT NULL,
            background INTEGER NOT NULL, message TEXT NOT NULL, created_at REAL NOT NULL, started_at REAL,
            ended_at REAL, result TEXT, told_at REAL)""",
        "CREATE INDEX runs_by_agent ON runs (agent)",
        "CREATE INDEX runs_unfinished ON runs (owner) WHERE ended_at IS NULL",
        "CREATE TABLE messages (key INTEGER PRIMARY KEY, agent INTEGER NOT NULL, body TEXT NOT NULL, at REAL NOT NULL)",
        "CREATE INDEX messages_by_agent ON messages (agent)",
        "CREATE TABLE histories (agent INTEGER PRIMARY KEY, after INTEGER NOT NULL, keys TEXT NOT NULL)",
        """CREATE TABLE tool_calls (
            agent INTEGER NOT NULL, key INTEGER NOT NULL, call_id TEXT NOT NULL, name TEXT NOT NULL,
            started_at REAL NOT NULL, ended_at REAL, is_error INTEGER, error_kind TEXT, result TEXT,
            PRIMARY KEY (agent, key)) WITHOUT ROWID""",
        """CREATE TABLE ledger (
            agent INTEGER NOT NULL, key INTEGER NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
            prompt INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
            cache_write INTEGER NOT NULL, cost TEXT, purpose TEXT NOT NULL, duration REAL NOT NULL,
            retries INTEGER NOT NULL, error TEXT, at REAL NOT NULL, PRIMARY KEY (agent, key)) WITHOUT ROWID""",
        """CREATE TABLE state (
            conversation TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, version INTEGER NOT NULL,
            expires_at REAL, at REAL NOT NULL, PRIMARY KEY (conversation, name)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE requests (
            id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, agent INTEGER NOT NULL, kind TEXT NOT NULL,
            body TEXT NOT NULL, at REAL NOT NULL, answered_at REAL, answer TEXT)""",
        "CREATE INDEX requests_open ON requests (owner) WHERE answered_at IS NULL",
        "ALTER TABLE agents ADD COLUMN cleanup INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE tool_calls ADD COLUMN tells TEXT",
    ),
    (
        "CREATE TABLE mail (key INTEGER PRIMARY KEY, agent INTEGER NOT NULL, body TEXT NOT NULL, at REAL NOT NULL)",
        "CREATE INDEX mail_by_agent ON mail (agent)",
    ),
)
VERSION = len(STEPS)
#: What removes everything that belongs to one agent.
REMOVE_AGENT = (
    "DELETE FROM runs WHERE agent = ?",
    "DELETE FROM messages WHERE agent = ?",
    "DELETE FROM histories WHERE agent = ?",
    "DELETE FROM tool_calls WHERE agent = ?",
    "DELETE FROM ledger WHERE agent = ?",
    "DELETE FROM requests WHERE agent = ?",
    "DELETE FROM mail WHERE agent = ?",
    "DELETE FROM agents WHERE key = ?",
)


def version_of(connection: sqlite3.Connection) -> int:
    """The version that a database is at; 0 for an empty one."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def migrate(connection: sqlite3.Connection, *, to: int = VERSION) -> None:
    """Take the steps that are missing, in one transaction; another process may be at it too."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in STEPS[version_of(connection) : to]:
            for statement in step:
                connection.execute(statement)
        if version_of(connection) < to:
            connection.execute(f"PRAGMA user_version = {to:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
