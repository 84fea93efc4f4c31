"""Conversations: the seam to whatever keeps conversations, so that an earlier one can be gone on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import RenderableType
from rich.text import Text

from shared.cli.plain_text import plain
from shared.errors import ConfigError, unknown_name
from shared.session import JaatoSession
from shared.types import Message, Role

LAST = "last"
RECALLED = 6  # messages that are shown again


@dataclass(frozen=True)
class Conversation:
    """An earlier conversation, as a list would show it."""

    id: str
    title: str = ""


class Conversations(Protocol):
    """The conversations of this workspace."""

    def keep(self, session: JaatoSession) -> None:
        """Keep what is said in a session from now on."""
        ...

    def newest(self) -> Sequence[Conversation]:
        """Those that can be gone on with, newest first."""
        ...

    def resume(self, session: JaatoSession, conversation_id: str) -> None:
        """Go on with one in an idle session, which then has its history."""
        ...


def begin(session: JaatoSession, conversations: Conversations | None, wanted: str | None) -> Sequence[RenderableType]:
    """Begin a conversation that is kept, or go on with the last or a given one; returns what is to be shown."""
    if wanted is None:
        if conversations is not None:
            conversations.keep(session)
        return []
    known = {each.id: each for each in conversations.newest()} if conversations is not None else {}
    if conversations is None or not known:
        raise ConfigError("there is no earlier conversation in this workspace: start one with jaato chat")
    chosen = next(iter(known)) if wanted == LAST else wanted
    if chosen not in known:
        raise ConfigError(unknown_name("conversation", wanted, known))
    conversations.resume(session, chosen)
    return recalled(session.get_history())


def recalled(history: Sequence[Message]) -> list[RenderableType]:
    """The last things that were said."""
    from shared.cli.chat.answer import Answer

    spoken = [message for message in history if message.text and message.role in (Role.USER, Role.MODEL)]
    shown: list[RenderableType] = [Text(f"Going on after {len(spoken)} messages.", style="dim")]
    for message in spoken[-RECALLED:]:
        text = plain(message.text or "")
        shown.append(Text(f"> {text}", style="bold green") if message.role is Role.USER else Answer(text))
    return shown
