"""ToolCall: one tool call of a client, at work on a thread while the event loop waits, reports and asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from shared.executors.threads import workers
from shared.mcp_server.conversation import Conversation
from shared.mcp_server.desk import Desk
from shared.mcp_server.rounds import RoundClerk
from shared.types import ToolResult


class ToolCall:
    """Starts at once; ends by itself or by its cancel, which ends the foreground run it waits for."""

    def __init__(self, conversation: Conversation, name: str, args: Mapping[str, Any], *, call_id: str) -> None:
        self.name, self.args = name, args
        self.result: ToolResult | None = None
        self.rounds: RoundClerk | None = None  # where questions travel inside answers
        self._loop = asyncio.get_running_loop()
        self._stir = asyncio.Event()
        self._stack = ExitStack()
        self._cancel = conversation.session.cancel_token.child()
        workers.submit(lambda: self._work(conversation, call_id))

    def ask_in_rounds(self, desk: Desk, *, covers: Callable[[str], bool]) -> None:
        """Let questions interrupt the wait: the client answers them when it tries the call again."""
        self.rounds = RoundClerk(self._stir.set, covers=covers)
        self._stack.enter_context(desk.attended(self.rounds))

    async def progress(self) -> None:
        """Wait until the call has ended or has something to ask."""
        while self.result is None and not self.has_questions:
            self._stir.clear()
            await self._stir.wait()

    @property
    def has_questions(self) -> bool:
        """Whether its client has to be asked something."""
        return self.rounds is not None and self.rounds.has_questions

    def cancel(self, reason: str) -> None:
        """Stop it, and the foreground run it waits for, now."""
        self._cancel.cancel(reason)
        self.leave()

    def leave(self) -> None:
        """Take no more questions."""
        self._stack.close()

    def _work(self, conversation: Conversation, call_id: str) -> None:
        result = conversation.run(self.name, self.args, cancel=self._cancel, call_id=call_id)
        self._soon(lambda: self._end(result))

    def _end(self, result: ToolResult) -> None:
        self.result = result
        self.leave()
        self._stir.set()

    def _soon(self, call: Callable[[], Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits for the result
            self._loop.call_soon_threadsafe(call)
