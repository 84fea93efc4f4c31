"""Notices: who wants to hear when results and transcripts change, and telling them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import anyio
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler, ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError

from shared.events import AgentCompleted, AgentCreated, Event, ModelCallEnded, StatusChanged
from shared.mcp_server.conversation import Conversation
from shared.mcp_server.resources import addresses

_INTEREST = frozenset({AgentCreated, StatusChanged, ModelCallEnded, AgentCompleted})


class Notices:
    """Two ways to the client: subscriptions of a connection, and streams that it listens to (2026-07-28)."""

    def __init__(self, conversation: Conversation) -> None:
        self._bus = _Streams()
        self.listen = ListenHandler(self._bus)
        self._sessions: dict[str, ServerSession] = {}  # the newest of each connection
        self._wanted: dict[str, set[str]] = {}
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._end = conversation.runtime.bus.subscribe(self._hear, interest=_INTEREST, awaited=False)

    def meet(self, connection: str, session: ServerSession) -> None:
        """Note how a connection can be reached."""
        self._sessions[connection] = session

    def subscribe(self, connection: str, uri: str) -> None:
        """Tell this connection when the resource changes."""
        self._wanted.setdefault(connection, set()).add(uri)

    def unsubscribe(self, connection: str, uri: str) -> None:
        """Tell it no more."""
        self._wanted.get(connection, set()).discard(uri)

    def forget(self, connection: str) -> None:
        """The connection is gone."""
        self._sessions.pop(connection, None)
        self._wanted.pop(connection, None)

    def close(self) -> None:
        """Tell nobody any more."""
        self._end()
        self.listen.close()
        self._sessions.clear()

    def _hear(self, event: Event) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(lambda: self._tell(event))

    def _tell(self, event: Event) -> None:
        if isinstance(event, AgentCreated):
            self._bus.send(ResourcesListChanged())
            for session in self._sessions.values():
                self._soon(_harmless(session.send_resource_list_changed))
        result, transcript = addresses(event.agent_id)
        for uri in (transcript,) if isinstance(event, ModelCallEnded) else (result, transcript):
            self._bus.send(ResourceUpdated(uri=uri))
            for connection, wanted in self._wanted.items():
                if uri in wanted and (hearer := self._sessions.get(connection)) is not None:
                    self._soon(_harmless(hearer.send_resource_updated, uri))

    def _soon(self, telling: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(telling)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Streams:
    """The open streams of one conversation; an event costs nothing when there is none."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}

    def send(self, event: ServerEvent) -> None:
        """Queue an event on every stream that wants it."""
        for listener in list(self._listeners.values()):
            listener(event)

    async def publish(self, event: ServerEvent) -> None:
        """The same for the SDK."""
        self.send(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Open a stream; returns the way out."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe


async def _harmless(send: Callable[..., Coroutine[Any, Any, None]], *facts: str) -> None:
    with suppress(MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):  # the client is gone
        await send(*facts)
