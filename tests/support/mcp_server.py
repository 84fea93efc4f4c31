"""An MCP server for tests, on the official package: `mcp_server.py stdio|http|sse [options]`.

Over HTTP it binds a free port and prints `PORT n` on its standard output.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import AudioContent, CallToolResult, EmbeddedResource, ResourceLink, TextContent, TextResourceContents

server = MCPServer("tests")
cancelled = asyncio.Event()
PIXEL = b"\x89PNG\r\n\x1a\n-not-a-real-image"


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def pid() -> int:
    """The process of this server."""
    return os.getpid()


@server.tool()
async def environment(name: str) -> str:
    """A variable of this server's environment."""
    return os.environ.get(name, "(unset)")


@server.tool()
async def folder() -> str:
    """The working folder."""
    return os.getcwd()


@server.tool()
async def picture() -> Image:
    """An image."""
    return Image(data=PIXEL, format="png")


@server.tool()
async def mixed() -> CallToolResult:
    """Every other kind of content."""
    return CallToolResult(
        content=[
            TextContent(type="text", text="hello"),
            AudioContent(type="audio", data="d2F2", mime_type="audio/wav"),
            ResourceLink(type="resource_link", name="readme", uri="file:///readme.md", mime_type="text/markdown"),
            EmbeddedResource(type="resource", resource=TextResourceContents(uri="memo://1", text="remember")),
        ],
        structured_content={"rows": 3},
    )


@server.tool()
async def refuse() -> CallToolResult:
    """A failure that the tool reports itself."""
    return CallToolResult(content=[TextContent(type="text", text="the disk is full")], is_error=True)


@server.tool()
async def block(ctx: Context) -> str:
    """Report progress once, then never end."""
    await ctx.report_progress(1, 2, "started")
    try:
        await asyncio.Event().wait()
    except BaseException:
        cancelled.set()
        raise
    return "unreachable"


@server.tool()
async def wait_for_cancel() -> str:
    """Answer as soon as some call of `block` has been cancelled."""
    await cancelled.wait()
    return "cancelled"


@server.tool()
async def complain(text: str) -> str:
    """Write to standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
    return "done"


@server.tool()
async def die() -> str:
    """End this process at once."""
    os._exit(3)


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool and tell the clients."""

    async def extra() -> str:
        """A late tool."""
        return "late"

    server.add_tool(extra)
    await ctx.notify_tools_changed()
    return "grown"


class TokenGuard:
    """Refuses requests without the right `Authorization` header."""

    def __init__(self, app: Any, token: str) -> None:
        self.app = app
        self.expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] == "http" and given != self.expected:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        await self.app(scope, receive, send)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["stdio", "http", "sse"])
    parser.add_argument("--gate", help="a FIFO: wait until someone opens it for writing before starting")
    parser.add_argument("--token")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.gate:
        with open(options.gate) as gate:
            gate.read()
    if options.transport == "stdio":
        server.run("stdio")
        return
    listener = socket.create_server(("127.0.0.1", options.port))
    app: Any = (
        server.sse_app() if options.transport == "sse" else server.streamable_http_app(json_response=options.json)
    )
    if options.token:
        app = TokenGuard(app, options.token)
    sys.stdout.write(f"PORT {listener.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
