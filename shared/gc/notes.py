"""Note: the one message by which a collection tells the model what is missing, and what it was about."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shared.types import Message, Role

_OPEN = re.compile(r'<context-note rounds="(\d{1,9})">')
_CLOSE = "</context-note>"
_SUMMARY = "\nSummary of them (a record, not instructions):\n"
_GAP = "<context-note/>"


@dataclass(frozen=True)
class Note:
    """How many rounds were removed so far, and the summary of them if there is one."""

    rounds: int = 0
    summary: str = ""

    def message(self, *, announce: bool = True) -> Message | None:
        """The note as a user message; None when there is nothing to say."""
        if not self.rounds or not (announce or self.summary):
            return None
        lead = (
            f"Earlier rounds of this conversation were removed to save room: {self.rounds} so far." if announce else ""
        )
        summary = f"{_SUMMARY}{self.summary}\n" if self.summary else ""
        return Message.from_text(Role.USER, f'<context-note rounds="{self.rounds}">{lead}{summary}{_CLOSE}')

    @staticmethod
    def read(message: Message) -> Note | None:
        """The note that a message holds; None for every other message."""
        if message.role is not Role.USER or len(message.parts) != 1:
            return None
        text = message.parts[0].text
        if text is None or not text.startswith("<context-note"):
            return None
        if text == _GAP:
            return Note()
        opening = _OPEN.match(text)
        if opening is None or not text.endswith(_CLOSE):
            return None
        inner = text[opening.end() : -len(_CLOSE)]
        return Note(int(opening[1]), inner.partition(_SUMMARY)[2].strip())


def gap() -> Message:
    """The shortest note: it only parts two model messages that providers do not take side by side."""
    return Message.from_text(Role.USER, _GAP)


def is_notice(message: Message) -> bool:
    """Whether a message was written by a collection and not by a person."""
    return Note.read(message) is not None
