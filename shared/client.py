"""JaatoClient: the front that most hosts use; a runtime and its main session behind one object."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.client_conversations import ConversationFront
from shared.client_skills import AnySkill, SkillFront
from shared.client_subagents import SubagentFront
from shared.errors import ConfigError
from shared.events import AgentCreated
from shared.gc.base import GCConfig
from shared.ledger import TokenLedger
from shared.modelcall import RetryCallback
from shared.permissions.gate import Permissions
from shared.plugin import CommandCompletion, UserCommand
from shared.providers.base import ModelSettings, Provider, ProviderConfig
from shared.registry import PluginRegistry
from shared.runtime import JaatoRuntime
from shared.session import JaatoSession
from shared.store.place import StoreSetting
from shared.turn import OutputCallback
from shared.types import Message, Part

if TYPE_CHECKING:
    from shared.subagents.definition import Config


class JaatoClient(SubagentFront, SkillFront, ConversationFront):
    """Connect, configure tools, send messages.

    Everything a client does can be done with a runtime and a session as well; `get_runtime()` and
    `get_session()` hand them out.
    """

    def __init__(
        self,
        provider_name: str | None = None,
        *,
        workspace: str | Path | None = None,
        trust_workspace: bool | None = None,
        settings: ModelSettings | None = None,
        gc: GCConfig | Mapping[str, Any] | str | None = None,
        system_instructions: str | None = None,
        max_turns: int | None = None,
        skills: Sequence[AnySkill] | None = None,
        skill_dirs: Sequence[str | Path] | None = None,
        subagents: Sequence[Config] | None = None,
        store: StoreSetting = None,
    ) -> None:
        self._runtime = JaatoRuntime(provider_name, workspace=workspace, trust_workspace=trust_workspace, store=store)
        self._model: str | None = None
        self._session: JaatoSession | None = None
        self._lock = threading.Lock()
        self._options: dict[str, Any] = {
            "settings": settings,
            "gc": gc,
            "system_instructions": system_instructions,
            "max_turns": max_turns,
        }
        self._skills, self._skill_dirs, self._subagents = skills or (), skill_dirs or (), subagents or ()

    # -- setting up ------------------------------------------------------------------------------

    def connect(self, project: str | None = None, location: str | None = None, model: str | None = None) -> None:
        """Choose project, region and model; what is left out comes from PROJECT_ID, LOCATION and MODEL_NAME,
        else from the settings files.
        """
        model = model or self._runtime.settings.model
        if not model and self.provider_name == "script":
            model = "echo"
        if not model:
            raise ConfigError(
                "no model: pass connect(model=…) or --model, set MODEL_NAME, or write it into .jaato/config.yaml"
            )
        self._runtime.connect(project, location)
        self._model = model

    def register_provider(self, name: str, settings: ProviderConfig | Provider | None = None) -> None:
        """Give a provider its settings, or bring one of your own."""
        self._runtime.register_provider(name, settings)

    def configure_tools(
        self, registry: PluginRegistry, permissions: Permissions = None, *, ledger: TokenLedger | None = None
    ) -> None:
        """Use the exposed plugins under a permission policy, and open the main session.

        `permissions` is "allow", "ask", "deny", a policy as a dict, or the path of a policy file; left
        out, the usual places are searched.
        """
        self._require_connected()
        registry.set_model_name(self._model)
        self._introduce_skills(registry)
        self._runtime.configure_plugins(registry, permissions=permissions, ledger=ledger)
        self._introduce_subagents()
        former, self._session = self._session, None
        if former is not None:
            former.close()
        self._open_session()

    def get_runtime(self) -> JaatoRuntime:
        """The runtime behind this client."""
        return self._runtime

    def get_session(self) -> JaatoSession:
        """The main session; one without tools is opened if `configure_tools` was not called."""
        if self._session is None:
            self._require_connected()
            self._open_session()
        assert self._session is not None
        return self._session

    def _open_session(self) -> None:
        """Open the main session; of several threads that do so at once, the first one's counts."""
        made = self._runtime.create_session(self._model, **self._options)
        with self._lock:
            first = self._session is None
            if first:
                self._session = made
                self._runtime.set_main_session(made)
        if not first:
            made.close()

    def set_ui_hooks(self, hooks: Any) -> Callable[[], None]:
        """Report to an object with any of the `on_…` methods; it learns of the main agent at once."""
        end: Callable[[], None] = self._runtime.set_ui_hooks(hooks)
        self._runtime.bus.emit(AgentCreated("main", name="main"))
        self._runtime.bus.flush()
        return end

    def set_retry_callback(self, callback: RetryCallback | None) -> None:
        """Call back before a failed model call is tried again."""
        self._runtime.set_retry_callback(callback)

    # -- talking ---------------------------------------------------------------------------------

    def send_message(self, message: str, on_output: OutputCallback | None = None) -> str:
        """Say something and return the answer; `on_output(source, text, mode)` hears it as it comes."""
        return self.get_session().send_message(message, on_output)

    def send_message_with_parts(self, parts: Sequence[Part], on_output: OutputCallback | None = None) -> str:
        """Like `send_message`, with images or other parts."""
        return self.get_session().send_message_with_parts(parts, on_output)

    def generate(self, prompt: str) -> str:
        """Ask the model once, apart from the conversation."""
        return self.get_session().generate(prompt)

    def stop(self) -> bool:
        """Cancel the turn under way, from any thread; False if there is none."""
        return self._session is not None and self._session.request_stop()

    # -- looking ---------------------------------------------------------------------------------

    @property
    def provider_name(self) -> str:
        """The provider of the main session."""
        return self._runtime.provider_name

    @property
    def model_name(self) -> str | None:
        """The model of the main session."""
        return self._session.model_name if self._session is not None else self._model

    @property
    def is_connected(self) -> bool:
        """Whether `connect` was called."""
        return self._runtime.is_connected

    @property
    def is_processing(self) -> bool:
        """Whether a turn is under way."""
        return self._session is not None and self._session.is_running

    def get_history(self) -> list[Message]:
        """The conversation so far."""
        return self._session.get_history() if self._session is not None else []

    def reset_session(self, history: Sequence[Message] | None = None) -> None:
        """Begin the conversation anew, or from a given history."""
        self.get_session().reset_session(history)

    def get_turn_accounting(self) -> list[dict[str, Any]]:
        """One entry per turn: tokens, times and the tools called."""
        return self._session.get_turn_accounting() if self._session is not None else []

    def get_context_usage(self) -> dict[str, Any]:
        """How full the context is."""
        return self.get_session().get_context_usage()

    def get_context_limit(self) -> int:
        """Size of the model's context in tokens."""
        return self.get_session().get_context_limit()

    def list_available_models(self, prefix: str = "") -> list[str]:
        """Models that the provider offers."""
        return self._runtime.list_available_models(prefix)

    def get_user_commands(self) -> list[UserCommand]:
        """Commands a person can type."""
        return self.get_session().get_user_commands()

    def get_command_completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]:
        """How the arguments of a command may be completed."""
        return self.get_session().get_command_completions(command, args)

    def execute_user_command(self, name: str, args: str | Sequence[str] = "") -> tuple[Any, bool]:
        """Run a command; the second value says whether its output was shared with the model."""
        return self.get_session().execute_user_command(name, args)

    def close(self) -> None:
        """Stop what runs and shut everything down."""
        if self._session is not None:
            self._session.close()
        self._runtime.close()

    def __enter__(self) -> JaatoClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _require_connected(self) -> None:
        if self._model is None:
            raise ConfigError("not connected: call client.connect(model=…) first")
