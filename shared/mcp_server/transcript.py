"""A subagent's conversation as text that people and models can read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from shared.types import Message, Part


def transcript(history: Sequence[Message]) -> str:
    """All messages in order, as Markdown; thoughts are left out."""
    blocks = [f"## {message.role.value}\n\n{body}" for message in history if (body := _body(message.parts))]
    return "\n\n".join(blocks) + "\n" if blocks else "(nothing was said yet)\n"


def _body(parts: Iterable[Part]) -> str:
    return "\n\n".join(text for part in parts if (text := _shown(part)))


def _shown(part: Part) -> str:
    if part.function_call is not None:
        args = json.dumps(dict(part.function_call.args), ensure_ascii=False, default=str)
        return f"call `{part.function_call.name}` {args}"
    if part.function_response is not None:
        result = part.function_response
        return f"{'error' if result.is_error else 'result'} of `{result.name}`:\n\n{result.text}"
    if part.inline_data is not None:
        return f"[{part.inline_data.mime_type}, {len(part.inline_data.data):,} bytes]"
    return part.text or ""
