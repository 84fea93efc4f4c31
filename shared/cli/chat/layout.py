"""Where things are on the screen: live parts above the prompt, the status below it."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput

from shared.cli.chat.live import LiveView

MENU_ROWS = 8
TYPED_ROWS = 10
WIDE = 70  # columns that the long form of a prompt needs


def chat_layout(
    live: LiveView, message: Buffer, answer: Buffer, *, is_asking: Callable[[], bool], hint: Callable[[], str]
) -> Layout:
    """The layout of the chat; the message keeps its place and its text while a question is open."""
    asking = Condition(is_asking)
    parts = [
        _live_window(live.tail),
        _live_window(live.tree),
        _live_window(live.question),
        ConditionalContainer(_answer_window(live, answer), asking),
        _message_window(message),
        Window(FormattedTextControl(lambda: live.status(hint())), height=1, style="class:bottom-toolbar"),
    ]
    menu = Float(CompletionsMenu(max_height=MENU_ROWS, scroll_offset=1), xcursor=True, ycursor=True)
    return Layout(FloatContainer(HSplit(parts, align=VerticalAlign.TOP), [menu]), focused_element=message)


def _live_window(draw: Callable[[], str]) -> ConditionalContainer:
    """Lines that are drawn anew each time, and take no room when there are none."""
    drawn = OncePerFrame(draw)
    window = Window(FormattedTextControl(lambda: ANSI(drawn())), dont_extend_height=True, always_hide_cursor=True)
    return ConditionalContainer(window, Condition(lambda: bool(drawn())))


class OncePerFrame:
    """Draws when the first part of a frame asks for it; the others get the same."""

    def __init__(self, draw: Callable[[], str]) -> None:
        self._draw = draw
        self._frame = -1
        self._text = ""

    def __call__(self) -> str:
        """The text of this frame."""
        frame = get_app().render_counter
        if frame != self._frame:
            self._frame, self._text = frame, self._draw()
        return self._text


def _answer_window(live: LiveView, answer: Buffer) -> Window:
    def prompt() -> AnyFormattedText:
        if not has_focus(answer)():
            return [("class:dim", "Ctrl+T to answer: ")]
        choices = "[y]es [n]o [a]lways never · d details · ? help" if live.columns >= WIDE else "y/n/a/never/d/?"
        return [("bold", f"Allow? {choices}: ")]

    return Window(BufferControl(answer, [BeforeInput(prompt)]), dont_extend_height=True, wrap_lines=True)


def _message_window(message: Buffer) -> Window:
    def height() -> Dimension:
        """Room for the menu of completions while there is one."""
        return Dimension(min=MENU_ROWS if message.complete_state is not None else 1, max=TYPED_ROWS)

    def prompt() -> AnyFormattedText:
        return [("bold" if has_focus(message)() else "class:dim", "> ")]

    control = BufferControl(message, [BeforeInput(prompt)])
    return Window(control, height=height, dont_extend_height=True, wrap_lines=True)
