"""JSON, tool names and call ids in a form that every provider's server accepts."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
_LONGEST_ID = 40


def dumps(value: Any) -> bytes:
    """Compact JSON that any server can read: no NaN, no half characters, nothing that is not JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)
        text = json.dumps(finite, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def plain(value: Any) -> Any:
    """The same value, made of nothing but what JSON has."""
    return json.loads(dumps(value))


def wire_name(name: str) -> str:
    """A tool name in the letters and length that servers allow; different names stay different."""
    if name and len(name) <= _LONGEST_NAME and not _NOT_ALLOWED.search(name):
        return name
    return f"{_NOT_ALLOWED.sub('_', name)[: _LONGEST_NAME - 9]}_{_digest(name)[:8]}"


def wire_id(call_id: str) -> str:
    """A call id in the letters and length that servers allow; the usual ones are kept."""
    if call_id and len(call_id) <= _LONGEST_ID and not _NOT_ALLOWED.search(call_id):
        return call_id
    return f"call_{_digest(call_id)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]
