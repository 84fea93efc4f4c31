"""SessionFacts: what a session can be asked at any moment, from any thread; asking changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shared.accounting import Accounting
from shared.gc.base import GCResult
from shared.history import History
from shared.plugin import CommandCompletion, UserCommand
from shared.session_spec import SessionSpec
from shared.turn import Turn
from shared.types import Message

if TYPE_CHECKING:
    from shared.loop import Agent
    from shared.runtime import JaatoRuntime


class SessionFacts:
    """The half of a session that only tells: who it is, what was said, what it took."""

    runtime: JaatoRuntime
    spec: SessionSpec
    _agent: Agent
    _history: History
    _accounting: Accounting
    _gc_history: list[GCResult]
    _provider_name: str
    _turn: Turn | None

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

    # -- what was said, and what it took ---------------------------------------------------------

    def get_history(self) -> list[Message]:
        """The conversation so far, as a copy."""
        return self._history.snapshot()

    def get_turn_accounting(self) -> list[dict[str, Any]]:
        """One entry per turn: tokens, times and the tools called."""
        return self._accounting.rows()

    def get_context_limit(self) -> int:
        """Size of the model's context in tokens."""
        return self._agent.keeper.context_limit

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

    def get_gc_history(self) -> list[GCResult]:
        """Reports of all collections."""
        return list(self._gc_history)

    # -- what a person may type ------------------------------------------------------------------

    def get_user_commands(self) -> list[UserCommand]:
        """Commands a person can type here."""
        return self.runtime.commands.all()

    def get_command_completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]:
        """How the arguments of a command may be completed."""
        return self.runtime.commands.completions(command, args)
