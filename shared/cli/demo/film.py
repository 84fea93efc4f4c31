"""Film: what a terminal shows at each moment of a recording, as lines of coloured text."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from shared.bus import EventBus
from shared.cli.agent_board import AgentBoard
from shared.cli.agent_tree import AgentTree
from shared.cli.demo.story import QUESTION
from shared.cli.demo.timeline import Moment
from shared.cli.view import TurnView
from shared.ui_hooks import subscribe_hooks

WIDTH, TALK, TREE = 96, 18, 6  # columns; rows of what is said, and of the agents below it
TICK = 1.0  # seconds after which a picture is taken though nothing happened: clocks go on


@dataclass(frozen=True)
class Piece:
    """Some characters of one style: a colour's name, bold, dim."""

    text: str
    style: str = ""


Line = tuple[Piece, ...]
_NAMES = {1: "red", 2: "green", 3: "yellow", 4: "blue", 5: "magenta", 6: "cyan"}


@dataclass(frozen=True)
class Picture:
    """The screen from one moment on."""

    at: float
    lines: tuple[Line, ...]


class Film:
    """Plays moments to the same views that a person watches, and looks at what they draw."""

    def __init__(self) -> None:
        self._now = 0.0
        self._board = AgentBoard(clock=lambda: self._now)
        self._tree = AgentTree(self._board)
        self._screen = io.StringIO()
        self._view = TurnView(self._screen, speaks=True, width=WIDTH)
        self._console = self._view.console
        self._bus = EventBus()
        subscribe_hooks(self._bus, self._view)
        self._view.say("you", QUESTION, "bold green")

    def pictures(self, moments: Iterable[Moment]) -> Iterator[Picture]:
        """A picture whenever something changes, and at every tick between."""
        for moment in moments:
            if moment.at > self._now:
                yield self._taken()
                while moment.at > self._now + TICK:
                    self._now += TICK
                    yield self._taken()
                self._now = moment.at
            self._board.take(moment.event, moment.at)
            self._bus.emit(moment.event)
            self._bus.flush(everyone=True)
        self._view.flush()
        yield self._taken()

    def _taken(self) -> Picture:
        said = Text.from_ansi(self._screen.getvalue()).split()
        talk = [line for text in said for line in text.wrap(self._console, WIDTH)]
        tree = self._tree.frame(width=WIDTH, height=TREE)
        shown = [*talk[-TALK:], *[Text("")] * (TALK - len(talk)), Text(""), *tree]
        return Picture(self._now, tuple(_pieces(line, self._console) for line in shown))


def _pieces(text: Text, console: Console) -> Line:
    pieces: list[Piece] = []
    for segment in text.render(console):
        kept = segment.text.rstrip("\n")
        if kept:
            pieces.append(Piece(kept, _style(segment.style)))
    return tuple(pieces)


def _style(style: object) -> str:
    """The words that the picture knows, of what rich knows."""
    words: list[str] = []
    colour = getattr(style, "color", None)
    if colour is not None:
        words.append(str(colour.name) if colour.number is None else _NAMES.get(colour.number, ""))
    words += [name for name in ("bold", "dim") if getattr(style, name, None)]
    return " ".join(word for word in words if word)
