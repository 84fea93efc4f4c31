"""Codec: messages as JSON text and back, exactly: every kind of part, images and signatures included."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from shared.types import Attachment, FunctionCall, Message, Part, Role, Signature, ToolResult

_compact = json.JSONEncoder(separators=(",", ":")).encode


def encoded(value: Any) -> str:
    """A value as JSON text; what JSON cannot say is kept as its text."""
    try:
        return _compact(value)
    except (TypeError, ValueError):
        return json.dumps(value, separators=(",", ":"), default=str, skipkeys=True)


def encode_message(message: Message) -> str:
    """A message as JSON text."""
    parts = [_part(part) for part in message.parts]
    found: dict[str, Any] = {"role": message.role.value, "parts": parts}
    if message.pinned:
        found["pinned"] = True
    return encoded(found)


def decode_message(text: str) -> Message:
    """The message that a text was made from."""
    found = json.loads(text)
    return Message(Role(found["role"]), tuple(map(_read_part, found["parts"])), bool(found.get("pinned")))


def encode_result(result: ToolResult) -> str:
    """The result of a tool call as JSON text."""
    return encoded(_result(result))


def decode_result(text: str) -> ToolResult:
    """The tool result that a text was made from."""
    return _read_result(json.loads(text))


def _part(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if part.text is not None:
        found["text"] = str(part.text)
    if part.function_call is not None:
        call = part.function_call
        found["call"] = {"id": call.id, "name": call.name, "args": call.args}
    if part.function_response is not None:
        found["result"] = _result(part.function_response)
    if part.inline_data is not None:
        found["data"] = _attachment(part.inline_data)
    if part.thought is not None:
        found["thought"] = part.thought
    if part.signature is not None:
        mark = part.signature
        found["signature"] = {"provider": mark.provider, "kind": mark.kind, **_mark(mark.value)}
    return found


def _read_part(found: Mapping[str, Any]) -> Part:
    call, result, data, mark = (found.get(key) for key in ("call", "result", "data", "signature"))
    return Part(
        text=_text(found.get("text")),
        function_call=_read_call(call) if call is not None else None,
        function_response=_read_result(result) if result is not None else None,
        inline_data=_read_attachment(data) if data is not None else None,
        thought=_text(found.get("thought")),
        signature=Signature(mark["provider"], _read_mark(mark), mark["kind"]) if mark is not None else None,
    )


def _read_call(found: Mapping[str, Any]) -> FunctionCall:
    if not isinstance(found["args"], dict):
        raise ValueError("expected the arguments of a call")
    return FunctionCall(_word(found["id"]), _word(found["name"]), found["args"])


def _result(result: ToolResult) -> dict[str, Any]:
    found: dict[str, Any] = {"id": result.call_id, "name": result.name, "value": result.result}
    if result.is_error:
        found["error"] = True
    if result.error_kind is not None:
        found["kind"] = result.error_kind
    if result.attachments is not None:
        found["files"] = [_attachment(each) for each in result.attachments]
    return found


def _read_result(found: Mapping[str, Any]) -> ToolResult:
    files = found.get("files")
    return ToolResult(
        _word(found["id"]),
        _word(found["name"]),
        found["value"],
        is_error=bool(found.get("error")),
        attachments=None if files is None else tuple(map(_read_attachment, files)),
        error_kind=_text(found.get("kind")),
    )


def _attachment(given: Attachment) -> dict[str, Any]:
    name = {} if given.display_name is None else {"name": given.display_name}
    return {"type": given.mime_type, "bytes": b64encode(given.data).decode(), **name}


def _read_attachment(found: Mapping[str, Any]) -> Attachment:
    return Attachment(_word(found["type"]), b64decode(found["bytes"]), _text(found.get("name")))


def _word(value: Any) -> str:
    """A text; a file that somebody else made may hold anything."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {str(value)[:40]!r}")
    return value


def _text(value: Any) -> str | None:
    return None if value is None else _word(value)


def _mark(value: str | bytes) -> dict[str, str]:
    return {"bytes": b64encode(value).decode()} if isinstance(value, bytes) else {"text": value}


def _read_mark(found: Mapping[str, Any]) -> str | bytes:
    text: str | None = found.get("text")
    return text if text is not None else b64decode(found["bytes"])
