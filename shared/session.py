"""JaatoSession: one conversation. Cheap: a history and an agent bundle, no connection of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shared import loop
from shared.accounting import Accounting
from shared.budget import Budget
from shared.cancel import CancelToken
from shared.commands import shown
from shared.errors import CancelledException, ConfigError, SessionBusy
from shared.events import AgentOutput, ContextUpdated, HistoryUpdated, TurnCompleted
from shared.executors.threads import workers
from shared.gc.base import GCResult, GCTriggerReason
from shared.history import History, problems
from shared.ledger import Account
from shared.mailbox import Mailbox
from shared.modelcall import ModelCaller
from shared.plugin import CommandCompletion, UserCommand
from shared.plugin_view import PluginView
from shared.providers.base import ModelRequest, ToolSet
from shared.session_spec import SessionSpec as SessionSpec
from shared.toolbox import cancelled_result
from shared.turn import CANCEL_MARK, Outcome, OutputCallback, Turn
from shared.types import Message, Part, Role

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.25  # how long a cancelled turn may take to end by itself before it is abandoned


class JaatoSession:
    """Owns a history and runs one turn at a time; made by `JaatoRuntime.create_session`."""

    def __init__(
        self,
        runtime: JaatoRuntime,
        spec: SessionSpec,
        *,
        model: str,
        provider_name: str,
        view: PluginView,
        cancel: CancelToken,
        account: Account,
        budget: Budget | None = None,
        history: Sequence[Message] = (),
    ) -> None:
        self.runtime = runtime
        self.spec = spec
        self.cancel_token = cancel
        self.account = account
        self.budget = budget
        self.view = view
        self.last_outcome: Outcome | None = None
        self._history = History(history)
        self._lock = threading.Lock()
        self._turn: Turn | None = None
        self.mail = Mailbox()
        self.extras: dict[str, Any] = {}  # what others keep with this session, by their name
        self.on_stand_by: Callable[[CancelToken], AbstractContextManager[None]] | None = None
        self._accounting = Accounting()
        self._gc_history: list[GCResult] = []
        self._stream = True
        self._prompt: str | None = None  # the system prompt, where a hook wrote another one
        self._provider_name = provider_name
        self._agent = runtime.build_agent(self, model=model, provider_name=provider_name)
        self._version = runtime.tools_version

    # -- who and what ----------------------------------------------------------------------------

    @property
    def agent_id(self) -> str:
        """The id under which this session reports."""
        return self.spec.agent_id

    @property
    def agent_path(self) -> str:
        """Where the agent stands in the tree, for people."""
        return self.spec.agent_path

    @property
    def profile(self) -> str | None:
        """The profile that the agent runs under, if any."""
        return self.spec.profile

    @property
    def model_name(self) -> str:
        """The model in use."""
        return self._agent.caller.model

    @property
    def provider_name(self) -> str:
        """The provider in use, by the name it is registered under."""
        return self._provider_name

    @property
    def is_running(self) -> bool:
        """Whether a turn is under way."""
        return self._turn is not None

    @property
    def tool_names(self) -> list[str]:
        """Tools the model may call, in order."""
        return self._agent.toolbox.names

    @property
    def system_prompt(self) -> str:
        """The whole system prompt as it is sent."""
        return self._agent.system

    def set_model(self, model: str, provider_name: str | None = None) -> None:
        """Go on with another model, of another provider too; the history stays."""
        self._require_idle()
        name = provider_name or self.provider_name
        self._agent = self.runtime.build_agent(self, model=model, provider_name=name)
        self._provider_name = name

    def set_budget(self, budget: Budget | None) -> None:
        """Draw on another budget from the next model call on."""
        self.budget = budget
        self._agent = replace(self._agent, caller=replace(self._agent.caller, budget=budget))

    def set_streaming_enabled(self, enabled: bool) -> None:
        """Ask the provider for streams, or for whole answers."""
        self._stream = enabled
        self._agent = replace(self._agent, stream=enabled)

    # -- talking ---------------------------------------------------------------------------------

    def send_message(self, message: str, on_output: OutputCallback | None = None) -> str:
        """Run one turn and return the answer; a cancelled turn returns what there is, marked as cancelled."""
        hooks = self.runtime.hooks
        heard = hooks.message_received(message, self.agent_id)
        answer = self._text(self._run_turn(Message.from_text(Role.USER, heard), on_output))
        return hooks.message_sending(answer, self.agent_id) or ""

    def send_message_with_parts(self, parts: Sequence[Part], on_output: OutputCallback | None = None) -> str:
        """Like `send_message`, with images or other parts."""
        return self._text(self._run_turn(Message(Role.USER, tuple(parts)), on_output))

    def generate(self, prompt: str, *, purpose: str = "generate", caller: ModelCaller | None = None) -> str:
        """Ask the model once, without tools and apart from the history; the call is in the ledger."""
        message = Message.from_text(Role.USER, prompt)
        caller = caller or self._agent.caller
        request = ModelRequest(
            caller.model, "", ToolSet(), (message,), stream=self._stream, prompt_tokens=message.tokens
        )
        token = self._turn.cancel if self._turn is not None else self.cancel_token
        return caller.call(request, cancel=token, on_chunk=_no_output, purpose=purpose).get_text()

    def steer(self, text: str) -> None:
        """Leave a message that the model reads before its next call in the turn under way, or the next one."""
        self.mail.leave(text)

    def set_mid_turn_prompt_callback(self, callback: Callable[[], str | None] | None) -> None:
        """Ask this callable before each model call for something the user said in the meantime."""
        self.mail.callback = callback

    @property
    def turn(self) -> Turn | None:
        """The turn under way."""
        return self._turn

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

    def request_stop(self, reason: str = "stopped by the user") -> bool:
        """Cancel the turn under way, from any thread; False if there is none."""
        turn = self._turn
        return turn is not None and turn.cancel.cancel(reason)

    # -- turns, for those who bring their own thread ---------------------------------------------

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

    def _started(self, turn: Turn) -> loop.Agent:
        """What the turn runs with; hooks may have written the system prompt with which the agent started."""
        hooks = self.runtime.hooks
        if self._prompt is None and hooks.has("before_agent_start"):
            history = turn.history.snapshot()
            self._prompt = hooks.before_agent_start(history, self._agent.system, agent_id=self.agent_id)
        return self._agent if self._prompt is None else replace(self._agent, system=self._prompt)

    def abandon(self, turn: Turn) -> Outcome | None:
        """End a turn from outside, however stuck it is; what it still does changes nothing."""
        turn.cancel.cancel("abandoned")
        outcome = turn.close_cancelled()
        if outcome is not None:
            self._end(turn, outcome)
        return outcome

    def _run_turn(self, message: Message, on_output: OutputCallback | None) -> Outcome:
        turn = self.start_turn(message, on_output)
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
        self.runtime.bus.flush()
        assert outcome is not None
        return outcome

    def _end(self, turn: Turn, outcome: Outcome | None) -> None:
        with self._lock:
            if self._turn is turn:
                self._turn = None
        number = self._accounting.add(turn)
        self.last_outcome = outcome
        bus = self.runtime.bus
        if bus.wants(TurnCompleted):
            bus.emit(TurnCompleted(self.agent_id, number, turn.usage, turn.elapsed, tuple(turn.calls)))
        if bus.wants(ContextUpdated):
            usage = self.get_context_usage()
            fields = ("total_tokens", "prompt_tokens", "output_tokens", "turns", "percent_used")
            bus.emit(ContextUpdated(self.agent_id, *(usage[name] for name in fields)))
        if bus.wants(HistoryUpdated):
            bus.emit(HistoryUpdated(self.agent_id, tuple(self._history.snapshot())))

    @staticmethod
    def _text(outcome: Outcome) -> str:
        return f"{outcome.text}\n{CANCEL_MARK}".strip() if outcome.reason == "cancelled" else outcome.text

    # -- history and accounting ------------------------------------------------------------------

    def get_history(self) -> list[Message]:
        """The conversation so far, as a copy."""
        return self._history.snapshot()

    def reset_session(self, history: Sequence[Message] | None = None) -> None:
        """Begin anew, or from a given history; accounting starts again too."""
        self._require_idle()
        fresh = History(history or ())
        fresh.close_open_calls(cancelled_result)
        if wrong := problems(fresh.messages):
            raise ConfigError(f"this history cannot be used: {'; '.join(wrong[:3])}")
        self._history.replace(fresh.messages)
        self._accounting.clear()
        self._gc_history.clear()
        self._prompt = None
        self._agent = self.runtime.build_agent(self, model=self.model_name, provider_name=self.provider_name)

    def get_turn_accounting(self) -> list[dict[str, Any]]:
        """One entry per turn: tokens, times and the tools called."""
        return self._accounting.rows()

    def get_context_limit(self) -> int:
        """Size of the model's context in tokens."""
        return self._agent.keeper.usage(self._history).context_limit

    def get_context_usage(self) -> dict[str, Any]:
        """How full the context is; token counts are those of the newest model call."""
        usage = self._agent.keeper.usage(self._history)
        last = self._accounting.last
        return {
            "model": self.model_name,
            "context_limit": usage.context_limit,
            "total_tokens": usage.total_tokens,
            "prompt_tokens": last["prompt"],
            "output_tokens": last["output"],
            "turns": len(self._accounting),
            "percent_used": usage.percent_used,
            "tokens_remaining": max(0, usage.context_limit - usage.total_tokens),
        }

    def manual_gc(self) -> GCResult:
        """Collect context now."""
        self._require_idle()
        result = self._agent.keeper.collect(self._history, GCTriggerReason.MANUAL)
        self._agent.on_collected(result)
        return result

    def get_gc_history(self) -> list[GCResult]:
        """Reports of all collections."""
        return list(self._gc_history)

    def note_gc(self, result: GCResult) -> None:
        """Keep the report of a collection."""
        self._gc_history.append(result)

    # -- user commands ---------------------------------------------------------------------------

    def get_user_commands(self) -> list[UserCommand]:
        """Commands a person can type here."""
        return self.runtime.commands.all()

    def get_command_completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]:
        """How the arguments of a command may be completed."""
        return self.runtime.commands.completions(command, args)

    def execute_user_command(self, name: str, args: str | Sequence[str] = "") -> tuple[Any, bool]:
        """Run a command; the second value says whether its output was shared with the model."""
        command, result = self.runtime.commands.run(name, args)
        if command.share_with_model:
            self.steer(f"[The user ran the command '{name}'. Its output:]\n{shown(result)}")
        return result, command.share_with_model

    # -- inside ----------------------------------------------------------------------------------

    def refresh_tools(self) -> None:
        """Take up plugins and tools that were exposed, disabled or changed."""
        self._version = self.runtime.tools_version
        self._agent = self.runtime.build_agent(
            self, model=self.model_name, provider_name=self.provider_name, keeper=self._agent.keeper
        )

    def close(self) -> None:
        """Stop what runs and shut the session's own plugin instances down."""
        self.cancel_token.cancel("the session was closed")
        self._agent.keeper.close()
        self.view.close()

    @property
    def stream(self) -> bool:
        """Whether answers are streamed."""
        return self._stream

    def _refresh_if_changed(self) -> None:
        if self._version != self.runtime.tools_version:
            self.refresh_tools()

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


def _no_output(kind: str, text: str) -> None:
    return None
