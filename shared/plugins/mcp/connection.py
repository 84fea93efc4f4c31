"""One server: connects in the background, reconnects when a call needs it, and carries calls."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shared.aio import loop_thread
from shared.errors import ToolError
from shared.plugins.mcp.spec import ServerSpec
from shared.plugins.mcp.status import RemoteTool, State
from shared.plugins.mcp.stderr import StderrTail

if TYPE_CHECKING:
    from mcp.types import CallToolResult

    from shared.plugins.mcp.sdk import CancelScope, Link

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0  # between attempts, so that a crashing program is not respawned in a tight loop
LOST = "the connection was lost; the next call connects again"
GOODBYE_SECONDS = 3.0
STOP_SECONDS = 20.0  # twice what a goodbye and the SDK's steps from asking to killing may take together
Progress = Callable[[str], None]


class Connection:
    """State changes happen on the event loop only; methods without underscore are for any thread.

    One owner task at a time opens a session, keeps it and closes it again: the SDK wants to be
    entered and left in one task. `_opening` is what callers wait for while it connects.
    """

    def __init__(
        self, spec: ServerSpec, *, connect_seconds: float, call_seconds: float, on_tools: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.stderr = StderrTail()
        self.settled = threading.Event()  # the first attempt is over, well or badly
        self._state: State = "connecting"
        self._error = ""
        self.tools: tuple[RemoteTool, ...] = ()  # kept while the server is away: calling one brings it back
        self.connect_seconds = connect_seconds
        self.call_seconds = call_seconds
        self._on_tools = on_tools
        self._loop = loop_thread()
        self._owner: asyncio.Task[None] | None = None
        self._opening: asyncio.Future[Link | None] | None = None
        self._link: Link | None = None
        self._scope: CancelScope | None = None
        self._calm = asyncio.Event()  # not just now starting a program
        self._calm.set()
        self._stopping = 0
        self._closed = False
        self._failures = 0
        self._retry_at = 0.0

    @property
    def state(self) -> State:
        """Where the connection stands now."""
        return "failed" if self._broken else self._state

    @property
    def error(self) -> str:
        """Why it failed."""
        return LOST if self._broken else self._error

    @property
    def _broken(self) -> bool:
        """Whether the session has ended and its owner has yet to clear up."""
        return self._link is not None and self._link.ended

    def start(self) -> None:
        """Begin to connect; returns at once."""
        self._loop.call_soon_threadsafe(self._start_owner)

    def refuse(self, error: str) -> None:
        """Give up before the first attempt."""
        self._state, self._error = "failed", error
        self.settled.set()

    def call(self, tool: str, args: Mapping[str, Any], progress: Progress) -> Future[CallToolResult]:
        """Call a tool, connecting first if need be; cancelling the future cancels the call at the server."""
        return asyncio.run_coroutine_threadsafe(self._call(tool, args, progress), self._loop)

    def reconnect(self) -> Future[None]:
        """Drop the session, if any, and open a new one without a pause."""
        return asyncio.run_coroutine_threadsafe(self._reconnect(), self._loop)

    def close(self) -> Future[None]:
        """End the session and the server's program for good."""
        self._closed = True
        return asyncio.run_coroutine_threadsafe(self._stop(), self._loop)

    async def _call(self, tool: str, args: Mapping[str, Any], progress: Progress) -> CallToolResult:
        from shared.plugins.mcp.failures import call_error

        for last_try in (False, True):
            link = await self._live_link()
            try:
                answer = await link.call(tool, args, timeout=self.call_seconds, show=progress)
            except Exception as error:
                if last_try or not link.session_lost:
                    raise call_error(error, link.spec, tool, link.http_status) from error
                link.end()  # the server has forgotten the session and ran nothing: send it again in a new one
            else:
                self._failures = 0
                return answer
        raise AssertionError("unreachable: the last try returns or raises")

    async def _live_link(self) -> Link:
        """The open session; opens one, or joins the attempt that is under way."""
        while not self._closed:
            if self._link is not None and not self._broken:
                return self._link
            self._start_owner()
            if self._opening is not None:
                link = await asyncio.shield(self._opening)
                if link is None:
                    raise ToolError(f"mcp server '{self.spec.name}' is not available: {self.error}")
                return link
            if self._owner is not None:
                await asyncio.wait({self._owner})  # the old session is being taken down
        raise ToolError(f"mcp server '{self.spec.name}' has been shut down")

    async def _reconnect(self) -> None:
        await self._stop()
        self._failures, self._retry_at = 0, 0.0
        await self._live_link()

    async def _stop(self) -> None:
        """End the current session, politely if there is one; its owner is gone afterwards."""
        if self._owner is None:
            return
        self._stopping += 1
        try:
            await self._calm.wait()
            if self._link is not None and self._scope is not None:
                self._scope.deadline = self._loop.time() + GOODBYE_SECONDS
                self._link.end()
            elif self._scope is not None:
                self._scope.cancel()
            if self._owner is not None:
                await asyncio.wait({self._owner}, timeout=STOP_SECONDS)
        finally:
            self._stopping -= 1

    def _start_owner(self) -> None:
        if self._owner is None and not self._closed:
            self._state = "connecting"
            self._opening = self._loop.create_future()
            self._owner = self._loop.create_task(self._own(self._opening), name=f"mcp-{self.spec.name}")

    async def _own(self, opening: asyncio.Future[Link | None]) -> None:
        """Open a session, keep it, close it. Never cancelled from outside but through its scope."""
        error = LOST
        try:
            from shared.plugins.mcp import sdk

            with sdk.CancelScope() as self._scope:
                if self._stopping:
                    self._scope.cancel()
                await asyncio.sleep(max(0.0, self._retry_at - self._loop.time()))
                self._scope.deadline = self._loop.time() + self.connect_seconds
                async with sdk.open_link(
                    self.spec, self.stderr, request_seconds=self.connect_seconds, undisturbed=self._undisturbed
                ) as link:
                    self._set_tools(await link.fetch_tools())
                    self._scope.deadline = math.inf
                    await self._keep(link, opening)
            if not opening.done():
                error = f"it did not answer within {self.connect_seconds:g} s; the next call tries again"
        except Exception as problem:  # whatever a server can do wrong ends here, as text in the status
            error = str(problem)
        finally:
            self._gone(error, opening)

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Hold back a stop while a program is being started: cut off there, nobody would wait for its end."""
        self._calm.clear()
        try:
            yield
        finally:
            self._calm.set()

    async def _keep(self, link: Link, opening: asyncio.Future[Link | None]) -> None:
        """Offer the session to callers and follow changes of its tools, until it is over."""
        self._link, self._opening = link, None
        self._state, self._error = "connected", ""
        opening.set_result(link)
        self.settled.set()
        try:
            while await link.next_change():
                try:
                    self._set_tools(await link.fetch_tools())
                except Exception as error:  # a bad listing costs the listing, not the session
                    log.debug("mcp server %s: its tools could not be listed again: %s", self.spec.name, error)
        finally:
            self._state, self._error = "failed", LOST
            self._link = None

    def _gone(self, error: str, opening: asyncio.Future[Link | None]) -> None:
        self._owner = self._opening = self._scope = None
        words = self.stderr.last
        self._error = f"{error} (its last words: {words})" if words else error
        self._state = "failed"
        if not self._stopping:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures, 10))
            self._failures += 1
            self._retry_at = self._loop.time() + pause
        if not opening.done():
            opening.set_result(None)
        self.settled.set()

    def _set_tools(self, tools: tuple[RemoteTool, ...]) -> None:
        if tools != self.tools:
            self.tools = tools
            self._on_tools()


def on_loop_thread() -> bool:
    """Whether the caller runs on the event loop, where it must not wait for it."""
    try:
        return asyncio.get_running_loop() is loop_thread()
    except RuntimeError:
        return False
