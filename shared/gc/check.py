"""What a collection must not do, checked on its outcome since strategies may be foreign code."""

from __future__ import annotations

from collections.abc import Sequence

from shared.gc.rounds import Layout
from shared.history import problems
from shared.types import Message


def faults(before: Sequence[Message], after: Sequence[Message]) -> str:
    """What is wrong with a collected history; empty when nothing is."""
    if not all(isinstance(message, Message) for message in after):
        return "it returned something other than messages"
    if (broken := problems(after)) and not problems(before):
        return f"it left an invalid history: {broken[0]}"
    if sum(message.tokens for message in after) > sum(message.tokens for message in before):
        return "it made the history longer"
    layout = Layout(before)
    recent = {index for part in layout.rounds[-1:] for index in part.indices} - layout.notes
    present = {id(message) for message in after}
    for index in sorted(layout.fixed | recent):
        message = before[index]
        if id(message) not in present and message not in after:
            return f"it lost message {index}, which is {_what(index, layout)}"
    return ""


def _what(index: int, layout: Layout) -> str:
    if index in layout.task:
        return "part of the task"
    return "pinned or not answered yet" if index in layout.fixed else "in the last round"
