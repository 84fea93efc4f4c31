"""PrivateHistory: what was typed, kept from one conversation to the next, for nobody else to read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from shared.cli.plain_text import whole

FILE_NAME = "chat_history"
PRIVATE = 0o600


class PrivateHistory(FileHistory):
    """A history file that only its owner can read; it is made so before anything is written to it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not through a link: somebody else may have put it there to get at what is typed.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
        try:
            os.fchmod(descriptor, PRIVATE)
        finally:
            os.close(descriptor)
        super().__init__(str(path))

    def store_string(self, string: str) -> None:
        """Keep a line; a full disk costs the line, not the conversation."""
        try:
            super().store_string(whole(string))
        except OSError:
            return

    def load_history_strings(self) -> Iterable[str]:
        """All lines, newest first; a file that became unreadable has none."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []


def open_history(home: Path) -> History:
    """The history in the user's folder; where it cannot be kept, one that lasts as long as the conversation."""
    try:
        return PrivateHistory(home / FILE_NAME)
    except OSError:
        return InMemoryHistory()
