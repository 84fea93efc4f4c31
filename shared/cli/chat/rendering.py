"""From what is to be shown to terminal text: the one place that lets text through, without control characters."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment, Segments
from rich.text import Text

from shared.cli.plain_text import plain

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


class Renderer:
    """Lays things out for a terminal of a given width, with the colours that `like` would use."""

    def __init__(self, like: Console) -> None:
        self._like = like

    def text(self, things: Iterable[RenderableType], width: int) -> str:
        """Everything, one below the other, as text with colours and nothing else in it."""
        file = io.StringIO()
        console = Console(
            file=file,
            width=max(1, width),
            force_terminal=self._like.is_terminal,
            color_system=self._like.color_system,  # type: ignore[arg-type] # a name, as rich gives it
            no_color=self._like.no_color,
            highlight=False,
            legacy_windows=False,
        )
        for thing in things:
            console.print(Segments(list(_clean(console.render(thing)))), end="")
        return file.getvalue()

    def lines(self, text: Text, width: int) -> list[Text]:
        """A text, wrapped."""
        return list(text.wrap(self._like, max(1, width), tab_size=4))


def _clean(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The same without control characters, and without the blanks that only fill lines."""
    kept = [Segment(plain(segment.text), segment.style) for segment in segments if not segment.is_control]
    for line in Segment.split_lines(kept):
        while line and not line[-1].text.strip():
            line.pop()
        yield from line[:-1]
        if line:
            yield Segment(line[-1].text.rstrip(), line[-1].style)
        yield Segment.line()
