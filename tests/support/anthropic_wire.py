"""Neutral replies in Anthropic's wire format: `render` answers a request as the Messages API would."""

from __future__ import annotations

import json
from typing import Any

from support.wire import Answer, Reply, Request, sse

STOP_REASONS = {"stop": "end_turn"}
PIECES = 3  # texts arrive in this many deltas


def render(reply: Reply, request: Request) -> Answer:
    """The answer to a request, streamed if the request asks for it."""
    if request.path.endswith("/v1/models") or "/v1/models?" in request.path:
        return models("claude-sonnet-5-5", "claude-haiku-5-5")
    return Answer.of_events(events(reply)) if request.json.get("stream") else Answer.of_json(message(reply))


def message(reply: Reply) -> dict[str, Any]:
    """The whole reply as one message."""
    return {**_head(reply), "content": _blocks(reply), "stop_reason": _stop(reply), "usage": _usage(reply)}


def events(reply: Reply) -> bytes:
    """The reply as a stream of events."""
    head = {**_head(reply), "content": [], "stop_reason": None, "usage": {**_usage(reply), "output_tokens": 1}}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": head}, {"type": "ping"}]
    for index, block in enumerate(_blocks(reply)):
        raw = next((call.raw_args for call in reply.calls if call.id == block.get("id")), None)
        start, deltas = _streamed(block, raw)
        found.append({"type": "content_block_start", "index": index, "content_block": start})
        found.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        found.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": _stop(reply), "stop_sequence": None}
    found.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": reply.usage.output}})
    found.append({"type": "message_stop"})
    return sse([(event["type"], event) for event in found])


def error(kind: str, text: str, status: int, **headers: str) -> Answer:
    """A refusal in Anthropic's shape."""
    body = {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}
    return Answer.of_json(body, status, request_id="req_1", **headers)


def error_event(kind: str, text: str) -> bytes:
    """A failure in the middle of a stream whose status says 200."""
    return sse([("error", {"type": "error", "error": {"type": kind, "message": text}})])


def models(*names: str) -> Answer:
    """The list of models on offer."""
    data = [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names]
    return Answer.of_json({"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]})


def _head(reply: Reply) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "stop_sequence": None}


def _stop(reply: Reply) -> str:
    return STOP_REASONS.get(reply.finish_reason, reply.finish_reason)


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.usage.input,
        "output_tokens": reply.usage.output,
        "cache_read_input_tokens": reply.usage.cache_read,
        "cache_creation_input_tokens": reply.usage.cache_write,
        "output_tokens_details": {"thinking_tokens": reply.usage.thinking},
    }


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if reply.thought or reply.signature:
        found.append({"type": "thinking", "thinking": reply.thought, "signature": reply.signature})
    if reply.redacted:
        found.append({"type": "redacted_thinking", "data": reply.redacted})
    if reply.text:
        found.append({"type": "text", "text": reply.text})
    found.extend({"type": "tool_use", "id": c.id, "name": c.name, "input": dict(c.args)} for c in reply.calls)
    return found


def _streamed(block: dict[str, Any], raw: str | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The empty block of the start event, and the deltas that fill it."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in _split(block["text"])]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _split(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind == "tool_use":
        text = json.dumps(block["input"]) if raw is None else raw
        pieces = ["", *_split(text)]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block, []


def _split(text: str) -> list[str]:
    size = max(1, -(-len(text) // PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]
