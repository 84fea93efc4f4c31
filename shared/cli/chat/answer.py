"""Answer: what a model says, laid out as Markdown. Loaded with the first answer: the prompt must not wait for it."""

from __future__ import annotations

import logging

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment
from rich.text import Text

log = logging.getLogger(__name__)

DEEPEST = 12  # quotes and lists in each other: what lies deeper would be left out
MOST_MARKUP = 20_000  # characters that are worth laying out: more could keep the terminal busy


class Answer(Markdown):
    """Markdown of a model: tags are shown as they are, line breaks are kept, addresses are spelled out."""

    def __init__(self, markup: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.markup = markup
        parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
        tokens = parser.parse(markup) if len(markup) <= MOST_MARKUP else []
        if all(token.level <= DEEPEST for token in tokens):
            self.parsed = [_kept_breaks(token) for token in tokens]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._laid_out(console, options) or [Text(self.markup)]

    def _laid_out(self, console: Console, options: ConsoleOptions) -> list[RenderableType | Segment]:
        try:
            return list(super().__rich_console__(console, options))
        except Exception:  # whatever a model may write, it is shown, if need be as it is
            log.debug("Markdown that cannot be laid out", exc_info=True)
            return []


def _kept_breaks(token: Token) -> Token:
    for child in token.children or ():
        if child.type == "softbreak":
            child.type = "hardbreak"
    return token
