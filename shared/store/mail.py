"""Mail: letters that wait for an agent's next model call, kept until they are in its stored history."""

from __future__ import annotations

import time
from functools import partial

from shared.mailbox import Letter
from shared.store import writes
from shared.store.store import Store

LATE = "[Sent to you earlier, and not read until now:]"


def post(store: Store, agent: int, text: str) -> Letter:
    """Put a letter into the store; it is on disk after the next commit."""
    letter = Letter.of(text, store.mint())
    store.put(partial(writes.add_mail, letter.key, agent, text, time.time()))
    return letter


def withdraw(store: Store, letter: Letter) -> None:
    """A letter was taken back before anybody read it."""
    store.put(partial(writes.drop_mail, (letter.key,)))


def left_over(store: Store, agent: int, *, before: int | None = None) -> list[Letter]:
    """The letters that nobody read while they were in memory; `before` a key, the older ones."""
    found = store.reader.mail(agent, before=before)
    return [Letter.of(f"{LATE}\n{text}", key) for key, text in found]
