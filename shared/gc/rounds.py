"""Rounds: a history as a collection sees it, so that nothing is cut in the wrong place.

A round is any user messages, one model message and the tool messages that answer its calls. The
model message and its results are the round's body and stay or go together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.gc.notes import Note
from shared.types import Message, Role


@dataclass(frozen=True, slots=True)
class Round:
    """Positions in a history: user messages from `start`, the body from `body` up to `end`."""

    start: int
    body: int
    end: int

    @property
    def indices(self) -> range:
        """Positions of all its messages."""
        return range(self.start, self.end)


def split_rounds(messages: Sequence[Message]) -> list[Round]:
    """The rounds of a history, in order; user messages that nobody answered yet belong to none."""
    rounds: list[Round] = []
    start, index, count = 0, 0, len(messages)
    while index < count:
        if messages[index].role is Role.USER:
            index += 1
            continue
        body, index = index, index + 1
        while index < count and messages[index].role is Role.TOOL:
            index += 1
        rounds.append(Round(start, body, index))
        start = index
    return rounds


class Layout:
    """One history taken apart: its rounds, what must stay, and what former collections left in it."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.rounds = split_rounds(messages)
        self.note = Note()
        self.notes: set[int] = set()
        for index, message in enumerate(messages):
            if (note := Note.read(message)) is not None:
                self.notes.add(index)
                if note.rounds:
                    self.note = note
        self.ended, self.opener = _current_turn(messages, self.notes)
        self.task = self._task()
        self.fixed = self.task | self._pinned() | set(self._unanswered())

    def _task(self) -> set[int]:
        """The first user message, the one that began the current turn, and the last one."""
        said = [i for i, message in enumerate(self.messages) if message.role is Role.USER and i not in self.notes]
        return {said[0], self.opener or said[0], said[-1]} if said else set()

    def _pinned(self) -> set[int]:
        """Pinned messages; of a body either all or nothing, so that a call keeps its results."""
        found: set[int] = set()
        for part in self.rounds:
            found.update(i for i in range(part.start, part.body) if self.messages[i].pinned)
            body = range(part.body, part.end)
            if any(self.messages[i].pinned for i in body):
                found.update(body)
        return found

    def _unanswered(self) -> Iterator[int]:
        begin = self.rounds[-1].end if self.rounds else 0
        return (index for index in range(begin, len(self.messages)) if index not in self.notes)

    def loose(self, part: Round) -> list[int]:
        """Positions of a round's messages that may go."""
        return [i for i in part.indices if i not in self.fixed and i not in self.notes]

    def tokens(self, indices: Iterator[int] | Sequence[int] | set[int]) -> int:
        """Estimated tokens of the messages at these positions."""
        return sum(self.messages[index].tokens for index in indices)

    @property
    def fixed_tokens(self) -> int:
        """Estimated tokens of everything that must stay."""
        return self.tokens(self.fixed)


def _current_turn(messages: Sequence[Message], notes: set[int]) -> tuple[int | None, int | None]:
    """Where the turn before ended and where the current one began.

    A turn ends with a model message without calls; the next user message begins another. A note
    counts as an end, since a collection leaves one where it removed the real one.
    """
    ended = newest = opener = None
    fresh = True
    for index, message in enumerate(messages):
        if index in notes or (message.role is Role.MODEL and not message.function_calls):
            newest, fresh = index, True
        elif fresh and message.role is Role.USER:
            ended, opener, fresh = newest, index, False
    return ended, opener
