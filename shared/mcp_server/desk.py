"""Desk: where questions of agents wait until a client can put them to its user."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from shared.cancel import CancelToken
from shared.mcp_server.settings import HOW_TO_ALLOW
from shared.permissions.channel import Channel, ChannelFailed
from shared.permissions.request import Decision, PermissionRequest

CANNOT_ASK = f"this MCP client cannot ask its user (it has no elicitation): {HOW_TO_ALLOW}"


@dataclass(eq=False)
class Inquiry:
    """A question on its way to a person; the first answer counts."""

    request: PermissionRequest
    decision: Decision | None = None
    problem: str = "the question was closed without an answer"
    done: threading.Event = field(default_factory=threading.Event)

    def answer(self, decision: Decision) -> None:
        """Give the person's answer."""
        if not self.done.is_set():
            self.decision = decision
            self.done.set()

    def fail(self, problem: str) -> None:
        """Say why there will be no answer, which denies the call."""
        if not self.done.is_set():
            self.problem = problem
            self.done.set()


class Clerk(Protocol):
    """One way to put questions to the user of a client."""

    def covers(self, agent_id: str) -> bool:
        """Whether it belongs to a call that waits for this agent, and so goes on only when the question is answered."""
        ...

    def take(self, inquiry: Inquiry) -> None:
        """Put a question to the user."""
        ...

    def drop(self, inquiry: Inquiry) -> None:
        """Forget a question that needs no answer any more."""
        ...


class Desk:
    """Hands each question to one clerk at a time; lives on the event loop, but for `ask`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Inquiry, Clerk | None] = {}
        self._clerks: list[Clerk] = []
        self._able = False  # whether the newest client can ask anybody

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        """Wait for the answer, on a thread of the asker."""
        inquiry = Inquiry(request)
        forget = ended.on_cancel(inquiry.done.set)
        try:
            self._soon(lambda: self._post(inquiry))
            inquiry.done.wait()
        finally:
            forget()
            self._soon(lambda: self._remove(inquiry))
        if inquiry.decision is None:
            raise ChannelFailed(inquiry.problem)
        return inquiry.decision

    def set_able(self, able: bool) -> None:
        """Note whether the client that speaks now can ask its user; else what nobody has taken yet is denied."""
        self._able = able
        for inquiry, holder in list(self._waiting.items()):
            if not able and holder is None:
                inquiry.fail(CANNOT_ASK)

    @contextmanager
    def attended(self, clerk: Clerk, *, last: bool = False) -> Iterator[None]:
        """Let a clerk take questions for a while; the last one takes what concerns nobody else.

        What it leaves behind goes to another.
        """
        self._clerks.insert(len(self._clerks) if last else 0, clerk)
        self._assign()
        try:
            yield
        finally:
            self._clerks.remove(clerk)
            for inquiry, holder in list(self._waiting.items()):
                if holder is clerk:
                    clerk.drop(inquiry)
                    self._waiting[inquiry] = None
            self._assign()

    def _post(self, inquiry: Inquiry) -> None:
        if not self._able and not self._clerks:
            inquiry.fail(CANNOT_ASK)
        elif not inquiry.done.is_set():
            self._waiting[inquiry] = None
            self._assign()

    def _assign(self) -> None:
        if not self._clerks:
            return
        for inquiry in [each for each, holder in self._waiting.items() if holder is None]:
            clerk = self._clerk_for(inquiry.request.agent_id)
            self._waiting[inquiry] = clerk
            clerk.take(inquiry)

    def _clerk_for(self, agent_id: str) -> Clerk:
        """The call that waits for the agent: any other may be given up while it holds the question."""
        return next((clerk for clerk in self._clerks if clerk.covers(agent_id)), self._clerks[-1])

    def _remove(self, inquiry: Inquiry) -> None:
        holder = self._waiting.pop(inquiry, None)
        if holder is not None:
            holder.drop(inquiry)

    def _soon(self, call: Callable[[], Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed: so is the conversation, and its token ends the question
            self._loop.call_soon_threadsafe(call)


class ElicitationChannel(Channel):
    """Asks through the MCP client."""

    name: ClassVar[str] = "elicitation"
    one_at_a_time: ClassVar[bool] = False

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        """Wait until the client's user has answered."""
        return self._desk.ask(request, ended)
