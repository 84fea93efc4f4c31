"""Results as a parent reads them: within a share of its context, the rest by pages that lose nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.session import JaatoSession
from shared.subagents.result import SubagentResult
from shared.toolbox import RESULT_CHARS, clip
from shared.types import CHARS_PER_TOKEN

_SMALLEST = 600  # characters of one response, however small the context
_FRAME = 900  # characters of a result besides its response, about
_BRIEF_FRAME = 220  # the same of a brief one
_ALL = RESULT_CHARS * 2 // 3  # of all results in one answer: a tool result that is too long would be cut
_ONE_OF, _ALL_OF = 40, 4  # one result, and all results of one answer, may take this part of the context
_ERROR = 2000
_BRIEF_FIELDS = ("success", "agent_id", "status", "reason")


@dataclass(frozen=True)
class Room:
    """Characters that results may take in one parent's context."""

    one: int
    all: int

    @staticmethod
    def of(session: JaatoSession, tokens: int) -> Room:
        """What fits a session, with `tokens` at most for one result."""
        limit = session.get_context_limit()
        one = max(_SMALLEST, min(tokens, limit // _ONE_OF) * CHARS_PER_TOKEN)
        return Room(min(one, _ALL), min(_ALL, max(_SMALLEST, limit // _ALL_OF * CHARS_PER_TOKEN)))


def page(result: SubagentResult, room: int, offset: int = 0) -> dict[str, Any]:
    """A result with as much of its response as fits from `offset` on; `next_offset` leads to the rest.

    A structured value that does not fit is left out, and so are findings: they are what the response says.
    """
    answer = {**result.as_dict(), "complete": True}
    if result.error is not None:
        answer["error"] = clip(result.error, _ERROR)
    if result.is_structured:
        size = _size(result.structured)
        if size > room:
            del answer["structured"]
            answer["structured_left_out"] = "too long: page through the response and read it as JSON"
        else:
            room = max(room - size, min(room, _SMALLEST // 2))
    if result.findings:
        shown = fitting(answer["findings"], room // 2)
        room -= _size(shown)
        if unshown := len(result.findings) - len(shown):
            answer |= {"findings": shown, "findings_not_shown": unshown}
    return answer | _piece(result.response, room, offset)


def pages(results: Sequence[SubagentResult], room: Room) -> list[dict[str, Any]]:
    """Several results at once: whole ones if all fit, else brief ones; fewer than given if not even those do."""
    share = room.all // max(1, len(results))
    if share >= _FRAME + _SMALLEST or len(results) == 1:
        return [page(result, min(room.one, max(_SMALLEST, share - _FRAME))) for result in results]
    shown = results[: max(1, room.all // _BRIEF_FRAME)]
    share = room.all // len(shown)
    return [_brief(result, max(0, share - _BRIEF_FRAME)) for result in shown]


def fitting(entries: Sequence[Any], room: int) -> list[Any]:
    """As many entries of a list as fit, from the first on."""
    kept, left = [], room
    for entry in entries:
        left -= _size(entry) + 2
        if left < 0:
            break
        kept.append(entry)
    return kept


def _brief(result: SubagentResult, room: int) -> dict[str, Any]:
    whole = result.as_dict()
    kept: dict[str, Any] = {key: whole[key] for key in _BRIEF_FIELDS if key in whole}
    error = {"error": clip(result.error, _BRIEF_FRAME // 2)} if result.error is not None and room else {}
    return {**kept, **error, **_piece(result.response, room, 0), "complete": True}


def _piece(text: str, room: int, offset: int) -> dict[str, Any]:
    """Part of a text that takes at most `room` characters in JSON, and where the next part begins."""
    part = text[offset : offset + room]
    while len(part) > 1 and (size := _size(part) - 2) > room:
        part = part[: max(1, len(part) * room // size)]
    end = offset + len(part)
    answer: dict[str, Any] = {"response": part}
    if offset or end < len(text):
        answer["response_length"] = len(text)
    if end < len(text):
        answer["next_offset"] = end
    return answer


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str))
