"""Shortening one text: beginning and end stay, a note says how much is missing."""

from __future__ import annotations


def clip(text: str, limit: int) -> str:
    """A text of at most `limit` characters; the middle goes, since both ends tell most."""
    if len(text) <= limit:
        return text
    room = limit - len(_mark(len(text)))
    if room < 0:
        return text[: max(0, limit)]
    tail = room // 3
    return text[: room - tail] + _mark(len(text) - room) + (text[-tail:] if tail else "")


def _mark(missing: int) -> str:
    return f"\n[... {missing:,} characters removed to save context ...]\n"
