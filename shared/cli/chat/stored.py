"""StoredConversations: the conversations in a workspace's durable store."""

from __future__ import annotations

from collections.abc import Sequence

from shared.cli.chat.conversations import Conversation, Conversations
from shared.client import JaatoClient
from shared.session import JaatoSession
from shared.store import Store
from shared.store.conversations import keep, resume


class StoredConversations:
    """A store, as the chat sees it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, session: JaatoSession) -> None:
        """Keep what is said from now on; where the store cannot be written, nothing is kept."""
        keep(session, self._store)

    def newest(self) -> Sequence[Conversation]:
        """Those that hold something and that no process leads any more."""
        if not self._store.open():
            return []
        found = self._store.reader.conversations()
        return [Conversation(each.id, each.title) for each in found if each.messages and not each.is_live]

    def resume(self, session: JaatoSession, conversation_id: str) -> None:
        """Go on with one, its subagents included; this process leads it from now on."""
        resume(session, self._store, conversation_id)
        session.runtime.tell_resumed(session)


def stored_conversations(client: JaatoClient) -> Conversations | None:
    """The conversations of a client's store; None where it has none."""
    store = client.get_runtime().store
    return StoredConversations(store) if store is not None else None
