"""From what a server answers to what the model reads."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

from shared.toolbox import ToolOutput
from shared.types import Attachment

if TYPE_CHECKING:
    from mcp.types import CallToolResult


def tool_output(answer: CallToolResult) -> ToolOutput:
    """Text and data as the result, images, sound and files as attachments."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in answer.content:
        piece = _piece(block)
        if isinstance(piece, Attachment):
            attachments.append(piece)
        else:
            texts.append(piece)
    result = _joined(texts, answer.structured_content)
    if result == "":
        result = _nothing(len(attachments), failed=answer.is_error)
    return ToolOutput(result, tuple(attachments), is_error=answer.is_error)


def _piece(block: Any) -> str | Attachment:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return _decoded(block.data, block.mime_type, block.type)
        case "resource_link":
            kind = f" ({block.mime_type})" if block.mime_type else ""
            about = f": {block.description}" if block.description else ""
            return f"[resource {block.title or block.name} {block.uri}{kind}{about}]"
        case "resource":
            return _resource(block.resource)
        case _:
            return f"[content of type '{block.type}' is not supported]"


def _resource(resource: Any) -> str | Attachment:
    if (text := getattr(resource, "text", None)) is not None:
        return f"[resource {resource.uri}]\n{text}"
    return _decoded(resource.blob, resource.mime_type or "application/octet-stream", str(resource.uri))


def _decoded(data: str, mime_type: str, name: str) -> str | Attachment:
    try:
        return Attachment(mime_type, base64.b64decode(data, validate=True), name)
    except (binascii.Error, ValueError):
        return f"[{name}: the server sent data that is not valid base64]"


def _joined(texts: list[str], data: Any) -> Any:
    """One result of text and structured content; servers usually send the same thing as both."""
    text = "\n".join(texts)
    if data is None or _says_the_same(texts, data):
        return text
    return {"text": text, "structured_content": data} if text else data


def _says_the_same(texts: list[str], data: Any) -> bool:
    values = [_parsed(text) for text in texts]
    wrapped = data["result"] if isinstance(data, dict) and data.keys() == {"result"} else data
    candidates: list[Any] = [values, texts]
    if len(texts) == 1:
        candidates += [values[0], texts[0]]
    return bool(texts) and any(found in (data, wrapped) for found in candidates)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _nothing(attachments: int, *, failed: bool) -> str:
    if failed:
        return "the tool failed without saying why"
    return f"[{attachments} attachment{'s' if attachments != 1 else ''}]" if attachments else "[no output]"
