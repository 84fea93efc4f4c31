"""Reader: what is in a store, for this process or another one; reading never blocks those who write."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from shared.errors import StoreCorrupt, SubagentNotFoundError
from shared.store import owners
from shared.store.calls import calls_of
from shared.store.codec import decode_message
from shared.store.costs import spent_by
from shared.store.database import Database, explained
from shared.store.records import (
    AgentRecord,
    ConversationRecord,
    Cost,
    RunRecord,
    StateRecord,
    StoredMessage,
    ToolCallRecord,
)
from shared.store.recovery import abandoned, recover
from shared.store.rows import CONVERSATION, MAIL, STATE, UNREADABLE, agent_of, checked, message_of, run_of

_BELOW = """WITH RECURSIVE below (agent_id) AS (
    SELECT agent_id FROM agents WHERE conversation = :conversation AND parent_id = :agent_id
    UNION SELECT agents.agent_id FROM agents JOIN below ON agents.parent_id = below.agent_id
    WHERE agents.conversation = :conversation)
    SELECT agents.* FROM agents JOIN below USING (agent_id) WHERE agents.conversation = :conversation
    ORDER BY agents.key"""
_UNTOLD = """SELECT runs.* FROM runs JOIN agents ON agents.key = runs.agent
    WHERE agents.conversation = ? AND agents.parent_id = ? AND runs.ended_at IS NOT NULL AND runs.told_at IS NULL
    ORDER BY runs.ended_at, runs.key"""


class Reader:
    """Answers from one connection, one question at a time. Runs of processes that are gone show as interrupted."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._database = Database(self.path)
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- conversations and agents ----------------------------------------------------------------

    def conversations(self) -> list[ConversationRecord]:
        """All conversations, the one that was active last first."""
        with self._read() as db:
            rows = db.execute("SELECT id, owner, workspace, created_at FROM conversations").fetchall()
            found = [self._conversation(db, *checked(row, CONVERSATION)) for row in rows]
        return sorted(found, key=lambda each: each.updated_at, reverse=True)

    def agents(self, conversation: str | None = None) -> list[AgentRecord]:
        """The agents of a conversation, or of all, main ones included, oldest first."""
        query = "SELECT * FROM agents WHERE ?1 IS NULL OR conversation = ?1 ORDER BY key"
        with self._read() as db:
            return [agent_of(row) for row in db.execute(query, (conversation,))]

    def agent(self, name: str, *, conversation: str | None = None) -> AgentRecord:
        """The agent of that id or unique name; of several, one that is not closed."""
        with self._read() as db:
            query = "SELECT * FROM agents WHERE (agent_id = ?1 OR name = ?1) AND (?2 IS NULL OR conversation = ?2)"
            found = [agent_of(row) for row in db.execute(query, (name, conversation))]
        exact = [each for each in found if each.agent_id == name] or found
        still = [each for each in exact if each.closed_at is None]
        if len(exact) == 1 or len(still) == 1:
            return exact[0] if len(exact) == 1 else still[0]
        if not exact:
            raise SubagentNotFoundError(f"no agent '{name}' in the store {self.path}: `jaato runs` lists them")
        ids = ", ".join(each.agent_id for each in exact[-20:])
        raise SubagentNotFoundError(f"{len(exact)} agents are named '{name}': use an id: {ids}")

    def below(self, agent: AgentRecord) -> list[AgentRecord]:
        """All agents below one, at any depth, oldest first."""
        with self._read() as db:
            values = {"conversation": agent.conversation, "agent_id": agent.agent_id}
            return [agent_of(row) for row in db.execute(_BELOW, values)]

    # -- runs ------------------------------------------------------------------------------------

    def runs(self, agent: int) -> list[RunRecord]:
        """The runs of an agent, oldest first."""
        with self._read() as db:
            return [run_of(row) for row in db.execute("SELECT * FROM runs WHERE agent = ? ORDER BY key", (agent,))]

    def newest_runs(self, agents: Sequence[int]) -> dict[int, RunRecord]:
        """The newest run of each agent that has one."""
        query = "SELECT * FROM runs WHERE agent = ? ORDER BY key DESC LIMIT 1"
        with self._read() as db:
            rows = [row for agent in agents for row in db.execute(query, (agent,))]
            return {run.agent: run for run in map(run_of, rows)}

    def untold(self, conversation: str, parent_id: str) -> list[RunRecord]:
        """The inbox of an agent: runs of its children that ended, and whose results it does not have."""
        with self._read() as db:
            return [run_of(row) for row in db.execute(_UNTOLD, (conversation, parent_id))]

    # -- what was said and done ------------------------------------------------------------------

    def transcript(self, agent: int, *, after: int = 0) -> list[StoredMessage]:
        """Everything that was said, what context collection removed included; `after` a key, what is new since."""
        query = "SELECT key, body, at FROM messages WHERE agent = ? AND key > ? ORDER BY key"
        with self._read() as db:
            return [message_of(row) for row in db.execute(query, (agent, after))]

    def history(self, agent: int) -> list[StoredMessage]:
        """The history as the model would see it now."""
        with self._read() as db:
            row = db.execute("SELECT after, keys FROM histories WHERE agent = ?", (agent,)).fetchone()
            after, keys = (row[0], json.loads(row[1])) if row is not None else (0, [])
            one = "SELECT key, body, at FROM messages WHERE key = ?"
            rows = [found for key in keys if (found := db.execute(one, (key,)).fetchone()) is not None]
            query = "SELECT key, body, at FROM messages WHERE agent = ? AND key > ? ORDER BY key"
            rows += db.execute(query, (agent, after)).fetchall()
            return [message_of(row) for row in rows]

    def mail(self, agent: int, *, before: int | None = None) -> list[tuple[int, str]]:
        """Keys and texts of the letters that an agent has not read, oldest first; `before` a key, the older ones."""
        query = "SELECT key, body FROM mail WHERE agent = ?1 AND (?2 IS NULL OR key < ?2) ORDER BY key"
        with self._read() as db:
            return [(key, text) for key, text in (checked(row, MAIL) for row in db.execute(query, (agent, before)))]

    def tool_calls(self, agent: int, *, after: int = 0) -> list[ToolCallRecord]:
        """The tool calls of an agent, oldest first, those at work included; `after` a message's key, newer ones."""
        with self._read() as db:
            return calls_of(db, agent, after=after)

    def cost(self, agents: Sequence[int], *, since: float = 0.0) -> Cost:
        """What agents have spent, since a moment or at all."""
        with self._read() as db:
            return spent_by(db, agents, since=since)

    def shared_state(self, conversation: str) -> list[StateRecord]:
        """The shared values of a conversation, those that ran out included."""
        query = "SELECT name, value, version, expires_at FROM state WHERE conversation = ? ORDER BY name"
        with self._read() as db:
            return [StateRecord(*checked(row, STATE)) for row in db.execute(query, (conversation,))]

    # -- inside ----------------------------------------------------------------------------------

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one question; what is wrong with the file is told as one of our errors."""
        with self._lock:
            try:
                if self._db is None:
                    self._db = self._database.read()
                self._notice(self._db)
                yield self._db
            except sqlite3.Error as error:
                raise explained(error, self.path) from error
            except UNREADABLE as error:  # what stands there was not written by us
                raise StoreCorrupt(
                    f"the store {self.path} holds something unreadable: {error!r}; move it away"
                ) from error

    def _notice(self, db: sqlite3.Connection) -> None:
        """Runs of a process that is gone become interrupted before anything is told about them."""
        if not abandoned(db):
            return
        db.execute("PRAGMA query_only = OFF")
        try:
            recover(db)
        finally:
            db.execute("PRAGMA query_only = ON")

    @staticmethod
    def _conversation(
        db: sqlite3.Connection, conversation: str, owner: int, workspace: str, created_at: float
    ) -> ConversationRecord:
        main = "SELECT key FROM agents WHERE conversation = ? AND parent_id IS NULL"
        row = db.execute(main, (conversation,)).fetchone()
        key = row[0] if row is not None else -1
        sums = "SELECT count(*), min(key), max(at) FROM messages WHERE agent = ?"
        count, first, last = db.execute(sums, (key,)).fetchone()
        text = ""
        if first is not None:
            [body] = db.execute("SELECT body FROM messages WHERE key = ?", (first,)).fetchone()
            text = " ".join((decode_message(body).text or "").split())
        [agents] = db.execute("SELECT count(*) FROM agents WHERE conversation = ?", (conversation,)).fetchone()
        live, title = not owners.dead(db, [owner]), text if len(text) <= 80 else f"{text[:79]}…"
        [updated] = checked([last or created_at], ["time"])
        return ConversationRecord(conversation, owner, workspace, created_at, updated, title, live, agents, count)


def follow(reader: Reader, agent: AgentRecord, *, poll_seconds: float = 0.3) -> Iterator[StoredMessage]:
    """The messages of an agent, and those to come, until its newest run has ended."""
    after = 0
    while True:
        newest = reader.newest_runs([agent.key]).get(agent.key)  # before the messages: none is overlooked at the end
        for message in reader.transcript(agent.key, after=after):
            after = message.key
            yield message
        if newest is None or not newest.is_live:
            return
        time.sleep(poll_seconds)
