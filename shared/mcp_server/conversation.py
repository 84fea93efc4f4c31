"""Conversation: the runtime, main session and agents of one MCP client; nobody else sees them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from shared.cancel import CancelToken
from shared.errors import JaatoError, ToolDenied
from shared.mailbox import Told
from shared.mcp_server.names import Name
from shared.mcp_server.settings import HOW_TO_ALLOW, USUAL_PLUGINS, ServerSettings
from shared.mcp_server.taking_up import take_up
from shared.mcp_server.unset import NO_MODEL, UnsetProvider
from shared.permissions import PermissionBroker, build_gate
from shared.permissions.channel import Channel
from shared.plugins.subagent import SubagentPlugin
from shared.providers.base import ProviderConfig
from shared.registry import PluginRegistry
from shared.runtime import JaatoRuntime
from shared.session import JaatoSession
from shared.subagents.seat import Seat
from shared.subagents.tree import Tree
from shared.toolbox import Toolbox
from shared.tools import Tool, ToolContext
from shared.types import FunctionCall, ToolResult

_END_SECONDS = 3.0  # how long cancelled runs may take to end when a conversation is closed
_UNSET = UnsetProvider.name


class Conversation:
    """What one client works with; one with a name goes on where an earlier one of that name ended.

    Opening one reads plugins, profiles and the store, so it is done on a thread.
    """

    def __init__(self, settings: ServerSettings, *, channel: Channel, name: Name | None = None) -> None:
        self._registry = PluginRegistry()
        self._registry.discover(workspace=settings.workspace)
        self.runtime = JaatoRuntime(settings.provider, workspace=settings.workspace)
        if settings.base_url:
            self.runtime.register_provider(self.runtime.provider_name, ProviderConfig(base_url=settings.base_url))
        self.runtime.connect()
        echo = "echo" if self.runtime.provider_name == "script" else None
        self._model = settings.model or self.runtime.settings.model or echo
        self.plugin = SubagentPlugin()
        try:
            self._broker = self._set_up(settings, channel)
            self.session = self._main_session()
            self.runtime.set_main_session(self.session)
            trouble = take_up(self.session, name) if name is not None else None
        except BaseException:
            self._registry.unexpose_all()  # plugins may have started programs
            self.runtime.close_store()
            raise
        self._warnings = [trouble] if trouble else []
        self._seat = Seat.of(self.session, digest_tokens=self.plugin.settings.digest_tokens)
        self._toolbox = Toolbox(self.plugin.tools(), gate=HostGate(self._broker), hooks=self.runtime.hooks)

    @property
    def tree(self) -> Tree:
        """All agents of this conversation."""
        return self._seat.tree

    @property
    def tools(self) -> list[Tool]:
        """What the client may call."""
        return self.plugin.tools()

    @property
    def is_working(self) -> bool:
        """Whether any run is queued or running."""
        return self.tree.has_live_below(self.session.agent_id)

    def run(self, name: str, args: Mapping[str, Any], *, cancel: CancelToken, call_id: str) -> ToolResult:
        """Run one of the tools for the client; foreground runs end with `cancel`."""
        context = ToolContext(self.session.agent_id, cancel, self.session, call_id, self.runtime.workspace)
        return self._toolbox.run(FunctionCall(call_id, name, args), context)

    def announcements(self) -> list[str]:
        """What there is to say of background runs that ended since the client last heard.

        That it was said is on disk first: no later server says it again.
        """
        warnings, self._warnings = self._warnings, []
        news, kept = self._seat.inbox.take(), self.tree.conversation
        if news and kept is not None:
            for run in [run for text in news if isinstance(text, Told) for run in text.runs]:
                kept.tell(run)
            kept.store.commit()
        return warnings + news

    def close(self) -> None:
        """Cancel everything, wait until it has stopped, and shut the plugins down."""
        self.session.close()
        self._broker.close()
        until = time.monotonic() + _END_SECONDS
        for agent in self.tree.below(self.session.agent_id):
            agent.run.done.wait(max(0.0, until - time.monotonic()))
        self.runtime.close()

    def _set_up(self, settings: ServerSettings, channel: Channel) -> PermissionBroker:
        self._expose(settings)
        broker = _gate(settings, self.runtime, self._registry, channel)
        self.runtime.configure_plugins(self._registry, permissions=broker)
        return broker

    def _expose(self, settings: ServerSettings) -> None:
        """What was asked for, else what the settings files name, else the usual plugins."""
        written, given = self.runtime.settings.plugins, settings.plugin_settings
        names = settings.plugins or tuple(written) or USUAL_PLUGINS
        configs = {name: {**written.get(name, {}), **given.get(name, {})} for name in (*names, *given)}
        for name, values in configs.items():
            if name != self.plugin.name:
                self._registry.expose_tool(name, values or None)
        own = configs.get(self.plugin.name, {})
        self._registry.register_plugin(self.plugin, expose=True, config=self._defaults(settings) | own)

    def _defaults(self, settings: ServerSettings) -> dict[str, Any]:
        """Model and provider of subagents, said anew because the main session may stand on a placeholder."""
        written = self.runtime.settings.subagent_options(("default_model", "default_provider"))
        model = settings.model or written.get("default_model") or self._model
        provider = settings.provider or written.get("default_provider") or self.runtime.provider_name
        return {"default_provider": provider, "default_model": model}

    def _main_session(self) -> JaatoSession:
        """The session that the client acts for; it asks no model, so one that is not set up is no obstacle."""
        missing = NO_MODEL
        if self._model:
            try:
                return self.runtime.create_session(self._model)
            except JaatoError as error:
                missing = str(error)
        self.runtime.register_provider(_UNSET, UnsetProvider(missing))
        return self.runtime.create_session(self._model or _UNSET, provider_name=_UNSET)


class HostGate:
    """The policy for calls of the client itself: a host asks its own user, so nobody is asked a second time.

    What a policy denies stays denied.
    """

    def __init__(self, broker: PermissionBroker) -> None:
        self._broker = broker

    def check(self, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> None:
        """Return unless the policy denies the call."""
        verdict = self._broker.evaluate(tool, args, agent_id=context.agent_id)
        if verdict.action == "deny":
            raise ToolDenied(f"permission denied for {tool.name}: {verdict.reason}; {HOW_TO_ALLOW}")


def _gate(
    settings: ServerSettings, runtime: JaatoRuntime, registry: PluginRegistry, channel: Channel
) -> PermissionBroker:
    """The policy's own channel if it names one that works without a terminal, else the client's."""

    given = settings.permissions or runtime.settings.permissions

    def build(asking: Channel | None) -> PermissionBroker:
        return build_gate(
            given,
            workspace=runtime.workspace,
            trust_workspace=runtime.is_trusted_now,
            channel=asking,
            tools=registry.tools,
        )

    made = build(channel)
    named = made.policy.channel
    return build(None) if named is not None and named.type != "console" else made
