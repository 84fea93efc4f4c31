"""Rows: what stands in the tables, as records; a value that we never write raises ValueError.

The file may have come with somebody's project, so nothing in it is taken for granted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from shared.store.codec import decode_message
from shared.store.records import AgentRecord, RunRecord, StoredMessage

#: What reading a value that we did not write may raise.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
LATEST = 253_402_300_800.0  # the end of the year 9999: later moments cannot be shown
CONVERSATION = ["str", "int", "str", "time"]
TOOL_CALL = ["int", "str", "str", "time", "time?", "int?", "str?", "str?", "str?"]
MAIL = ["int", "str"]
STATE = ["str", "str", "int", "time?"]
_AGENT = ["int", "str", "str", "str?", "str", "int", "str", "str?", "str", "str", "json", "time", "time?", "int"]
_RUN = ["int", "int", "int", "str", "int", "str", "time", "time?", "time?", "json?", "time?"]
_MESSAGE = ["int", "str", "time"]


def agent_of(row: Sequence[Any]) -> AgentRecord:
    """An agent."""
    return AgentRecord(*checked(row, _AGENT))


def run_of(row: Sequence[Any]) -> RunRecord:
    """A run of an agent."""
    key, agent, owner, status, background, message, created, started, ended, result, told = checked(row, _RUN)
    said = decode_message(message)
    return RunRecord(key, agent, owner, status, bool(background), said, created, started, ended, result, told)


def message_of(row: Sequence[Any]) -> StoredMessage:
    """Something that was said."""
    key, body, at = checked(row, _MESSAGE)
    return StoredMessage(key, decode_message(body), at)


def checked(row: Sequence[Any], kinds: Sequence[str]) -> list[Any]:
    """The values of a row, each of its kind: int, str, time or the text of a JSON object; `?` may be missing."""
    return [_value(value, kind) for value, kind in zip(row, kinds, strict=True)]


def _value(value: Any, kind: str) -> Any:
    if value is None and kind.endswith("?"):
        return None
    match kind.removesuffix("?"), value:
        case ("int", int()) | ("str", str()):
            return value
        case "time", int() | float() if 0 <= value < LATEST:
            return value
        case "json", str() if isinstance(found := json.loads(value), dict):
            return found
    raise ValueError(f"expected {kind}, got {str(value)[:40]!r}")
