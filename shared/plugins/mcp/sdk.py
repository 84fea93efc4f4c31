"""A live session to one server, on the official `mcp` package: the SDK is imported here and in `failures`.

Import this module on first use only: it costs half a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2
from anyio import CancelScope
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client import IncomingMessage
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.types import CallToolResult, Implementation, ToolListChangedNotification

from shared.plugins.mcp.spec import ServerSpec
from shared.plugins.mcp.status import RemoteTool
from shared.plugins.mcp.stderr import StderrTail

__all__ = ["CancelScope", "Link", "MCPError", "open_link"]

MAX_PAGES = 100
RELISTEN_SECONDS = (1.0, 60.0)  # first and longest pause before a lost subscription is opened again
Progress = Callable[[str], None]
Undisturbed = Callable[[], AbstractContextManager[None]]

# Without a handler of its own the SDK's warnings would go to the terminal through logging's last resort.
logging.getLogger("mcp").addHandler(logging.NullHandler())


class Link:
    """One open session; lives on the event loop, inside its owner task."""

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self.ended = False
        self.session_lost = False  # the server has forgotten this session; nothing was run
        self.http_status: int | None = None  # of the last answer, if it was a refusal
        self._changed = False
        self._wake = asyncio.Event()
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The SDK's client, once it is connected."""
        assert self._client is not None
        return self._client

    def bind(self, client: Client) -> None:
        """Take the connected client."""
        self._client = client

    def end(self) -> None:
        """Tell the owner that this session is over."""
        self.ended = True
        self._wake.set()

    def note_change(self) -> None:
        """Tell the owner that the server's tools have changed."""
        self._changed = True
        self._wake.set()

    async def next_change(self) -> bool:
        """Wait: True when the tools have changed, False when the session is over."""
        while not self.ended:
            if self._changed:
                self._changed = False
                return True
            await self._wake.wait()
            self._wake.clear()
        return False

    async def fetch_tools(self) -> tuple[RemoteTool, ...]:
        """The server's tools, all pages."""
        if self.client.server_capabilities.tools is None:
            return ()
        found: dict[str, RemoteTool] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self.client.list_tools(cursor=cursor, cache_mode="refresh")
            for tool in page.tools:
                text = tool.description or tool.title or ""
                found.setdefault(tool.name, RemoteTool(tool.name, text, dict(tool.input_schema)))
            cursor = page.next_cursor
            if cursor is None:
                break
        return tuple(found.values())

    async def call(self, tool: str, args: Mapping[str, Any], *, timeout: float, show: Progress) -> CallToolResult:
        """Call a tool; progress arrives as short texts."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            show(f"{share} {message}\n" if message else f"{share}\n")

        return await self.client.call_tool(tool, dict(args), timeout, report)

    async def listen(self) -> None:
        """Follow the server's change events where the protocol has them (2026-07-28 on)."""
        pause, longest = RELISTEN_SECONDS
        while not self.ended:
            try:
                async with self.client.listen(tools_list_changed=True) as events:
                    self.note_change()  # what changed before the subscription stood was not announced
                    async for _ in events:
                        self.note_change()
                        pause = RELISTEN_SECONDS[0]
            except (ListenNotSupportedError, MCPError, TimeoutError):
                return  # an older or simpler server: its notifications, if any, reach `hear`
            except SubscriptionLost:
                pass
            await anyio.sleep(pause)
            pause = min(longest, pause * 2)

    async def hear(self, message: IncomingMessage) -> None:
        """Look at what the server says unasked."""
        if isinstance(message, ToolListChangedNotification):
            self.note_change()

    async def see_response(self, response: httpx2.Response) -> None:
        """Remember refusals: the SDK keeps the status to itself."""
        if response.request.method == "POST":  # a GET is the SDK's try for a stream that few servers have
            self.http_status = response.status_code if response.status_code >= 400 else None
        if response.status_code == 404 and "mcp-session-id" in response.request.headers:
            self.session_lost = True


@asynccontextmanager
async def open_link(
    spec: ServerSpec, stderr: StderrTail, *, request_seconds: float, undisturbed: Undisturbed
) -> AsyncIterator[Link]:
    """Connect to a server; enter and leave this in one and the same task."""
    link = Link(spec)
    try:
        async with (
            Client(
                _program(link, stderr, undisturbed) if spec.transport == "stdio" else _web(link),
                read_timeout_seconds=request_seconds,
                message_handler=link.hear,
                client_info=Implementation(name="jaato", version="1"),
            ) as client,
            anyio.create_task_group() as tasks,
        ):
            link.bind(client)
            tasks.start_soon(link.listen)
            try:
                yield link
            finally:
                tasks.cancel_scope.cancel()
    except Exception as error:
        from shared.plugins.mcp.failures import explain

        raise ConnectionError(explain(error, link.spec, link.http_status)) from error


@asynccontextmanager
async def _program(link: Link, stderr: StderrTail, undisturbed: Undisturbed) -> AsyncIterator[Any]:
    spec = link.spec
    parameters = StdioServerParameters(
        command=spec.command,
        args=list(spec.args),
        env=dict(spec.env),
        cwd=spec.cwd,
        encoding_error_handler="replace",
    )
    with stderr.attached() as errlog:
        async with AsyncExitStack() as stack:
            with undisturbed():
                read, write = await stack.enter_async_context(stdio_client(parameters, errlog=errlog))
            errlog.close()
            yield _Watched(read, link.end), write


@asynccontextmanager
async def _web(link: Link) -> AsyncIterator[Any]:
    spec = link.spec
    if spec.transport == "sse":
        async with sse_client(spec.url, headers=dict(spec.headers)) as (read, write):
            yield _Watched(read, link.end), write
        return
    http = httpx2.AsyncClient(
        headers=dict(spec.headers),
        timeout=httpx2.Timeout(30, read=None),  # how long an answer may take is each call's own limit
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
        event_hooks={"response": [link.see_response]},
    )
    async with http, streamable_http_client(spec.url, http_client=http) as streams:
        yield streams


class _Watched:
    """A read stream that says when it ends: the SDK tells only those who wait for an answer."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except (StopAsyncIteration, anyio.ClosedResourceError):
            self._ended()
            raise

    async def __aenter__(self) -> _Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> Any:
        return await self._stream.__aexit__(*exception)
