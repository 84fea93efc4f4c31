"""JaatoSession: one conversation. Cheap: a history and an agent bundle, no connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shared.budget import Budget
from shared.cancel import CancelToken
from shared.commands import shown
from shared.errors import ConfigError, StoreError
from shared.gc.base import GCResult, GCTriggerReason
from shared.held_output import HeldOutput
from shared.history import History, problems
from shared.ledger import Account
from shared.modelcall import ModelCaller
from shared.plugin_view import PluginView
from shared.providers.base import ModelRequest, ToolSet
from shared.session_spec import SessionSpec as SessionSpec
from shared.session_turns import SessionTurns
from shared.toolbox import cancelled_result
from shared.turn import CANCEL_MARK, Outcome, OutputCallback
from shared.types import FunctionCall, Message, Part, Role, ToolResult

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime
    from shared.store.recorder import Recorder


class JaatoSession(SessionTurns):
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
        super().__init__()
        self.runtime = runtime
        self.spec = spec
        self.cancel_token = cancel
        self.account = account
        self.budget = budget
        self.view = view
        self._history = History(history)
        self.extras: dict[str, Any] = {}  # what others keep with this session, by their name
        self._gc_history: list[GCResult] = []
        self._stream = True
        self._provider_name = provider_name
        self._agent = runtime.build_agent(self, model=model, provider_name=provider_name)
        self._version = runtime.tools_version

    # -- with which model ------------------------------------------------------------------------

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

    @property
    def stream(self) -> bool:
        """Whether answers are streamed."""
        return self._stream

    # -- talking ---------------------------------------------------------------------------------

    def send_message(self, message: str, on_output: OutputCallback | None = None) -> str:
        """Run one turn and return the answer; a cancelled turn returns what there is, marked as cancelled."""
        hooks = self.runtime.hooks
        heard = hooks.message_received(message, self.agent_id)
        held = HeldOutput() if hooks.has("message_sending") else None
        answer = self._text(self._run_turn(Message.from_text(Role.USER, heard), on_output, held))
        said = hooks.message_sending(answer, self.agent_id) or ""
        if held is not None:
            held.say(said)
            self.runtime.bus.flush()
        return said

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
        self.mail.leave(text if self.recorder is None else self.recorder.post(text))

    def set_mid_turn_prompt_callback(self, callback: Callable[[], str | None] | None) -> None:
        """Ask this callable before each model call for something the user said in the meantime."""
        self.mail.callback = callback

    @staticmethod
    def _text(outcome: Outcome) -> str:
        return f"{outcome.text}\n{CANCEL_MARK}".strip() if outcome.reason == "cancelled" else outcome.text

    # -- history and accounting ------------------------------------------------------------------

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

    def manual_gc(self) -> GCResult:
        """Collect context now."""
        self._require_idle()
        result = self._agent.keeper.collect(self._history, GCTriggerReason.MANUAL)
        self._agent.on_collected(result)
        return result

    def note_gc(self, result: GCResult) -> None:
        """Keep the report of a collection."""
        self._gc_history.append(result)

    # -- the store -------------------------------------------------------------------------------

    def keep(self, recorder: Recorder) -> None:
        """Store what was said so far, and everything from now on."""
        self._history.keep(recorder)
        self._report_to(recorder)

    def take_up(
        self, messages: Sequence[Message], recorder: Recorder, answer: Callable[[FunctionCall], ToolResult]
    ) -> None:
        """Go on with a stored history; calls that have no result are answered, and that is stored."""
        self._require_idle()
        self._history.take_up(messages, recorder)
        self._report_to(recorder)
        self._history.close_open_calls(answer)
        if wrong := problems(self._history.messages):
            raise StoreError(f"the stored history of {self.agent_id} cannot be used: {'; '.join(wrong[:3])}")

    def _report_to(self, recorder: Recorder) -> None:
        self.recorder, self.account.sink = recorder, recorder.booked

    # -- user commands ---------------------------------------------------------------------------

    def execute_user_command(self, name: str, args: str | Sequence[str] = "") -> tuple[Any, bool]:
        """Run a command; the second value says whether its output was shared with the model."""
        command, result = self.runtime.commands.run(name, args)
        if command.share_with_model:
            self.steer(f"[The user ran the command '{name}'. Its output:]\n{shown(result)}")
        return result, command.share_with_model

    # -- tools, and the end ----------------------------------------------------------------------

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

    def _refresh_if_changed(self) -> None:
        if self._version != self.runtime.tools_version:
            self.refresh_tools()


def _no_output(kind: str, text: str) -> None:
    return None
