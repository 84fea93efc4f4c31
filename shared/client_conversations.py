"""ConversationFront: what a client offers to keep its conversation, and to take up an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.errors import StoreError

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime
    from shared.session import JaatoSession
    from shared.store.records import ConversationRecord
    from shared.store.store import Store


class ConversationFront:
    """Mixed into the client; a conversation is kept from its first spawn on, or as soon as the host asks."""

    if TYPE_CHECKING:

        def get_runtime(self) -> JaatoRuntime: ...
        def get_session(self) -> JaatoSession: ...

    @property
    def conversation_id(self) -> str | None:
        """The id under which this conversation is kept; None if it is not."""
        from shared.store.conversations import kept

        found = kept(self.get_session())
        return found.id if found is not None else None

    def keep_conversation(self) -> str | None:
        """Store the conversation from its first message on; None where the store cannot be written."""
        from shared.store.conversations import keep

        store = self.get_runtime().store
        found = keep(self.get_session(), store) if store is not None else None
        return found.id if found is not None else None

    def list_conversations(self) -> list[ConversationRecord]:
        """The stored conversations, the one that was active last first."""
        store = self.get_runtime().store
        if store is None or not (store.is_open or store.path.is_file()):
            return []
        return store.reader.conversations()

    def resume_conversation(self, conversation_id: str | None = None) -> str:
        """Go on with a stored conversation, by default the last one; call it after `configure_tools`.

        The session has its history again; its subagents can be read and continued, and what they have to announce
        waits for the next turn. Raises StoreError if there is none, or another process still leads it.
        """
        from shared.store.conversations import last_conversation, resume

        store, session = self._opened_store(), self.get_session()
        if conversation_id is None:
            last = last_conversation(store.reader)
            if last is None:
                raise StoreError(f"the store {store.path} has no conversation that could be taken up: begin one first")
            conversation_id = last.id
        resume(session, store, conversation_id)
        self.get_runtime().tell_resumed(session)
        return conversation_id

    def _opened_store(self) -> Store:
        store = self.get_runtime().store
        if store is None:
            raise StoreError("nothing is stored here (store=False, or JAATO_STORE=off): give a store to keep it in")
        store.require_open()
        return store
