"""Dialogue: a conversation together with what only the event loop touches: calls, questions and notices."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from shared.mcp_server.answers import answer
from shared.mcp_server.calls import ToolCall
from shared.mcp_server.conversation import Conversation
from shared.mcp_server.desk import Desk
from shared.mcp_server.elicitation import DirectClerk, can_elicit
from shared.mcp_server.notices import Notices
from shared.mcp_server.on_thread import on_thread
from shared.mcp_server.progress import Reporter
from shared.mcp_server.tool_list import WAITING
from shared.mcp_server.watched import Watched

Context = ServerRequestContext[Any, Any]
_RETURN_SECONDS = 1.0  # a client has at least this long to come back, also when its question has just expired


class Dialogue:
    """Serves one client, or several that name the same conversation."""

    def __init__(self, conversation: Conversation, desk: Desk) -> None:
        self.conversation = conversation
        self.notices = Notices(conversation)
        self._desk = desk
        self._parked: dict[str, ToolCall] = {}  # calls whose client is asking its user
        self._standing: dict[str, ExitStack] = {}  # by connection: who asks when no call is under way
        self._busy = 0
        self._seen = time.monotonic()

    @property
    def idle_seconds(self) -> float:
        """How long nobody has asked for anything."""
        return 0.0 if self._busy else time.monotonic() - self._seen

    @contextmanager
    def attending(self) -> Iterator[None]:
        """Count a request that is being served."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._seen = time.monotonic()

    def meet(self, ctx: Context, connection: str, *, reachable: bool) -> None:
        """Note what the client of a request can do; `reachable` tells that it hears us between requests too."""
        able = can_elicit(ctx.session.client_capabilities)
        self._desk.set_able(able)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        self.notices.meet(connection, ctx.session)
        if able and reachable and connection not in self._standing:
            self._stand(connection, ctx.session)

    def part(self, connection: str) -> None:
        """A connection does not hear us between requests any more."""
        if stack := self._standing.pop(connection, None):
            stack.close()

    def forget(self, connection: str) -> None:
        """A connection is gone for good."""
        self.part(connection)
        self.notices.forget(connection)

    async def call(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Run a tool, report progress, ask what must be asked; a cancelled request cancels what it waits for."""
        call = self._resumed(params) if params.request_state is not None else self._begun(ctx, params)
        direct = call.rounds is None and call.name in WAITING and can_elicit(ctx.session.client_capabilities)
        covers = Watched(self.conversation, call).covers
        clerk = DirectClerk(ctx.session, ctx.request_id, covers=covers) if direct and ctx.request is not None else None
        reporting = self._reporting(ctx, call)
        try:
            with self._desk.attended(clerk) if clerk is not None else nullcontext():
                await call.progress()
        except asyncio.CancelledError:
            call.cancel("cancelled by the MCP client")
            raise
        finally:
            if reporting is not None:
                reporting.cancel()
        if call.result is None:
            return self._park(call)
        return answer(call.result, await on_thread(self.conversation.announcements))

    def close(self) -> None:
        """Take nothing more; the conversation itself is closed on a thread."""
        self.notices.close()
        for connection in list(self._standing):
            self.part(connection)
        for call in self._parked.values():
            call.leave()

    def _begun(self, ctx: Context, params: CallToolRequestParams) -> ToolCall:
        args: Mapping[str, Any] = params.arguments or {}
        call = ToolCall(self.conversation, params.name, args, call_id=str(ctx.request_id))
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and can_elicit(ctx.session.client_capabilities):
            call.ask_in_rounds(self._desk, covers=Watched(self.conversation, call).covers)
        return call

    def _resumed(self, params: CallToolRequestParams) -> ToolCall:
        call = self._parked.pop(params.request_state or "", None)
        if call is None or call.rounds is None or call.name != params.name:
            raise MCPError(INVALID_PARAMS, "request_state: this call is over or was never asked; make it again")
        call.rounds.hear(params.input_responses or {})
        return call

    def _park(self, call: ToolCall) -> InputRequiredResult:
        """Hand out the questions; a client that does not come back in time has given the call up."""
        assert call.rounds is not None
        state = secrets.token_urlsafe(18)
        self._parked[state] = call
        left = max(_RETURN_SECONDS, call.rounds.expires_at - time.time())
        asyncio.get_running_loop().call_later(left, self._give_up, state)
        return call.rounds.round(state)

    def _give_up(self, state: str) -> None:
        if call := self._parked.pop(state, None):
            call.cancel("its MCP client did not come back with an answer")

    def _reporting(self, ctx: Context, call: ToolCall) -> asyncio.Task[None] | None:
        if call.name not in WAITING or not ctx.meta or "progress_token" not in ctx.meta:
            return None
        reporter = Reporter(self.conversation, Watched(self.conversation, call), ctx.session.report_progress)
        return asyncio.get_running_loop().create_task(reporter.run())

    def _stand(self, connection: str, session: ServerSession) -> None:
        stack = self._standing[connection] = ExitStack()
        stack.enter_context(self._desk.attended(DirectClerk(session, None), last=True))
