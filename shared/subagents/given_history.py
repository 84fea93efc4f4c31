"""What was said before, as host code gives it: messages of ours, or dicts with a role and a content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.definitions.profile_fields import shown
from shared.errors import SubagentConfigError
from shared.history import History, problems
from shared.toolbox import cancelled_result
from shared.types import Message, Role

Given = Message | Mapping[str, Any]

_ROLES = {"user": Role.USER, "assistant": Role.MODEL, "model": Role.MODEL}
_BEFORE = "[This is what was said before:]"


def given_history(messages: Sequence[Given] | None) -> tuple[Message, ...]:
    """A history that every provider takes; raises SubagentConfigError with the message that cannot be used."""
    if messages is not None and (isinstance(messages, str | Mapping) or not isinstance(messages, Sequence)):
        raise SubagentConfigError(f"context_messages: expected a list of messages, got {shown(messages)}")
    made = [_message(index, each) for index, each in enumerate(messages or ())]
    if made and made[0].role is Role.MODEL:
        made.insert(0, Message.from_text(Role.USER, _BEFORE))
    history = History(made)
    history.close_open_calls(cancelled_result)  # of a turn that is still under way
    if wrong := problems(history.messages):
        raise SubagentConfigError(f"context_messages: {'; '.join(wrong[:3])}")
    return tuple(history.messages)


def _message(index: int, given: Given) -> Message:
    if isinstance(given, Message):
        return given
    if not isinstance(given, Mapping):
        raise _wrong(index, f"expected a dict with role and content, got {shown(given)}")
    role = given.get("role")
    if role not in _ROLES:
        hint = "; instructions belong in the profile, or in context" if role == "system" else ""
        raise _wrong(index, f"role: expected one of {', '.join(_ROLES)}, got {shown(role)}{hint}")
    return Message.from_text(_ROLES[role], _text(index, given.get("content")))


def _text(index: int, content: Any) -> str:
    parts = content if isinstance(content, list | tuple) else [content]
    found = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    texts = [text for text in found if isinstance(text, str) and text.strip()]
    if not texts or len(texts) < len(found):
        raise _wrong(
            index, f"content: expected text, got {shown(content)}; other parts can be given as Message objects"
        )
    return "\n".join(texts)


def _wrong(index: int, text: str) -> SubagentConfigError:
    return SubagentConfigError(f"context_messages, message {index}: {text}")
