"""Taking up what a client left behind under a name, perhaps in a server that is gone."""

from __future__ import annotations

import time

from shared.errors import StoreError
from shared.mcp_server.names import Name
from shared.session import JaatoSession
from shared.store.conversations import lead

_PATIENCE = 5.0  # seconds that a server before this one may take to leave: hosts start the next one quickly
_LOOK = 0.1


def take_up(session: JaatoSession, name: Name) -> str | None:
    """Go on with the conversation of a name: its agents, shared values and announcements; else begin it.

    Without a store it lives in memory only; what the client should know of that is returned. Raises StoreError if
    another server leads it.
    """
    store = session.runtime.store
    if store is None:  # switched off: that was wanted
        return None
    if not store.open():
        return (
            f"[The conversation '{name.text}' is not kept, because the store {store.path} cannot be used: earlier "
            "subagents are not here, and those of now end with the server. `jaato doctor` says what to do.]"
        )
    until = time.monotonic() + _PATIENCE
    while lead(session, store, name.stored_id) is None:
        if time.monotonic() >= until:
            raise StoreError(
                f"the conversation '{name.text}' is in use by another server that still runs: end that one, "
                "or choose another name"
            )
        time.sleep(_LOOK)
    session.runtime.tell_resumed(session)
    return None
