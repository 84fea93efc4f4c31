"""Edge: what every HTTP request passes before MCP sees it: token, a conversation to belong to, presence."""

from __future__ import annotations

import hmac
import json
from contextlib import nullcontext
from typing import Any

from mcp.types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.mcp_server.hub import CONVERSATION_HEADER, SESSION_HEADER, Hub

_UNKNOWN = "a bearer token is required: send the header 'Authorization: Bearer …' with the token of this server"
_NO_NAME = (
    "requests without a session need a conversation: send the header Jaato-Conversation with a name of your own, "
    "or begin with the initialize handshake"
)
_LONGEST_OPENING = 1_000_000  # bytes of a request that is read only to answer it with its id


class Edge:
    """An ASGI application around the SDK's."""

    def __init__(self, app: ASGIApp, hub: Hub, *, token: str) -> None:
        self._app = app
        self._hub = hub
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not hmac.compare_digest(headers.get("authorization", "").encode(), self._expected):
            refusal = JSONResponse({"error": _UNKNOWN}, 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
        elif _is_nobodys(headers):
            await (await _name_yourself(headers, receive))(scope, receive, send)
        else:
            await self._pass_on(scope, receive, send, headers.get(SESSION_HEADER))

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, session_id: str | None) -> None:
        method = scope["method"]
        present = self._hub.presence(session_id, stream=method == "GET") if session_id else nullcontext()
        with present:
            await self._app(scope, receive, send)
        if method == "DELETE" and session_id:
            self._hub.end_session(session_id)


def _is_nobodys(headers: Headers) -> bool:
    """Whether a request of the protocol without sessions does not say whose it is: clients would see each other."""
    version = headers.get("mcp-protocol-version")
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS and not headers.get(CONVERSATION_HEADER)


async def _name_yourself(headers: Headers, receive: Receive) -> Response:
    """Say so in a way that lets a client fall back to the handshake, which gives it a session."""
    data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": headers.get("mcp-protocol-version", "")}
    error = {"code": UNSUPPORTED_PROTOCOL_VERSION, "message": _NO_NAME, "data": data}
    return JSONResponse({"jsonrpc": "2.0", "id": await _request_id(receive), "error": error}, 400)


async def _request_id(receive: Receive) -> Any:
    body = b""
    while len(body) < _LONGEST_OPENING:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    request_id = found.get("id") if isinstance(found, dict) else None
    return request_id if isinstance(request_id, int | str) else None
