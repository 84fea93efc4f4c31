"""A stdio MCP server of the 2025 protocol, written by hand: it knows only `initialize`, and can misbehave.

Tools: `echo`; `change` (announces a changed list, then answers); `noise` (prints garbage, then answers);
`odd` and `distant` have schemas that cannot be used as they are.
"""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "change", "inputSchema": {"type": "object"}},
    {"name": "noise", "inputSchema": {"type": "object"}},
    {"name": "get.thing", "inputSchema": {"type": "object"}},
    {"name": "get/thing", "inputSchema": {"type": "object"}},
    {
        "name": "pair",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"xy": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}},
        },
    },
    {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
    {"name": "distant", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}},
]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(name: str, arguments: dict[str, Any]) -> str:
    if name == "change":
        TOOLS.append({"name": "fresh", "inputSchema": {"type": "object"}})
        send({"method": "notifications/tools/list_changed"})
    if name == "noise":
        sys.stdout.write("this is not JSON\n")
    return str(arguments.get("text", name))


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "old", "version": "1"},
        }
    if method == "tools/list":
        half = len(TOOLS) // 2
        return {"tools": TOOLS[half:]} if params.get("cursor") else {"tools": TOOLS[:half], "nextCursor": "more"}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": call(params["name"], params.get("arguments") or {})}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    if result is None:
        send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
    else:
        send({"id": request["id"], "result": result})
