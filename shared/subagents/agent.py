"""Subagent: an agent below the main session; it outlives its runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.mailbox import Letter
from shared.session import JaatoSession
from shared.store.mail import post, withdraw
from shared.store.store import Store
from shared.subagents.plan import Plan
from shared.subagents.result import Status
from shared.subagents.run import Run
from shared.types import Message

PATH_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "


_mailing = threading.Lock()  # one for the mail of all agents: it is held for no time at all


@dataclass(eq=False, slots=True, weakref_slot=True)
class Subagent:
    """Between its runs an agent waits, with its history, until it is closed."""

    agent_id: str
    name: str
    plan: Plan
    parent_id: str
    depth: int
    path: str
    key: tuple[str, ...]  # what makes a second spawn a duplicate of this one
    created_at: float = field(default_factory=time.time)
    last_activity: float = field(default_factory=time.time)
    session: JaatoSession | None = None
    tools: frozenset[str] = frozenset()  # what it may call; rights can narrow, never grow
    history: tuple[Message, ...] = ()  # what its session begins with
    turns: int = 0
    closed: bool = False
    cleanup: bool = False  # to be forgotten as soon as its parent has its result
    stored: int = 0  # its key in the store; 0: it is not stored
    asleep: bool = False  # its history is in the store, until it goes on
    origin: Mapping[str, Any] | None = None  # of one that came back from the store: what it takes to make it anew
    unannounced: tuple[Run, ...] = ()  # background runs that ended while others below worked
    _run: Run | None = None
    _mail: list[str] = field(default_factory=list)

    def tell(self, message: str) -> str:
        """Leave a message for its next model call; where there is a store, it is on disk when this returns."""
        store = self._store
        letter = message if store is None else post(store, self.stored, message)
        with _mailing:
            self._mail.append(letter)
        if store is not None:
            store.commit()
        return letter

    def take_mail(self) -> list[str]:
        """The messages that wait, each once."""
        with _mailing:
            told, self._mail = self._mail, []
        return [*told, *self.run.take_notes()]

    @property
    def letters(self) -> frozenset[int]:
        """The keys of the stored messages that wait here."""
        with _mailing:
            return frozenset(each.key for each in self._mail if isinstance(each, Letter))

    @property
    def has_mail(self) -> bool:
        """Whether a message waits for its next model call."""
        return bool(self._mail)

    def take_back(self, message: str) -> bool:
        """Withdraw what `tell` returned, if nobody has read it; False if somebody has."""
        with _mailing:
            kept = [each for each in self._mail if each is not message]  # an equal text may be somebody else's
            if len(kept) == len(self._mail):
                return False
            self._mail = kept
        if (store := self._store) is not None and isinstance(message, Letter):
            withdraw(store, message)
            store.commit()  # before its sender hears that nobody will read it
        return True

    @property
    def _store(self) -> Store | None:
        """Where it is kept, if it is."""
        conversation = self.run.seat.tree.conversation
        return conversation.store if conversation is not None and self.stored else None

    @property
    def run(self) -> Run:
        """The newest run; an agent is made with its first one."""
        assert self._run is not None
        return self._run

    @run.setter
    def run(self, run: Run) -> None:
        self._run = run

    @property
    def is_live(self) -> bool:
        """Whether a run is queued or running."""
        return not self.run.status.is_final

    @property
    def status(self) -> Status:
        """Where the agent stands: its run's status, or waiting for the next one."""
        status = self.run.status
        return Status.WAITING if status.is_final and not self.closed else status
