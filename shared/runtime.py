"""JaatoRuntime: one per process or host; sessions share its providers, plugins, permissions, ledger and gates."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared import config
from shared.assembly import Assembly
from shared.budget import Budget
from shared.bus import EventBus
from shared.cancel import CancelToken
from shared.commands import Commands
from shared.connections import Connections
from shared.errors import ConfigError, PluginError
from shared.events import PermissionAsked, PermissionResolved
from shared.gc.base import GCConfig
from shared.gc.keeper import ContextKeeper
from shared.governor import Governor, RetryPolicy, gate_for
from shared.hooks import HookBus
from shared.ledger import Account, TokenLedger
from shared.loop import Agent
from shared.modelcall import RetryCallback
from shared.permissions import Outcome, PermissionBroker, PermissionRequest, build_gate
from shared.permissions.gate import Permissions
from shared.plugin import PluginConfig, ToolPlugin
from shared.plugin_view import PluginView
from shared.prices import PriceTable
from shared.providers import get_provider, known_providers
from shared.providers.base import ModelSettings, Provider, ProviderConfig
from shared.registry import PluginRegistry
from shared.session import JaatoSession, SessionSpec
from shared.settings import load_settings
from shared.store.keeping import Keeping
from shared.store.place import StoreSetting, place_of
from shared.trace import attach_trace
from shared.types import Message
from shared.ui_hooks import subscribe_hooks

log = logging.getLogger(__name__)


class JaatoRuntime(Keeping):
    """Creates sessions. Works without a client; a provider that was never registered is made on first use."""

    def __init__(
        self,
        provider_name: str | None = None,
        *,
        workspace: str | Path | None = None,
        ledger: TokenLedger | None = None,
        retry: RetryPolicy | None = None,
        trust_workspace: bool | None = None,
        store: StoreSetting = None,
    ) -> None:
        """Make one for a workspace, by default the current folder.

        `store` is where runs are kept: None is the usual place unless settings say otherwise, False is nowhere, a
        path is that file, and then nothing is started that cannot be stored.
        """
        self.workspace = Path(workspace or Path.cwd()).resolve()
        self.settings = load_settings(self.workspace, trust_workspace=trust_workspace)
        self.provider_name = provider_name or self.settings.provider
        if self.provider_name not in known_providers():
            get_provider(self.provider_name)  # raises, naming the known ones
        self.vouched = self._trust = trust_workspace  # what code says of the workspace; None: the record decides
        self.bus = EventBus()
        super().__init__(place_of(store, self.workspace, configured=self.settings.get("store")))
        self.ledger = ledger or TokenLedger(PriceTable.load(config.jaato_home() / "prices.json"))
        self.registry: PluginRegistry | None = None
        self.commands = Commands()
        self.broker: PermissionBroker | None = None
        self.hooks = HookBus()
        self.retry = retry or RetryPolicy(**self.settings.get("retry"))
        self._connections = Connections(self.settings.providers)
        self._on_retry: RetryCallback | None = None
        self._main: weakref.ref[JaatoSession] | None = None
        self._assembly = Assembly(self)
        attach_trace(self.bus, self.settings.trace)
        if config.otel_enabled():
            from shared.telemetry import attach_otel

            attach_otel(self)
        for problem in self.settings.problems:
            log.warning("%s", problem)

    @property
    def trust_workspace(self) -> bool:
        """Whether project files may run code and grant rights: as said in code, else as recorded by `jaato trust`."""
        if self._trust is None:
            from shared.trust import TrustStore

            self._trust = bool(TrustStore().is_trusted(self.workspace))
        return self._trust

    def is_trusted_now(self) -> bool:
        """Like `trust_workspace`, but as its files are at this moment: one that has changed since ends it."""
        if self.vouched is not None:
            return self.vouched
        from shared.trust import TrustStore

        return bool(TrustStore().is_trusted(self.workspace))

    # -- providers -------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether `connect` was called."""
        return self._connections.is_connected

    def connect(self, project: str | None = None, location: str | None = None) -> None:
        """Say which cloud project and region to use, where a provider needs them.

        What is given here holds for every provider without a project and region of its own, so that
        subagents on another provider inherit it; PROJECT_ID and LOCATION are only fallbacks.
        """
        written = self.settings.written
        self._connections.connect(self.provider_name, project or written("project"), location or written("location"))

    def register_provider(self, name: str, settings: ProviderConfig | Provider | None = None) -> None:
        """Give a provider its settings, or bring a provider object of one's own."""
        self._connections.register(name, settings)

    def has_provider(self, name: str) -> bool:
        """Whether a provider object was brought under this name."""
        return self._connections.has(name)

    def provider(self, name: str | None = None, *, project: str | None = None, location: str | None = None) -> Provider:
        """The provider of that name, made on first use from its settings or the environment.

        A project or location given here beats the provider's own, which beats that of `connect`.
        """
        return self._connections.get(name or self.provider_name, project, location)

    def list_available_models(self, prefix: str = "", provider_name: str | None = None) -> list[str]:
        """Models that a provider offers."""
        return self.provider(provider_name).list_models(prefix or "")

    def governor(self, provider: Provider, model: str) -> Governor:
        """The one rate gate for this provider's credentials and this model."""
        return gate_for(provider, model, self.retry)

    # -- plugins and permissions -----------------------------------------------------------------

    def configure_plugins(
        self,
        registry: PluginRegistry,
        *,
        permissions: Permissions = None,
        ledger: TokenLedger | None = None,
        hooks: HookBus | None = None,
    ) -> None:
        """Use these plugins, under this permission policy; their hooks, and those on a given bus, are in force."""
        permissions = permissions if permissions is not None else self.settings.permissions
        self.broker = build_gate(
            permissions, workspace=self.workspace, trust_workspace=self.is_trusted_now, tools=registry.tools
        )
        self.broker.on_requested = self.broker.on_requested or self._permission_asked
        self.broker.on_resolved = self.broker.on_resolved or self._permission_resolved
        self.registry = registry
        self.commands = Commands(registry, [self.broker])
        self.hooks = hooks or HookBus(registry)
        self.ledger = ledger or self.ledger
        self._assembly.forget_tools()
        registry.attach = self._attach
        for name in registry.list_exposed():
            if plugin := registry.get_plugin(name):
                self._attach(plugin)
        self.hooks.start()

    @property
    def tools_version(self) -> int:
        """Grows when tools are exposed, disabled or changed."""
        return self.registry.version if self.registry is not None else 0

    # -- sessions --------------------------------------------------------------------------------

    def create_session(
        self,
        model: str | None = None,
        tools: Sequence[str] | None = None,
        system_instructions: str | None = None,
        plugin_configs: Mapping[str, PluginConfig] | None = None,
        provider_name: str | None = None,
        *,
        spec: SessionSpec | None = None,
        settings: ModelSettings | None = None,
        gc: GCConfig | Mapping[str, Any] | str | None = None,
        max_turns: int | None = None,
        history: Sequence[Message] = (),
        parent: JaatoSession | None = None,
        budget: Budget | None = None,
        view: PluginView | None = None,
    ) -> JaatoSession:
        """A new conversation. `tools` names plugins: None is all exposed ones, an empty list none."""
        model = model or self.settings.model
        if not model:
            raise ConfigError("no model: pass one to connect() or create_session(), or set MODEL_NAME")
        if spec is None:
            spec = SessionSpec.from_settings(
                self.settings, system_instructions=system_instructions, model=settings, gc=gc, max_turns=max_turns
            )
        view = view or self.plugin_view(tools, plugin_configs)
        try:
            return JaatoSession(
                self,
                spec,
                model=model,
                provider_name=provider_name or self.provider_name,
                view=view,
                cancel=parent.cancel_token.child() if parent is not None else CancelToken(),
                account=self._account(spec.agent_id, parent),
                budget=budget,
                history=history,
            )
        except BaseException:
            view.close()
            raise

    def plugin_view(
        self, names: Sequence[str] | None = None, configs: Mapping[str, PluginConfig] | None = None
    ) -> PluginView:
        """The plugins as a session with these names and settings would see them; close it, or give it to a session."""
        return PluginView(self.registry or PluginRegistry(), names=names, configs=configs, attach=self._attach)

    def build_agent(
        self, session: JaatoSession, *, model: str, provider_name: str, keeper: ContextKeeper | None = None
    ) -> Agent:
        """The bundle that the loop runs with, from what a session is now."""
        return self._assembly.build(session, model=model, provider_name=provider_name, keeper=keeper)

    @property
    def main_session(self) -> JaatoSession | None:
        """The conversation with the user, for whom host code acts outside any session."""
        return self._main() if self._main is not None else None

    def set_main_session(self, session: JaatoSession) -> None:
        """Say which session is the conversation with the user."""
        self._main = weakref.ref(session)

    # -- callbacks -------------------------------------------------------------------------------

    def set_retry_callback(self, callback: RetryCallback | None) -> None:
        """Call back before a failed model call is tried again; all sessions inherit it."""
        self._on_retry = callback

    def tell_retry(self, message: str, attempt: int, most: int, delay: float) -> None:
        """Pass on that a model call is tried again."""
        if self._on_retry is None:
            return
        try:
            self._on_retry(message, attempt, most, delay)
        except Exception:  # foreign code: telling about a retry must not prevent it
            log.exception("the retry callback failed")

    def set_ui_hooks(self, hooks: Any) -> Any:
        """Report to an object with any of the `on_…` methods; returns a function that ends it."""
        return subscribe_hooks(self.bus, hooks)

    def close(self) -> None:
        """Shut all plugins down, and let go of the store."""
        self.hooks.stop()
        if self.registry is not None:
            self.registry.unexpose_all()
        self.close_store()
        self.bus.flush(everyone=True)

    # -- inside ----------------------------------------------------------------------------------

    def _permission_asked(self, request: PermissionRequest) -> None:
        self.bus.emit(PermissionAsked(request.agent_id, request.id, request.tool, request.arguments))
        self.bus.flush()  # what led to the question is on the screen before it

    def _permission_resolved(self, request: PermissionRequest, outcome: Outcome) -> None:
        self.bus.emit(PermissionResolved(request.agent_id, request.id, request.tool, outcome.granted, outcome.method))

    def _account(self, agent_id: str, parent: JaatoSession | None) -> Account:
        return self.ledger.open(agent_id, parent=parent.account if parent is not None else None)

    def _attach(self, plugin: ToolPlugin) -> None:
        attach = getattr(plugin, "attach", None)
        if attach is None:
            return
        try:
            attach(self)
        except Exception as error:
            raise PluginError(f"plugin '{plugin.name}' failed to attach: {type(error).__name__}: {error}") from error
