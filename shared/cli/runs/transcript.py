"""Transcript: what was said and done, message by message, as lines for a terminal; long pieces are cut short."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from shared.cli.figures import precise
from shared.cli.plain_text import plain
from shared.cli.view import brief
from shared.store.codec import decode_result
from shared.store.records import StoredMessage, ToolCallRecord
from shared.types import FunctionCall, Part, Role, ToolResult

_LINES, _CHARS = 12, 1200  # of one piece, unless all is wanted


class Transcript:
    """Draws messages in order; `calls` tells how long tools took and what became of those without an answer."""

    def __init__(self, *, full: bool = False, calls: Sequence[ToolCallRecord] = ()) -> None:
        self._full = full
        self._open: dict[str, FunctionCall] = {}
        self._calls: dict[str, list[ToolCallRecord]] = {}
        for call in calls:
            self._calls.setdefault(call.call_id, []).append(call)

    def lines(self, stored: StoredMessage) -> Iterator[Text]:
        """One message: who, when, and what."""
        message = stored.message
        if message.role is Role.TOOL:
            for result in message.results:
                self._open.pop(result.call_id, None)
                yield from self._result(result, self._record(result.call_id))
            return
        yield Text.assemble((_clock(stored.at), "dim"), " ", (message.role.value, _STYLES[message.role]))
        for part in message.parts:
            yield from self._part(part)

    def unanswered(self, *, is_live: bool) -> Iterator[Text]:
        """The calls of the last message that had no answer: still at work, or cut off."""
        for call in self._open.values():
            record = self._record(call.id)
            if record is not None and record.result is not None:
                yield from self._result(decode_result(record.result), record)
            elif is_live:
                yield Text(f"  … {plain(call.name)} is at work", style="cyan")
            else:
                yield Text(f"  ? {plain(call.name)}: outcome unknown, its process ended before it answered", "yellow")

    def piece(self, text: str, style: str = "") -> Iterator[Text]:
        """A text, indented; its beginning only, where it is long."""
        clean = plain(text).rstrip("\n")
        kept = clean if self._full else _clipped(clean)
        for line in kept.split("\n"):
            yield Text(f"  {line}", style=style)
        if len(kept) < len(clean):
            yield Text(f"  … {len(clean) - len(kept):,} more characters: --full", style="dim")

    def _part(self, part: Part) -> Iterator[Text]:
        if part.text:
            yield from self.piece(part.text)
        if part.thought:
            yield from self.piece(part.thought, "dim italic")
        if part.inline_data is not None:
            yield Text(f"  [{plain(part.inline_data.mime_type)}, {len(part.inline_data.data):,} bytes]", style="dim")
        if part.function_call is not None:
            call = part.function_call
            self._open[call.id] = call
            args = json.dumps(call.args, ensure_ascii=False, default=str) if self._full else brief(call.args)
            yield Text.assemble("  ", (f"→ {plain(call.name)}", "cyan"), " ", (plain(args), "dim"))

    def _result(self, result: ToolResult, record: ToolCallRecord | None) -> Iterator[Text]:
        sign, style = ("✗", "red") if result.is_error else ("✓", "green")
        took = f" {precise(record.ended_at - record.started_at)}" if record is not None and record.ended_at else ""
        kind = f" {plain(result.error_kind)}" if result.error_kind else ""
        yield Text.assemble("  ", (sign, style), f" {plain(result.name)}", (f"{took}{kind}", "dim"))
        for line in self.piece(result.text, "red" if result.is_error else ""):
            yield Text.assemble("  ", line)
        for each in result.attachments or ():
            yield Text(f"    [{plain(each.mime_type)}, {len(each.data):,} bytes]", style="dim")

    def _record(self, call_id: str) -> ToolCallRecord | None:
        """What is known of a call; an id that comes again stands for the next one."""
        found = self._calls.get(call_id)
        return found.pop(0) if found else None


def as_dict(stored: StoredMessage) -> dict[str, Any]:
    """A message as plain values, whole; of attachments only what they are."""
    message = stored.message
    return {
        "role": message.role.value,
        "at": stored.at,
        "text": message.text,
        "calls": [{"id": call.id, "name": call.name, "args": call.args} for call in message.function_calls],
        "results": [_result_dict(result) for result in message.results],
    }


_STYLES: Mapping[Role, str] = {Role.USER: "bold", Role.MODEL: "bold magenta", Role.TOOL: "cyan"}


def _result_dict(result: ToolResult) -> dict[str, Any]:
    files = [{"mime_type": each.mime_type, "bytes": len(each.data)} for each in result.attachments or ()]
    return {
        "id": result.call_id,
        "name": result.name,
        "result": result.result,
        "is_error": result.is_error,
        "error_kind": result.error_kind,
        "attachments": files,
    }


def _clipped(text: str) -> str:
    return "\n".join(text[:_CHARS].split("\n")[:_LINES])


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
