"""The nearest recorded request to one that was not recorded, and how the two differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff

MAX_LINES = 60
MAX_LINE = 400
MAX_COMPARED = 200


@dataclass(frozen=True)
class Candidate:
    """A recorded request in its normal form."""

    number: int
    agent: str
    text: str
    used: bool


def mismatch(agent: str, text: str, candidates: Sequence[Candidate]) -> str:
    """What to say of a request that no recorded one equals."""
    if not candidates:
        return f"agent '{agent}' asked a model, and the recording has no exchange at all"
    nearest = max(candidates[:MAX_COMPARED], key=lambda each: _likeness(agent, text, each))
    if nearest.text == text:
        return (
            f"agent '{agent}' asked once more what was recorded as exchange {nearest.number} of "
            f"'{nearest.agent}' and has been answered already: record it anew"
        )
    lines = unified_diff(nearest.text.splitlines(), text.splitlines(), "recorded", "asked now", lineterm="", n=2)
    shown = [line if len(line) <= MAX_LINE else line[:MAX_LINE] + "…" for line in lines]
    if len(shown) > MAX_LINES:
        shown = [*shown[:MAX_LINES], f"… {len(shown) - MAX_LINES} more lines"]
    head = (
        f"agent '{agent}' asked what was not recorded; nearest is exchange {nearest.number} of '{nearest.agent}'"
        f"{' (already answered)' if nearest.used else ''}:"
    )
    return "\n".join([head, *shown])


def _likeness(agent: str, text: str, other: Candidate) -> tuple[bool, bool, float]:
    matcher = SequenceMatcher(None, text.splitlines(), other.text.splitlines(), autojunk=False)
    return other.text == text, not other.used and other.agent == agent, matcher.ratio()
