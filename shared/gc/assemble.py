"""Putting a shorter history together from what is to stay, so that every provider takes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.gc.clip import clip
from shared.gc.notes import Note, gap
from shared.gc.rounds import Layout
from shared.types import CHARS_PER_TOKEN, Message, Role

NOTE_TOKENS = 45  # a note without a summary, generously
_SMALLEST_SUMMARY = 40  # characters below which a summary says nothing


@dataclass(frozen=True)
class Draft:
    """A history after a collection; `removed` counts the rounds that are gone from it."""

    messages: list[Message]
    removed: int = 0


def assemble(
    layout: Layout, keep: int, *, announce: bool, summary: str | None = None, note_tokens: int | None = None
) -> Draft:
    """The task, pinned messages and the last `keep` rounds, with a note of the rest in at most `note_tokens`.

    `summary` None carries the former one on. What would not be smaller than before stays as it was.
    """
    unchanged = Draft(list(layout.messages))
    cut = max(0, len(layout.rounds) - keep)
    going = [part for part in layout.rounds[:cut] if layout.loose(part)]
    noted = layout.tokens(layout.notes)
    if not going and (note_tokens is None or noted <= note_tokens):
        return unchanged
    dropped = {index for part in going for index in layout.loose(part)} | layout.notes
    indices = [index for index in range(len(layout.messages)) if index not in dropped]
    kept = _joined(layout.messages, indices)
    room = layout.tokens(range(len(layout.messages))) - sum(message.tokens for message in kept)
    cap = room if note_tokens is None else min(room, note_tokens)
    note = Note(layout.note.rounds + len(going), layout.note.summary if summary is None else summary)
    message = _note_within(note, announce=announce, cap=cap)
    turn = _lost_start(layout, dropped, kept)
    if message is None and turn is not None:
        message = gap()
        room -= message.tokens
    if room < 0:
        return unchanged
    if message is not None:
        kept.insert(turn or int(kept[0].role is Role.USER), message)
    return Draft(_led_by_user(kept), len(going))


def _lost_start(layout: Layout, dropped: set[int], kept: list[Message]) -> int | None:
    """Where the current turn begins in `kept`, if what showed its beginning is gone: a note goes there."""
    if layout.opener is None or layout.ended not in dropped:
        return None
    return next(place for place, message in enumerate(kept) if message is layout.messages[layout.opener])


def _joined(messages: Sequence[Message], indices: Iterable[int]) -> list[Message]:
    """The messages at these positions; two model messages that were apart do not come to touch."""
    joined: list[Message] = []
    before = -1
    for index in indices:
        message = messages[index]
        if joined and index != before + 1 and message.role is Role.MODEL and joined[-1].role is Role.MODEL:
            joined.append(gap())
        joined.append(message)
        before = index
    return joined


def _note_within(note: Note, *, announce: bool, cap: int) -> Message | None:
    """The note in at most `cap` tokens: whole, else with a clipped summary, else not at all."""
    message = note.message(announce=announce)
    if message is None or message.tokens <= cap:
        return message
    if announce and not note.summary:
        return None
    bare = Note(note.rounds, "-").message(announce=announce)
    room = (cap - bare.tokens - 1) * CHARS_PER_TOKEN if bare else 0
    if room >= _SMALLEST_SUMMARY:
        return Note(note.rounds, clip(note.summary, room)).message(announce=announce)
    return _note_within(note, announce=False, cap=cap) if announce else None


def _led_by_user(messages: list[Message]) -> list[Message]:
    return messages if not messages or messages[0].role is Role.USER else [gap(), *messages]
