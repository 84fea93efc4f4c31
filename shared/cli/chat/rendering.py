"""From what is to be shown to terminal text: the one place that lets text through, without control characters."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

from shared.cli.plain_text import plain


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
