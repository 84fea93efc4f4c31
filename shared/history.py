"""History: the messages of one session, always valid: every call has exactly one result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from shared.types import FunctionCall, Message, Part, Role, ToolResult

MakeResult = Callable[[FunctionCall], ToolResult]


class HistorySink(Protocol):
    """Who keeps what is said. Called under the history's lock, so in its order: it must be quick and call nobody."""

    def appended(self, message: Message) -> None:
        """A message was added at the end."""
        ...

    def replaced(self, former: Sequence[Message], fresh: Sequence[Message]) -> None:
        """Other messages stand in place of all."""
        ...


class History:
    """Grows by appending; only context collection replaces it. Costs per append do not grow with length."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._lock = threading.Lock()
        self._messages: list[Message] = list(messages)
        self._tokens = sum(message.tokens for message in self._messages)
        self._sink: HistorySink | None = None

    def keep(self, sink: HistorySink) -> None:
        """Report everything that is said from now on, and what was said before."""
        with self._lock:
            for message in self._messages:
                sink.appended(message)
            self._sink = sink

    def take_up(self, messages: Iterable[Message], sink: HistorySink) -> None:
        """Go on with messages that a sink has already, and report to it what follows."""
        fresh = list(messages)
        with self._lock:
            self._messages, self._sink = fresh, sink
            self._tokens = sum(message.tokens for message in fresh)

    @property
    def messages(self) -> Sequence[Message]:
        """The live messages, for reading in the thread that runs the turn; others take `snapshot()`."""
        return self._messages

    @property
    def tokens(self) -> int:
        """Estimated tokens of all messages."""
        return self._tokens

    def __len__(self) -> int:
        return len(self._messages)

    def snapshot(self) -> list[Message]:
        """A copy that nobody changes."""
        with self._lock:
            return list(self._messages)

    def append(self, message: Message) -> None:
        """Add a message at the end."""
        with self._lock:
            self._messages.append(message)
            self._tokens += message.tokens
            if self._sink is not None:
                self._sink.appended(message)

    def replace(self, messages: Iterable[Message]) -> None:
        """Put another sequence in place of all messages."""
        fresh = list(messages)
        with self._lock:
            if self._sink is not None:
                self._sink.replaced(self._messages, fresh)
            self._messages = fresh
            self._tokens = sum(message.tokens for message in fresh)

    def open_calls(self) -> list[FunctionCall]:
        """Calls of the last model message that have no result yet."""
        with self._lock:
            return _open_calls(self._messages)

    def close_open_calls(self, make_result: MakeResult) -> list[FunctionCall]:
        """Answer every open call, so that the next message may follow; returns the calls answered."""
        with self._lock:
            calls = _open_calls(self._messages)
            if calls:
                message = Message(Role.TOOL, tuple(Part(function_response=make_result(call)) for call in calls))
                self._messages.append(message)
                self._tokens += message.tokens
                if self._sink is not None:
                    self._sink.appended(message)
            return calls


def _open_calls(messages: Sequence[Message]) -> list[FunctionCall]:
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role is Role.MODEL:
            return [call for call in message.function_calls if call.id not in answered]
        answered.update(result.call_id for result in message.results)
    return []


def problems(messages: Sequence[Message]) -> list[str]:
    """What makes a history invalid for providers; empty for a good one."""
    found: list[str] = []
    waiting: dict[str, str] = {}
    for index, message in enumerate(messages):
        for result in message.results:
            if waiting.pop(result.call_id, None) is None:
                found.append(f"message {index}: result '{result.call_id}' answers no open call")
        if message.role is not Role.TOOL and waiting:
            found.append(f"message {index}: calls {sorted(waiting)} have no result")
            waiting.clear()
        if message.results and message.role is not Role.TOOL:
            found.append(f"message {index}: a {message.role.value} message holds tool results")
        for call in message.function_calls:
            if message.role is not Role.MODEL:
                found.append(f"message {index}: a {message.role.value} message makes calls")
            if call.id in waiting:
                found.append(f"message {index}: call id '{call.id}' is used twice")
            waiting[call.id] = call.name
    if waiting:
        found.append(f"at the end: calls {sorted(waiting)} have no result")
    if messages and messages[0].role is not Role.USER:
        found.append(f"message 0: a history begins with a user message, not with {messages[0].role.value}")
    return found
