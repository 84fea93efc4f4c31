"""Questions: which question the person is looking at, and that an answer reaches that one and no other."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.layout import Layout
from rich.console import RenderableType
from rich.text import Text

from shared.cli.chat.approvals import Asked, ChatChannel
from shared.cli.chat.question import panel
from shared.cli.chat.rendering import Renderer
from shared.errors import ConfigError
from shared.permissions.console import help_text
from shared.permissions.display import one_line
from shared.permissions.request import Decision

SMALL_ROWS = 14  # a window of fewer has no room for a question: it is printed in full
UNWRAPPED = 100_000  # columns: what is printed for good is wrapped when it is printed


class Questions:
    """Moves the cursor between message and answer.

    A question never takes the cursor from a message that is being typed. One that appears in place of another
    that went away by itself does not take it either: a key that was meant for the first must not answer the second.
    """

    def __init__(
        self,
        channel: ChatChannel,
        layout: Layout,
        message: Buffer,
        answer: Buffer,
        show: Callable[[RenderableType], object],
        renderer: Renderer,
        *,
        rows: Callable[[], int],
    ) -> None:
        self._channel, self._layout, self._message, self._answer = channel, layout, message, answer
        self._show, self._renderer, self._rows = show, renderer, rows
        self._asked: Asked | None = None
        self._held = False  # whether the next question has to be turned to

    @property
    def is_open(self) -> bool:
        """Whether a question waits."""
        return self._asked is not None

    def changed(self) -> None:
        """Another question is open, or none."""
        before, self._asked = self._asked, self._channel.question
        if before is self._asked:
            return
        in_answer = self._layout.has_focus(self._answer)
        if before is not None and before.decision is None and in_answer:
            self._held = True
        self._answer.reset()
        if self._asked is not None and self._rows() < SMALL_ROWS:
            self._show_whole(self._asked)
        if self._asked is None or self._held or self._message.text:
            self._layout.focus(self._message)
        else:
            self._layout.focus(self._answer)

    def turn(self) -> None:
        """Go from the message to the question, or back."""
        if self._asked is None or self._layout.has_focus(self._answer):
            self._layout.focus(self._message)
        else:
            self._held = False
            self._layout.focus(self._answer)

    def turned_away(self) -> None:
        """The person has sent a message: the next question may have the cursor again."""
        self._held = False

    def answer(self, line: str) -> None:
        """Take an answer to the question that is shown."""
        asked, word = self._asked, line.strip().lower()
        if asked is None or self._channel.question is not asked:
            return
        if word in ("", "?", "h", "help"):
            self._show(Text(help_text(asked.request).rstrip(), style="dim"))
        elif word in ("d", "details"):
            self._show_whole(asked)
        else:
            self._decide(asked, word)

    def _decide(self, asked: Asked, word: str) -> None:
        try:
            decision = Decision.parse(word)
        except ConfigError:
            self._show(Text(f"'{one_line(word, 40)}' is no answer: type y, n, or ? for all of them.", style="red"))
            return
        if self._channel.answer(asked, decision):
            request = asked.request
            mark, colour, said = ("✓", "green", "allowed") if decision.allow else ("✗", "red", "denied")
            what = f"{one_line(request.agent_path)}: {one_line(request.tool)}: {one_line(request.display.summary)}"
            self._show(Text(f"  {mark} {said} ({one_line(word, 20)}) ", style=colour).append(what, style="default"))

    def _show_whole(self, asked: Asked) -> None:
        lines = panel(asked.request, self._renderer, width=UNWRAPPED, height=None, now=asked.request.asked_at)
        self._show(Text("\n").join(lines))
