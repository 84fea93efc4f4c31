"""An HTTP MCP server of the 2025 protocol, by hand: sessions that it can forget, and failures on demand."""

from __future__ import annotations

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LegacyWebServer:
    """Serves one tool, `echo`, on a thread; `sessions.clear()` is a restart as clients see it."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.ran: list[str] = []
        self.broken = False
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                self._reply(405)

            def do_DELETE(self) -> None:
                self._reply(204)

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, result, session = owner.answer(request, self.headers.get("Mcp-Session-Id", ""))
                reply = {"jsonrpc": "2.0", "id": request.get("id"), **result} if result else None
                self._reply(status, reply, session)

            def _reply(self, status: int, body: Any = None, session: str = "") -> None:
                data = json.dumps(body).encode() if body else b""
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                if session:
                    self.send_header("Mcp-Session-Id", session)
                self.end_headers()
                self.wfile.write(data)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/mcp"

    def answer(self, request: dict[str, Any], session: str) -> tuple[int, dict[str, Any] | None, str]:
        """Status, body and new session of one request."""
        method, params = request["method"], request.get("params") or {}
        if method == "server/discover":
            return 400, {"error": {"code": -32601, "message": "Method not found"}}, ""
        if method == "initialize":
            opened = uuid.uuid4().hex
            self.sessions.add(opened)
            about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            return 200, {"result": {**about, "serverInfo": {"name": "old", "version": "1"}}}, opened
        if session not in self.sessions:
            return 404, {"error": {"code": -32600, "message": "Session not found"}}, ""
        if self.broken:
            return 500, None, ""
        if method == "tools/list":
            return 200, {"result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}}, ""
        if method == "tools/call":
            self.ran.append(params["arguments"]["text"])
            return 200, {"result": {"content": [{"type": "text", "text": self.ran[-1]}]}}, ""
        return 202, None, ""

    def __enter__(self) -> LegacyWebServer:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._http.shutdown()
        self._http.server_close()
