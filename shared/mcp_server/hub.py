"""Hub: which conversation a request belongs to; opens them when they are needed, closes those left alone."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from shared.errors import JaatoError
from shared.mcp_server.conversation import Conversation
from shared.mcp_server.desk import Desk, ElicitationChannel
from shared.mcp_server.dialogue import Context, Dialogue
from shared.mcp_server.names import LONGEST, Name, Names
from shared.mcp_server.on_thread import on_thread
from shared.mcp_server.settings import ServerSettings

log = logging.getLogger(__name__)

CONVERSATION_HEADER = "jaato-conversation"
SESSION_HEADER = "mcp-session-id"
ONLY = "stdio"  # the connection, and the conversation, of a server with one client
_SWEEP_SECONDS = 30.0
_CLOSE_SECONDS = 10.0
_MOST = 256  # conversations at once
_NAMED = "name:"


class Hub:
    """All conversations of a server; lives on the event loop.

    A conversation belongs to a name that the client chose (header `Jaato-Conversation`), else to its MCP session, and
    over stdio to the process. All of them are made in one place, `_open`. Those with a name are kept in the store.
    """

    def __init__(self, settings: ServerSettings, *, token: str | None = None) -> None:
        self._settings = settings
        self._names = Names(settings.workspace, token=token)
        self._dialogues: dict[str, asyncio.Task[Dialogue]] = {}
        self._present: Counter[str] = Counter()  # open requests by MCP session
        self._streams: Counter[str] = Counter()  # of those, streams for what the server says unasked
        self._closing: dict[str, asyncio.Task[None]] = {}

    async def check(self, *, keep: bool) -> None:
        """Open a conversation before any client comes, so that wrong settings end the server with one clear line."""
        task = self._dialogues[ONLY] = asyncio.get_running_loop().create_task(self._open(ONLY))
        await task
        if not keep:
            await self.close()

    async def of(self, ctx: Context) -> Dialogue:
        """The dialogue that a request belongs to."""
        key, connection = _whose(ctx)
        task = self._dialogues.get(key)
        if task is None:
            task = self._dialogues[key] = asyncio.get_running_loop().create_task(self._open(key))
        try:
            dialogue = await asyncio.shield(task)
        except (JaatoError, OSError) as error:
            if self._dialogues.get(key) is task:
                del self._dialogues[key]
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        dialogue.meet(ctx, connection, reachable=connection == ONLY or self._streams[connection] > 0)
        return dialogue

    @contextmanager
    def presence(self, session_id: str, *, stream: bool) -> Iterator[None]:
        """Count an HTTP request that is open for a session."""
        self._present[session_id] += 1
        self._streams[session_id] += stream
        try:
            yield
        finally:
            _less(self._present, session_id)
            if stream and not _less(self._streams, session_id):
                for dialogue in self._opened().values():
                    dialogue.part(session_id)

    def end_session(self, session_id: str) -> None:
        """A client ended its MCP session; a conversation with a name of its own stays."""
        for dialogue in self._opened().values():
            dialogue.forget(session_id)
        self._end(_of_session(session_id))

    async def sweep(self) -> None:
        """Close conversations that nobody uses any more, for ever."""
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self._settings.keep_seconds))
            for key, dialogue in self._opened().items():
                if self._is_over(key, dialogue):
                    self._end(key)

    async def close(self) -> None:
        """End all conversations, at the same time."""
        for key in list(self._dialogues):
            self._end(key)
        await asyncio.gather(*self._closing.values())

    def _is_over(self, key: str, dialogue: Dialogue) -> bool:
        if dialogue.idle_seconds < self._settings.keep_seconds or key == ONLY:
            return False
        kind, _, session_id = key.partition(":")
        if kind == "session":
            return not self._present[session_id]
        return not dialogue.conversation.is_working

    async def _open(self, key: str) -> Dialogue:
        if len(self._dialogues) > _MOST:
            raise JaatoError(f"{_MOST} conversations are open: end some of them, or wait until they are let go")
        if former := self._closing.get(key):
            await asyncio.wait({former})  # what it leaves in the store is taken up
        desk = Desk(asyncio.get_running_loop())
        conversation = await on_thread(partial(_make, self._settings, desk, self._name(key)))
        return Dialogue(conversation, desk)

    def _name(self, key: str) -> Name | None:
        text = self._settings.conversation if key == ONLY else _name_in(key)
        return self._names.find(text) if text else None

    def _end(self, key: str) -> None:
        """Begin to close a conversation, whatever becomes of the request that asked for it."""
        if opened := self._dialogues.pop(key, None):
            task = asyncio.get_running_loop().create_task(_close(opened))
            self._closing[key] = task
            task.add_done_callback(partial(self._closed, key))

    def _closed(self, key: str, task: asyncio.Task[None]) -> None:
        if self._closing.get(key) is task:
            del self._closing[key]

    def _opened(self) -> dict[str, Dialogue]:
        done = {key: task for key, task in self._dialogues.items() if task.done() and not task.cancelled()}
        return {key: task.result() for key, task in done.items() if task.exception() is None}


async def _close(opened: asyncio.Task[Dialogue]) -> None:
    try:
        dialogue = await opened
    except (JaatoError, OSError):  # it never opened, and whoever asked was told
        return
    dialogue.close()
    try:
        await asyncio.wait_for(on_thread(dialogue.conversation.close), _CLOSE_SECONDS)
    except Exception:  # foreign code: a plugin that fails or hangs at its end must not keep the others from theirs
        log.exception("a conversation could not be closed in order")


def _make(settings: ServerSettings, desk: Desk, name: Name | None) -> Conversation:
    return Conversation(settings, channel=ElicitationChannel(desk), name=name)


def connection_of(ctx: Context) -> str:
    """The connection that a request came on."""
    return _whose(ctx)[1]


def _whose(ctx: Context) -> tuple[str, str]:
    """The conversation of a request, and its connection."""
    if ctx.request is None:
        return ONLY, ONLY
    headers = ctx.request.headers
    session_id, name = headers.get(SESSION_HEADER, ""), headers.get(CONVERSATION_HEADER, "").strip()
    if len(name) > LONGEST:
        raise MCPError(INVALID_PARAMS, f"{CONVERSATION_HEADER}: expected at most {LONGEST} characters")
    if not name and not session_id:
        raise MCPError(INVALID_PARAMS, f"no conversation: send the header {CONVERSATION_HEADER}")
    key = f"{_NAMED}{name}" if name else _of_session(session_id)
    return key, session_id or key


def _name_in(key: str) -> str | None:
    return key.removeprefix(_NAMED) if key.startswith(_NAMED) else None


def _of_session(session_id: str) -> str:
    return f"session:{session_id}"


def _less(counter: Counter[str], key: str) -> int:
    counter[key] -= 1
    left = counter[key]
    if not left:
        del counter[key]
    return left
