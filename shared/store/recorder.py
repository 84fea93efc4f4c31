"""Recorder: writes what one agent says, does and spends, as it happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

from shared.ledger import LedgerRow
from shared.mailbox import Letter, Told
from shared.store import writes
from shared.store.mail import post
from shared.types import FunctionCall, Message, Role, ToolResult

if TYPE_CHECKING:
    from shared.store.store import Store


_telling: ContextVar[list[int] | None] = ContextVar("telling", default=None)  # of the call that runs: what it tells of


class RunningCalls:
    """The tool calls of one reply while they run; when there are several, each result is stored as it comes."""

    def __init__(self, store: Store, agent: int, count: int) -> None:
        self._store, self._agent, self._count = store, agent, count

    @contextmanager
    def running(self, call: FunctionCall) -> Iterator[Callable[[ToolResult], None]]:
        """While a call runs, what it tells its agent of is noted; to be called with its result."""
        tells: list[int] = []
        mark = _telling.set(tells)
        try:
            yield partial(self._end, call, time.time(), tells)
        finally:
            _telling.reset(mark)

    def _end(self, call: FunctionCall, started_at: float, tells: list[int], result: ToolResult) -> None:
        store, kept = self._store, tuple(tells) if self._count > 1 else None
        store.put(partial(writes.add_call, self._agent, store.mint(), call, started_at, time.time(), result, kept))


class Recorder:
    """The sink of one session's history, tool calls and ledger rows; costs an entry in a queue, no more."""

    def __init__(self, store: Store, agent: int, keys: Sequence[int] = ()) -> None:
        self.store, self.agent = store, agent
        self._keys = list(keys)  # of the messages in the history, in order
        self._told: list[int] = []  # runs whose results the next tool message brings

    # -- the history, called under its lock ------------------------------------------------------

    def appended(self, message: Message) -> None:
        """A message was added at the end."""
        told: tuple[int, ...] = ()
        letters: tuple[int, ...] = ()
        if message.role is Role.TOOL and self._told:
            told, self._told = tuple(self._told), []
        elif message.role is Role.USER:
            texts = [part.text for part in message.parts]
            told = tuple(run for text in texts if isinstance(text, Told) for run in text.runs)
            letters = tuple(text.key for text in texts if isinstance(text, Letter))
        self._keys.append(self._say(message, told, letters))

    def replaced(self, former: Sequence[Message], fresh: Sequence[Message]) -> None:
        """Other messages stand in place of all; those that stayed keep their place in the store."""
        known = {id(message): key for message, key in zip(former, self._keys, strict=False)}
        keys = [known.get(id(message)) or self._say(message) for message in fresh]
        self._keys = keys
        self.store.put(partial(writes.rewrite, self.agent, self.store.mint(), list(keys)))

    # -- tools and costs -------------------------------------------------------------------------

    def starting(self, calls: Sequence[FunctionCall]) -> RunningCalls:
        """Tools are about to run: the message that asks for them is on disk before they do."""
        self.store.commit()
        return RunningCalls(self.store, self.agent, len(calls))

    def lost(self, call: FunctionCall) -> None:
        """A call was cut off with its process: nobody knows what became of it."""
        now = time.time()
        self.store.put(partial(writes.add_call, self.agent, self.store.mint(), call, now, None, None, None))

    def booked(self, row: LedgerRow) -> None:
        """A model call was made."""
        self.store.put(partial(writes.book, self.store.mint(), self.agent, row))

    def tells(self, run: int) -> None:
        """The next tool message brings the result of a run."""
        if (call := _telling.get()) is not None:
            call.append(run)
        self._told.append(run)

    def post(self, text: str) -> Letter:
        """Keep a text that waits for the agent's next model call; it is on disk when this returns, if it can be."""
        letter = post(self.store, self.agent, text)
        self.store.commit()
        return letter

    def settle(self) -> None:
        """A turn is over: whatever its calls told of has been told."""
        if self._told:
            told, self._told = tuple(self._told), []
            self.store.put(partial(writes.tell, told))

    def _say(self, message: Message, told: tuple[int, ...] = (), letters: tuple[int, ...] = ()) -> int:
        key = self.store.mint()
        self.store.put(partial(writes.say, key, self.agent, message, time.time(), told, letters))
        return key
