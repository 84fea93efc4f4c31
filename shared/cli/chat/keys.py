"""The keys of the chat, beyond those of the line editor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


@dataclass(frozen=True)
class Actions:
    """What keys do."""

    submit: Callable[[], object]
    interrupt: Callable[[], object]
    leave: Callable[[], object]
    turn_to_question: Callable[[], object]


class Completing:
    """Tab: completes at once, or as soon as what is being looked up for the letters just typed is there."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._waits = False
        buffer.on_text_changed += lambda _: self._forget()
        buffer.on_completions_changed += lambda _: self._found()

    def wanted(self) -> None:
        """The key was pressed."""
        if self._buffer.complete_state is not None:
            self._buffer.complete_next()
            return
        self._waits = True
        self._buffer.start_completion(insert_common_part=True)

    def _found(self) -> None:
        if self._waits and self._buffer.complete_state is not None and self._buffer.complete_state.completions:
            self._waits = False
            self._buffer.complete_next()

    def _forget(self) -> None:
        self._waits = False


def chat_keys(message: Buffer, answer: Buffer, actions: Actions) -> KeyBindings:
    """The bindings; a message may have several lines, an answer has one."""
    keys = KeyBindings()
    in_message = has_focus(message)
    completing = Completing(message)

    @keys.add("enter", filter=in_message)
    def _submit(event: KeyPressEvent) -> None:
        if message.document.current_line_before_cursor.endswith("\\"):
            message.delete_before_cursor()
            message.newline(copy_margin=False)
        else:
            actions.submit()

    @keys.add("tab", filter=in_message)
    def _complete(event: KeyPressEvent) -> None:
        completing.wanted()

    @keys.add("escape", "enter", filter=in_message)
    @keys.add("c-j", filter=in_message)
    def _newline(event: KeyPressEvent) -> None:
        message.newline(copy_margin=False)

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _interrupt(event: KeyPressEvent) -> None:
        actions.interrupt()

    @keys.add("c-d", filter=Condition(lambda: not message.text and not answer.text))
    def _leave(event: KeyPressEvent) -> None:
        actions.leave()

    @keys.add("c-t")
    def _turn(event: KeyPressEvent) -> None:
        actions.turn_to_question()

    return keys
