"""Run: one execution of a subagent. It reaches exactly one final status, from whichever thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.budget import Budget
from shared.cancel import CancelToken
from shared.latch import Latch
from shared.subagents.result import Hop, Status, SubagentResult
from shared.subagents.slots import Ticket
from shared.types import Message

if TYPE_CHECKING:
    from shared.plugin_view import PluginView
    from shared.subagents.agent import Subagent
    from shared.subagents.seat import Seat
    from shared.turn import Turn


def _as_it_is(result: SubagentResult) -> SubagentResult:
    return result


@dataclass(eq=False)
class Run:
    """Spawn is an agent's first run, each continue the next."""

    agent: Subagent
    message: Message
    cancel: CancelToken
    budget: Budget
    background: bool
    seat: Seat  # of the session that asked for it
    deadline: float | None = None  # on the monotonic clock, the parent's included
    status: Status = Status.QUEUED
    created_at: float = field(default_factory=time.time)
    started: float | None = None
    turn: Turn | None = None
    ticket: Ticket | None = None
    cause: Status | None = None  # what a cancel means for this run: cancelled, timed_out or stalled
    soft: bool = False
    warned: bool = False
    told: bool = False  # whether the parent has been given the result
    posted: bool = False  # whether it is, or was, in the parent's inbox
    result: SubagentResult | None = None
    view: PluginView | None = None  # until the agent's session takes it over
    _endings: list[Callable[[], None]] = field(default_factory=list)
    books: Callable[[SubagentResult], SubagentResult] = _as_it_is  # adds what the run used
    hops: list[Hop] = field(default_factory=list)
    done: Latch = field(default_factory=Latch)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> bool:
        """Start running; False if the run has ended while it was queued."""
        with self._lock:
            if self.result is not None:
                return False
            self.status = Status.RUNNING
            self.started = time.monotonic()
        timeout = self.agent.plan.profile.timeout_seconds
        if timeout is not None:
            own = self.started + timeout
            self.deadline = own if self.deadline is None else min(own, self.deadline)
        return True

    def wind_up(self) -> None:
        """Stop softly: finish the current tool, hand over, end as cancelled."""
        self.cause = self.cause or Status.CANCELLED
        self.soft = True
        if self.turn is not None:
            self.turn.wind_up("cancelled")

    def attend(self, turn: Turn) -> None:
        """Note the turn that works for this run."""
        self.turn = turn
        if self.soft:
            turn.wind_up("cancelled")

    def release(self) -> None:
        """Let go of everything but the result."""
        view, self.view, self.turn, self.books = self.view, None, None, _as_it_is
        if view is not None:
            view.close()
        with self._lock:
            endings, self._endings = self._endings, []
        for ending in endings:
            ending()

    def on_end(self, ending: Callable[[], None]) -> None:
        """Call this when the run lets go of what it holds; at once if it has."""
        with self._lock:
            if self.result is None:
                self._endings.append(ending)
                return
        ending()

    def hand_over_view(self) -> PluginView | None:
        """The view that was prepared for the agent's session, which closes it from now on."""
        view, self.view = self.view, None
        return view

    def post(self) -> bool:
        """Claim the right to put the run into the parent's inbox; True once."""
        with self._lock:
            posted, self.posted = self.posted, True
            return not posted

    def stop(self, cause: Status, reason: str) -> bool:
        """Say what the end means, then cancel; the first cause counts. False if the run has ended."""
        with self._lock:
            if self.result is not None:
                return False
            self.cause = self.cause or cause
        self.cancel.cancel(reason)
        return True

    def finish(self, result: SubagentResult) -> bool:
        """Store the result; False if there is one already. Whoever gets True tells the others."""
        with self._lock:
            if self.result is not None:
                return False
            self.result = result
            self.status = result.status
            return True

    def take(self) -> bool:
        """Claim the right to tell the parent of the result; True for one caller only."""
        with self._lock:
            if self.told or self.result is None:
                return False
            self.told = True
            return True

    @property
    def phase(self) -> str:
        """What the run is busy with."""
        if self.status is not Status.RUNNING:
            return self.status.value
        return self.turn.phase if self.turn is not None else "model"

    @property
    def touched(self) -> float:
        """When something last moved, on the monotonic clock."""
        return self.turn.touched if self.turn is not None else (self.started or time.monotonic())
