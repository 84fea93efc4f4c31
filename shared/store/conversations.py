"""Conversations: a main session that is kept from its first message on, and taken up again after a restart."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from shared.errors import StoreError
from shared.store import owners, writes
from shared.store.codec import decode_result
from shared.store.mail import left_over
from shared.store.reader import Reader
from shared.store.recorder import Recorder
from shared.store.records import AgentRecord, ConversationRecord, ToolCallRecord
from shared.store.store import Store
from shared.types import FunctionCall, Role, ToolResult

if TYPE_CHECKING:
    from shared.session import JaatoSession

KEY = "conversation"
UNKNOWN = (
    "Outcome unknown: the process ended before the result of this call was stored. It may have been done wholly, "
    "partly or not at all: check before you do it again."
)


@dataclass(frozen=True)
class Conversation:
    """A session that is kept, and where."""

    id: str
    store: Store
    recorder: Recorder
    resumed: bool = False

    def tell(self, run: int) -> None:
        """The parent of a run has its result."""
        self.store.put(partial(writes.tell, (run,)))

    def share(self, name: str, value: str, version: int, expires_at: float | None) -> None:
        """A shared value is another one; that is on disk when this returns, and a newer one is never overwritten."""
        self.store.put(partial(writes.share, self.id, name, value, version, expires_at))
        self.store.commit()


def kept(session: JaatoSession) -> Conversation | None:
    """The conversation that a session is kept as, if it is."""
    found = session.extras.get(KEY)
    return found if isinstance(found, Conversation) else None


def keep(session: JaatoSession, store: Store) -> Conversation | None:
    """Keep a main session, with what was said before; None where the store cannot be written."""
    with store.beginning:
        if (found := kept(session)) is not None or not store.open():
            return found
        conversation = f"conv_{secrets.token_hex(5)}"
        store.put(partial(writes.add_conversation, conversation, store.owner, str(session.runtime.workspace)))
        made = Conversation(conversation, store, _begin(session, store, conversation))
        store.commit()
        session.extras[KEY] = made
        return made


def lead(session: JaatoSession, store: Store, conversation: str) -> Conversation | None:
    """Go on with the conversation of this id in an idle session, or begin it; None while another process leads it.

    Raises StoreError if the store cannot be written.
    """
    store.require_open()
    if any(each.id == conversation and each.is_live for each in store.reader.conversations()):
        return None
    if not store.take_over(partial(_claim_or_begin, conversation, str(session.runtime.workspace))):
        return None
    main = next((agent for agent in store.reader.agents(conversation) if agent.is_main), None)
    recorder = take_up(session, store, main.key) if main is not None else _begin(session, store, conversation)
    store.commit()
    made = Conversation(conversation, store, recorder, resumed=True)
    session.extras[KEY] = made
    return made


def last_conversation(reader: Reader) -> ConversationRecord | None:
    """The conversation that was active last and that no process leads any more."""
    found = [each for each in reader.conversations() if not each.is_live and (each.messages or each.agents > 1)]
    return found[0] if found else None


def resume(session: JaatoSession, store: Store, conversation: str) -> Conversation:
    """Go on with a conversation in an idle session: it gets the stored history, and this process owns it from now on.

    Raises StoreError if there is no such conversation, or another process still leads it.
    """
    if (own := kept(session)) is not None and own.id == conversation:
        return own
    store.require_open()
    reader = store.reader
    main = next((agent for agent in reader.agents(conversation) if agent.is_main), None)
    if main is None:
        known = ", ".join(each.id for each in reader.conversations()[:10]) or "none"
        raise StoreError(f"no conversation '{conversation}' in the store {store.path}. Known: {known}")
    if not store.take_over(partial(_claim, conversation)):
        raise StoreError(f"the conversation {conversation} is still led by another process: end it there first")
    made = Conversation(conversation, store, take_up(session, store, main.key), resumed=True)
    session.extras[KEY] = made
    return made


def take_up(
    session: JaatoSession, store: Store, agent: int, *, run: int | None = None, at_hand: Collection[int] = ()
) -> Recorder:
    """Give an idle session the stored history of an agent, with an answer to every call, and go on keeping it.

    Letters that nobody has read wait for it again, but for those `at_hand`, in memory, and those newer than `run`,
    which are there as well. What waited in the session for another conversation stays with that one, in the store.
    """
    stored = store.reader.history(agent)
    recorder = Recorder(store, agent, [each.key for each in stored])
    asked = max([each.key for each in stored if each.message.role is Role.MODEL], default=0)
    answers = Answers(store.reader.tool_calls(agent, after=asked), recorder)
    session.take_up([each.message for each in stored], recorder, answers)
    session.mail.drop_letters()
    for letter in left_over(store, agent, before=run):
        if letter.key not in at_hand:
            session.mail.leave(letter)
    return recorder


class Answers:
    """What to answer to calls that had no result in the history when their process ended."""

    def __init__(self, calls: Sequence[ToolCallRecord], recorder: Recorder) -> None:
        self._calls = {call.call_id: call for call in calls}
        self._recorder = recorder

    def __call__(self, call: FunctionCall) -> ToolResult:
        """The stored result where there is one, else that nobody knows."""
        found = self._calls.get(call.id)
        if found is not None and found.result is not None:
            for run in found.tells:
                self._recorder.tells(run)
            return decode_result(found.result)
        if found is None or found.ended_at is None:
            self._recorder.lost(call)
        return ToolResult(call.id, call.name, UNKNOWN, is_error=True, error_kind="unknown")


def _begin(session: JaatoSession, store: Store, conversation: str) -> Recorder:
    """Enter the main session of a conversation, and keep what it says."""
    main = AgentRecord(
        key=store.mint(),
        conversation=conversation,
        agent_id=session.agent_id,
        parent_id=None,
        name=session.spec.agent_name,
        depth=0,
        path=session.agent_path,
        profile=session.profile,
        model=session.model_name,
        provider=session.provider_name,
        spec={},
        created_at=time.time(),
    )
    store.put(partial(writes.add_agent, main))
    recorder = Recorder(store, main.key)
    session.keep(recorder)
    return recorder


def _claim_or_begin(conversation: str, workspace: str, owner: int, db: sqlite3.Connection) -> bool:
    """Own a conversation that nobody leads, or that does not exist yet; of two at once only one does."""
    if db.execute("SELECT 1 FROM conversations WHERE id = ?", (conversation,)).fetchone() is not None:
        return _claim(conversation, owner, db)
    writes.add_conversation(conversation, owner, workspace, db)
    return True


def _claim(conversation: str, owner: int, db: sqlite3.Connection) -> bool:
    """Make this process the owner of a conversation that nobody leads."""
    row = db.execute("SELECT owner FROM conversations WHERE id = ?", (conversation,)).fetchone()
    if row is None or not owners.dead(db, [row[0]]):
        return False
    db.execute("UPDATE conversations SET owner = ? WHERE id = ?", (owner, conversation))
    return True
