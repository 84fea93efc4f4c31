"""Tool results as MCP answers: structured content, and the same as text for clients that read only that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp.types import CallToolResult, TextContent

from shared.types import ToolResult


def answer(result: ToolResult, news: Sequence[str] = ()) -> CallToolResult:
    """One answer; `news` tells of background runs that ended in the meantime."""
    value = _object(result)
    if news:
        value = {**value, "announcements": list(news)}
    texts = [ToolResult(result.call_id, result.name, value).text, *news]
    content: list[Any] = [TextContent(type="text", text=text) for text in texts]
    return CallToolResult(content=content, structured_content=value, is_error=result.is_error)


def _object(result: ToolResult) -> dict[str, Any]:
    """The answer as a JSON object: a refusal that is plain text gets the form that all others have."""
    if isinstance(result.result, Mapping):
        return dict(result.result)
    if result.is_error:
        return {"success": False, "error": result.text.removeprefix("Error: ")}
    return {"success": True, "text": result.text}
