"""SessionTurns: one turn at a time, begun, run to its end or abandoned, and reported."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from shared import loop
from shared.accounting import Accounting
from shared.cancel import CancelToken
from shared.errors import CancelledException, SessionBusy
from shared.events import AgentOutput, ContextUpdated, HistoryUpdated, TurnCompleted, TurnStarted
from shared.executors.threads import workers
from shared.held_output import HeldOutput
from shared.mailbox import Mailbox
from shared.session_facts import SessionFacts
from shared.turn import Outcome, OutputCallback, Turn
from shared.types import Message

if TYPE_CHECKING:
    from shared.store.recorder import Recorder

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.25  # how long a cancelled turn may take to end by itself before it is abandoned


class SessionTurns(SessionFacts, ABC):
    """The part of a session that works: at most one turn, in whatever thread; others may wait for it or stop it."""

    cancel_token: CancelToken

    def __init__(self) -> None:
        self.mail = Mailbox()
        self.recorder: Recorder | None = None  # who stores what is said, done and spent
        self.on_stand_by: Callable[[CancelToken], AbstractContextManager[None]] | None = None
        self.last_outcome: Outcome | None = None
        self._lock = threading.Lock()
        self._turn: Turn | None = None
        self._accounting = Accounting()
        self._prompt: str | None = None  # the system prompt, where a hook wrote another one

    @abstractmethod
    def _refresh_if_changed(self) -> None:
        """Take up plugins and tools that were exposed, disabled or changed since the last turn."""

    @property
    def turn(self) -> Turn | None:
        """The turn under way."""
        return self._turn

    def request_stop(self, reason: str = "stopped by the user") -> bool:
        """Cancel the turn under way, from any thread; False if there is none."""
        turn = self._turn
        return turn is not None and turn.cancel.cancel(reason)

    @contextmanager
    def stand_by(self, phase: str, cancel: CancelToken) -> Iterator[None]:
        """Wait for a person or another agent: the turn shows the phase, and holds no place others could use.

        `cancel` is that of the call that waits: one whose turn was abandoned must not touch the next one.
        """
        turn = self._turn
        with ExitStack() as stack:
            if turn is not None and not cancel.is_cancelled:
                stack.enter_context(turn.busy_with(phase))
                if self.on_stand_by is not None:
                    stack.enter_context(self.on_stand_by(turn.cancel))
            yield

    # -- for those who bring their own thread ----------------------------------------------------

    def start_turn(
        self,
        message: Message | None,
        on_output: OutputCallback | None = None,
        *,
        cancel: CancelToken | None = None,
    ) -> Turn:
        """Begin a turn; the caller runs it with `execute` in a thread of its choice.

        Without a message the model goes on from where the history ends. `cancel` is the token above
        the turn's own; left out, the session's.
        """
        if self.runtime.registry is not None:
            self.runtime.registry.settle()
        if cancel is not None:
            cancel.raise_if_cancelled()  # it may have been given up for lost while plugins were still starting
        self._refresh_if_changed()
        above = cancel or self.cancel_token
        turn = Turn(self._history, above.child(), self._output_to(on_output), self.mail.take, self.mail.give_back)
        with self._lock:
            if self._turn is not None:
                raise SessionBusy(f"session '{self.agent_id}' runs a turn already; wait for it or stop it first")
            self._turn = turn
        bus = self.runtime.bus
        if bus.wants(TurnStarted):
            who = self.agent_id, self.spec.agent_name, self.provider_name, self.model_name
            bus.emit(TurnStarted(*who, message))
        if message is not None:
            turn.append(message)
        return turn

    def execute(self, turn: Turn) -> Outcome | None:
        """Run a turn to its end in this thread; None if it was abandoned in the meantime."""
        try:
            outcome: Outcome | None = loop.run(self._started(turn), turn)
            if not turn.close():
                return None
        except CancelledException:
            outcome = turn.close_cancelled()
        except BaseException:
            if turn.close():
                self._end(turn, None)
            raise
        if outcome is not None:
            self._end(turn, outcome)
        return outcome

    def abandon(self, turn: Turn) -> Outcome | None:
        """End a turn from outside, however stuck it is; what it still does changes nothing."""
        turn.cancel.cancel("abandoned")
        outcome = turn.close_cancelled()
        if outcome is not None:
            self._end(turn, outcome)
        return outcome

    # -- inside ----------------------------------------------------------------------------------

    def _run_turn(self, message: Message, on_output: OutputCallback | None, held: HeldOutput | None = None) -> Outcome:
        turn = self.start_turn(message, on_output)
        if held is not None:
            turn.output = held.before(turn.output)
        task = workers.submit(lambda: self.execute(turn))
        try:
            if not task.wait(cancel=turn.cancel):
                task.wait(GRACE_SECONDS)
        except BaseException:  # Ctrl+C reaches the waiting thread: leave everything in order behind
            turn.cancel.cancel("interrupted")
            task.wait(GRACE_SECONDS)
            self.abandon(turn)
            raise
        outcome = task.result() if task.done else self.abandon(turn)
        if outcome is None:  # it ended between the last look and the abandoning
            task.wait()
            outcome = task.result()
        if self.recorder is not None:
            self.recorder.store.commit()  # whoever hears the answer finds it in the store
        self.runtime.bus.flush()
        assert outcome is not None
        return outcome

    def _started(self, turn: Turn) -> loop.Agent:
        """What the turn runs with; hooks may have written the system prompt with which the agent started."""
        hooks = self.runtime.hooks
        if self._prompt is None and hooks.has("before_agent_start"):
            history = turn.history.snapshot()
            self._prompt = hooks.before_agent_start(history, self._agent.system, agent_id=self.agent_id)
        return self._agent if self._prompt is None else replace(self._agent, system=self._prompt)

    def _end(self, turn: Turn, outcome: Outcome | None) -> None:
        with self._lock:
            if self._turn is turn:
                self._turn = None
        if self.recorder is not None:
            self.recorder.settle()
        number = self._accounting.add(turn)
        self.last_outcome = outcome
        bus = self.runtime.bus
        if bus.wants(TurnCompleted):
            status = "failed" if outcome is None else outcome.reason or "completed"
            bus.emit(TurnCompleted(self.agent_id, number, turn.usage, turn.elapsed, tuple(turn.calls), status))
        if bus.wants(ContextUpdated):
            usage = self.get_context_usage()
            fields = ("total_tokens", "prompt_tokens", "output_tokens", "turns", "percent_used")
            bus.emit(ContextUpdated(self.agent_id, *(usage[name] for name in fields)))
        if bus.wants(HistoryUpdated):
            bus.emit(HistoryUpdated(self.agent_id, tuple(self._history.snapshot())))

    def _require_idle(self) -> None:
        if self._turn is not None:
            raise SessionBusy(f"session '{self.agent_id}' runs a turn; stop it first")

    def _output_to(self, on_output: OutputCallback | None) -> OutputCallback:
        bus, agent_id = self.runtime.bus, self.agent_id

        def output(source: str, text: str, mode: str) -> None:
            if bus.wants(AgentOutput):
                bus.emit(AgentOutput(agent_id, source, text, mode))
            if on_output is not None:
                try:
                    on_output(source, text, mode)
                except Exception:  # foreign code: a view that fails must not end the turn
                    log.exception("the output callback failed")

        return output
