"""AnswerText: what a model says, on stdout as it comes."""

from __future__ import annotations

import sys

import click

from shared.bus import EventBus
from shared.cli.plain_text import plain


class AnswerText:
    """Takes the output of a turn; a block of text begins after the progress that was reported before it."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._open = False  # whether the last line still lacks its end

    def __call__(self, source: str, text: str, mode: str) -> None:
        if source == "model":
            if not self._open:
                self._bus.flush()
            click.echo(shown(text), nl=False)
            self._open = not text.endswith("\n")
        elif mode == "flush":
            self.finish()

    def finish(self) -> None:
        """End the line, if one was begun."""
        if self._open:
            click.echo()
        self._open = False


def shown(text: str) -> str:
    """A text as it is for a program; for a terminal without what would move its cursor."""
    return plain(text) if sys.stdout.isatty() else text
