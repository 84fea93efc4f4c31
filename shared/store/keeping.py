"""Keeping: the part of a runtime that has to do with its store; nothing of SQLite is loaded before it is used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from shared.bus import EventBus
from shared.events import StoreFailed

if TYPE_CHECKING:
    from shared.errors import StoreError
    from shared.session import JaatoSession
    from shared.store.place import Place
    from shared.store.store import Store


class Keeping:
    """Mixed into the runtime: opens the store when the first thing is worth keeping, and lets go of it in the end."""

    bus: EventBus

    if TYPE_CHECKING:

        @property
        def main_session(self) -> JaatoSession | None: ...

    def __init__(self, place: Place | None) -> None:
        self._place = place
        self._store: Store | None = None
        self._store_lock = threading.Lock()
        self._on_resumed: list[Callable[[JaatoSession], object]] = []
        self._on_close: list[Callable[[], object]] = []

    @property
    def store(self) -> Store | None:
        """Where runs and conversations are kept, opened when the first is; None for nowhere."""
        if self._store is None and self._place is not None:
            from shared.store.store import Store

            with self._store_lock:
                if self._store is None:
                    self._store = Store(self._place, on_trouble=self._store_failed)
        return self._store

    def on_resumed(self, listener: Callable[[JaatoSession], object]) -> None:
        """Call back when a main session was taken up from the store; at once if that has happened."""
        self._on_resumed.append(listener)
        if (session := self.main_session) is not None:
            listener(session)

    def tell_resumed(self, session: JaatoSession) -> None:
        """A main session was taken up from the store."""
        for listener in self._on_resumed:
            listener(session)

    def on_close(self, listener: Callable[[], object]) -> None:
        """Call back before the store is let go of."""
        self._on_close.append(listener)

    def close_store(self) -> None:
        """Write what waits and let go of the store."""
        if self._store is not None:
            for listener in self._on_close:
                listener()
            self._store.close()

    def _store_failed(self, error: StoreError) -> None:
        self.bus.emit(StoreFailed("main", str(error)))
