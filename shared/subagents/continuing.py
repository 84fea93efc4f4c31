"""Continuing an agent from the store by hand: its conversation is taken up, and it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.cancel import CancelToken
from shared.errors import StoreError, SubagentConfigError
from shared.store.conversations import kept
from shared.subagents.run import Run
from shared.tools import ToolContext

if TYPE_CHECKING:
    from shared.client import JaatoClient
    from shared.subagents.engine import Engine


def continue_stored(client: JaatoClient, engine: Engine, name: str, message: str) -> Run:
    """Begin another run of a stored agent, by id or name; the client's session becomes its conversation.

    Raises if there is none of that name, it is closed, or another process still leads its conversation.
    """
    store = client.get_runtime().store
    if store is None:
        raise StoreError("nothing is stored here: there is no agent that could be continued")
    store.require_open()
    record = store.reader.agent(name)
    if record.is_main:
        raise SubagentConfigError(f"'{name}' is a main conversation: resume it instead")
    session = client.get_session()
    own = kept(session)
    if own is None or own.id != record.conversation:
        client.resume_conversation(record.conversation)
    caller = engine.caller(ToolContext(session.agent_id, CancelToken()))
    agent = caller.tree.find(caller.seat.id, record.agent_id)
    return engine.resume(caller, agent, message, background=False)
