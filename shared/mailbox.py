"""Mailbox: what others want the model to read before its next call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

Source = Callable[[], list[str]]


class Told(str):
    """A text that tells a parent of runs: once it is in the parent's stored history, they count as announced."""

    runs: tuple[int, ...] = ()

    @staticmethod
    def of(text: str, runs: Sequence[int]) -> Told:
        """A text that tells of these runs, by their keys in the store."""
        told = Told(text)
        told.runs = tuple(runs)
        return told


class Letter(str):
    """A text that waits in the store as well: once it is in its reader's stored history, it is taken out there."""

    key: int = 0

    @staticmethod
    def of(text: str, key: int) -> Letter:
        """A text under its key in the store."""
        letter = Letter(text)
        letter.key = key
        return letter


class Mailbox:
    """Messages left by anyone, sources that are asked, and a callback for what a user typed meanwhile."""

    def __init__(self) -> None:
        self._left: deque[str] = deque()
        self.sources: list[Source] = []
        self.callback: Callable[[], str | None] | None = None

    def leave(self, text: str) -> None:
        """Leave a message."""
        self._left.append(text)

    def give_back(self, unread: list[str]) -> None:
        """Keep mail for the next turn that the one before could not take any more."""
        self._left.extendleft(reversed(unread))

    def drop_letters(self) -> None:
        """Leave letters to the store, which has them."""
        self._left = deque(each for each in self._left if not isinstance(each, Letter))

    def take(self) -> list[str]:
        """Everything that waits, each once."""
        mail: list[str] = []
        try:
            while self._left:
                mail.append(self._left.popleft())
            for source in self.sources:
                mail += source()
            if self.callback is not None and (text := self.callback()):
                mail.append(text)
        except BaseException:  # a host's callback may fail: what was taken before it is read at the next call
            self.give_back(mail)
            raise
        return mail
