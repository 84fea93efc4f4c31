"""Run: one execution of a subagent. It reaches exactly one final status, from whichever thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.budget import Budget
from shared.cancel import CancelToken
from shared.latch import Latch
from shared.subagents.result import Hop, Status, SubagentResult
from shared.subagents.slots import Ticket
from shared.types import Message, Role

if TYPE_CHECKING:
    from shared.plugin_view import PluginView
    from shared.session import SessionSpec
    from shared.subagents.agent import Subagent
    from shared.subagents.seat import Seat
    from shared.turn import Turn


def drained(messages: list[str]) -> list[str]:
    """All messages, each taken out once, while others may add more."""
    taken: list[str] = []
    with suppress(IndexError):  # or take some back
        while messages:
            taken.append(messages.pop(0))
    return taken


def _as_it_is(result: SubagentResult) -> SubagentResult:
    return result


def _cancelled() -> CancelToken:
    token = CancelToken()
    token.cancel("the run is over")
    return token


_OVER = _cancelled()


def over() -> CancelToken:
    """The token of a run that has ended."""
    return _OVER


_NOTHING = Message.from_text(Role.USER, "")


@dataclass(eq=False, slots=True, weakref_slot=True)
class Run:
    """Spawn is an agent's first run, each continue the next."""

    agent: Subagent
    message: Message
    cancel: CancelToken
    budget: Budget | None  # None: nothing is bounded, here or above
    background: bool
    seat: Seat  # of the session that asked for it
    deadline: float | None = None  # on the monotonic clock, the parent's included
    status: Status = Status.QUEUED
    created_at: float = field(default_factory=time.time)
    started: float | None = None
    turn: Turn | None = None
    ticket: Ticket | None = None
    cause: Status | None = None  # what a cancel means for this run: cancelled, timed_out or stalled
    reap_at: float | None = None  # when a cancelled run is abandoned, on the monotonic clock
    soft: bool = False
    warned: bool = False
    told: bool = False  # whether the parent has been given the result
    stored: int = 0  # its key in the store; 0: it is not stored
    result: SubagentResult | None = None
    view: PluginView | None = None  # until the agent's session takes it over
    judged: tuple[SessionSpec, int] | None = None  # the caller, and the version of all tools, when rights were decided
    books: Callable[[SubagentResult], SubagentResult] = _as_it_is  # adds what the run used
    hops: list[Hop] = field(default_factory=list)
    draft: SubagentResult | None = None  # an answer there is already, should what follows be cut off
    done: Latch = field(default_factory=Latch)
    _notes: list[str] = field(default_factory=list)
    _ending: bool = False  # somebody has its result and is storing it
    _forget_cancel: Callable[[], None] | None = None
    _touched: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # -- its way ---------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Start running; False if the run has ended while it was queued."""
        with self._lock:
            if self._ending:
                return False
            self.started = time.monotonic()
            timeout = self.agent.plan.profile.timeout_seconds
            if timeout is not None:
                own = self.started + timeout
                self.deadline = own if self.deadline is None else min(own, self.deadline)
            self.status = Status.RUNNING
            return True

    def attend(self, turn: Turn) -> None:
        """Note the turn that works for this run."""
        self.turn = turn
        if self.soft:
            turn.wind_up("cancelled")

    def finish(self, result: SubagentResult, store: Callable[[Run, SubagentResult], object] | None = None) -> bool:
        """Have the result stored, then let all see it; False if there is one. Whoever gets True tells the others."""
        with self._lock:
            if self._ending:
                return False
            self._ending = True
        try:
            if store is not None:
                store(self, result)
        finally:
            with self._lock:
                self.result = result
                self.status = result.status
        return True

    def restore(self, result: SubagentResult, *, told: bool, stored: int) -> None:
        """Take up a run that ended earlier, perhaps in another process."""
        self.told, self.stored = told, stored
        self.finish(result)
        self.done.open()

    def release(self) -> None:
        """Let go of everything but the result; whoever still works for the run finds it cancelled."""
        self.turn, self.ticket, self.books, self.draft = None, None, _as_it_is, None
        with self._lock:
            forget, self._forget_cancel = self._forget_cancel, None
            view, self.view = self.view, None
        if forget is not None:
            forget()
        self.cancel = _OVER
        if view is not None:
            view.close()

    def shed(self, seat: Seat) -> None:
        """Let go of what a closed agent needs no more; its parent's session, closed too, must not be kept alive."""
        self.message, self.budget, self.seat = _NOTHING, None, seat

    def listen(self, on_cancel: Callable[[], object]) -> None:
        """Call back when the run is cancelled, until it ends."""
        forget = self.cancel.on_cancel(on_cancel)
        with self._lock:
            if self.result is None:
                self._forget_cancel = forget
                return
        forget()

    def hand_over_view(self) -> PluginView | None:
        """The view that was prepared for the agent's session, which closes it from now on."""
        with self._lock:
            view, self.view = self.view, None
            return view

    def announce(self) -> bool:
        """Claim the right to tell the parent of the result; True for one caller only."""
        with self._lock:
            if self.told or self.result is None:
                return False
            self.told = True
            return True

    def take(self) -> bool:
        """Claim the same for the answer of a tool: it counts as told once the parent's stored history has it."""
        if not self.announce():
            return False
        if self.stored:
            self.seat.tree.told(self)
        return True

    # -- stopping --------------------------------------------------------------------------------

    def wind_up(self) -> None:
        """Stop softly: finish the current tool, hand over, end as cancelled."""
        self.blame(Status.CANCELLED)
        self.soft = True
        turn = self.turn  # read once: the end of the run takes it away
        if turn is not None:
            turn.wind_up("cancelled")

    def blame(self, cause: Status) -> bool:
        """Say what a cancel will mean; the first cause counts. False if the run has ended."""
        with self._lock:
            if self._ending:
                return False
            self.cause = self.cause or cause
            return True

    # -- how it stands ---------------------------------------------------------------------------

    @property
    def phase(self) -> str:
        """What the run is busy with."""
        turn = self.turn
        if self.status is not Status.RUNNING:
            return self.status.value
        return turn.phase if turn is not None else "model"

    @property
    def touched(self) -> float:
        """When something last moved, on the monotonic clock."""
        turn, started = self.turn, self.started
        return max(self._touched, turn.touched if turn is not None else started or 0.0)

    def touch(self) -> None:
        """Something moved below this run."""
        self._touched = time.monotonic()

    def note(self, text: str) -> None:
        """Leave a message for the next model call of this run; nobody reads it after the run."""
        self._notes.append(text)

    def take_notes(self) -> list[str]:
        """The notes that wait, each once."""
        return drained(self._notes)
