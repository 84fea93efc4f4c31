"""Making the preserved rounds fit: first shorter tool results, then fewer rounds, never less than one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from shared.gc.clip import clip
from shared.gc.rounds import Layout, Round
from shared.types import CHARS_PER_TOKEN, Message, Part, Role, ToolResult

_CAPS = (32_000, 16_000, 8_000, 4_000, 2_000, 1_000, 500, 250)
_FRAME = 20  # what Part.size adds to the text of a result


@dataclass(frozen=True)
class Fitted:
    """A history whose last `keep` rounds fit as far as they can; `shrunk` results were shortened."""

    messages: list[Message]
    keep: int
    shrunk: int = 0


@dataclass
class _Slot:
    """One tool result that may be shortened, and how long it still is."""

    message: int
    part: int
    size: int


def fit(messages: Sequence[Message], *, keep: int, ceiling: int) -> Fitted:
    """Bring task, pinned messages and the last `keep` rounds to `ceiling` estimated tokens or below."""
    layout = Layout(messages)
    recent = layout.rounds[-keep:]
    fixed = layout.fixed_tokens
    needed = fixed + sum(layout.tokens(layout.loose(part)) for part in recent)
    if needed <= ceiling or not recent:
        return Fitted(list(messages), keep)
    least = accumulate((_least(layout, part) for part in reversed(recent)), initial=fixed)
    fewer = max(1, sum(1 for tokens in least if tokens <= ceiling) - 1)
    recent = recent[-fewer:]
    slots = [slot for part in recent for slot in _slots(layout, part)]
    indices = [index for part in recent for index in layout.loose(part)]
    caps: dict[tuple[int, int], int] = {}
    fresh = list(messages)
    while chosen := _choose_caps(slots, excess=fixed + sum(fresh[index].tokens for index in indices) - ceiling):
        caps |= chosen  # a guess, since sizes are rounded: what it leaves over is looked at again
        fresh = _shortened(messages, caps)
    return Fitted(fresh, fewer, len(caps))


def _slots(layout: Layout, part: Round) -> list[_Slot]:
    return [
        _Slot(index, position, piece.size)
        for index in layout.loose(part)
        if layout.messages[index].role is Role.TOOL
        for position, piece in enumerate(layout.messages[index].parts)
        if piece.function_response is not None
    ]


def _least(layout: Layout, part: Round) -> int:
    """Tokens of a round when all its results are as short as they may become."""
    least = _CAPS[-1]
    caps = {(slot.message, slot.part): least for slot in _slots(layout, part) if slot.size > least + _FRAME}
    short = _shortened(layout.messages, caps)
    return sum(short[index].tokens for index in layout.loose(part))


def _choose_caps(slots: list[_Slot], *, excess: int) -> dict[tuple[int, int], int]:
    """How long each result may be: the longest give way first, among them the oldest."""
    chosen: dict[tuple[int, int], int] = {}
    surplus = excess * CHARS_PER_TOKEN
    for cap in _CAPS:
        for slot in slots:
            if surplus <= 0:
                return chosen
            if slot.size <= cap + _FRAME:
                continue
            if (slot.message, slot.part) not in chosen:
                surplus += CHARS_PER_TOKEN  # sizes are rounded down message by message
            surplus -= slot.size - cap - _FRAME
            slot.size = cap + _FRAME
            chosen[slot.message, slot.part] = cap
    return chosen


def _shortened(messages: Sequence[Message], caps: dict[tuple[int, int], int]) -> list[Message]:
    fresh = list(messages)
    for (index, position), cap in caps.items():
        message = fresh[index]
        parts = list(message.parts)
        parts[position] = _short(parts[position], cap)
        fresh[index] = replace(message, parts=tuple(parts))
    return fresh


def _short(part: Part, cap: int) -> Part:
    result = part.function_response
    return part if result is None else replace(part, function_response=_short_result(result, cap))


def _short_result(result: ToolResult, cap: int) -> ToolResult:
    """The beginning and end of a result; images go, since one of them outweighs a page of text."""
    images = len(result.attachments or ())
    lost = f"[{images} attachments removed to save context]\n" if images else ""
    return replace(result, result=clip(lost + result.text, cap), attachments=None)
