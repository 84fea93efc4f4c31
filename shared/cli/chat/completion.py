"""SlashCompleter: completes commands and their arguments while a line that begins with a slash is typed."""

from __future__ import annotations

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from shared.cli.chat.slash import SlashCommands
from shared.cli.plain_text import plain_line
from shared.plugin import CommandCompletion


class SlashCompleter(Completer):
    """Offers what the commands offer; runs in a thread, because a plugin or provider may take its time."""

    def __init__(self, commands: SlashCommands) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The ways to go on from the cursor."""
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        name, space, rest = text[1:].partition(" ")
        if not space:
            yield from _made([each for each in self._commands.names() if each.value.startswith(name)], name)
            return
        words = rest.split(" ")
        yield from _made(self._commands.completions(name, words), words[-1])


def _made(found: Iterable[CommandCompletion], typed: str) -> Iterable[Completion]:
    for each in found:
        value = each.value
        if value == plain_line(value):  # nothing is inserted that could not be seen
            yield Completion(value, start_position=-len(typed), display_meta=plain_line(each.description, 80))
