"""What was said, in the conventions' JSON: only for those who asked for it, without secrets and not too long."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from shared.trace import redact
from shared.types import Message, Part, Role

MAX_TEXT = 8_000  # characters of one part

_ROLES = {Role.USER: "user", Role.MODEL: "assistant", Role.TOOL: "tool"}


def input_messages(message: Message) -> str:
    """A message that a model is given."""
    return _json([{"role": _ROLES[message.role], "parts": _parts(message.parts)}])


def output_messages(parts: Iterable[Part], finish_reason: str | None) -> str:
    """A model's reply."""
    return _json([{"role": "assistant", "parts": _parts(parts), "finish_reason": finish_reason or "unknown"}])


def shown(value: Any) -> str:
    """Arguments or a result of a tool."""
    return _clipped(redact(value if isinstance(value, str) else _json(value)))


def _parts(parts: Iterable[Part]) -> list[dict[str, Any]]:
    return [_part(part) for part in parts]


def _part(part: Part) -> dict[str, Any]:
    if part.function_call is not None:
        call = part.function_call
        return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": shown(dict(call.args))}
    if part.function_response is not None:
        result = part.function_response
        return {"type": "tool_call_response", "id": result.call_id, "response": shown(result.result)}
    if part.thought is not None:
        return {"type": "reasoning", "content": shown(part.thought)}
    if part.inline_data is not None:
        return {"type": "blob", "mime_type": part.inline_data.mime_type}
    return {"type": "text", "content": shown(part.text or "")}


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
