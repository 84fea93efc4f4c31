"""Delegation: the subagent plugin without its tools — settings, profiles, the engine, and who calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.profile import SubagentProfile
from shared.errors import SubagentConfigError
from shared.folder_plugins.profiles import PluginProfiles
from shared.modelcall import RetryCallback
from shared.plugin import Plugin
from shared.runtime import JaatoRuntime
from shared.subagents.agent import Subagent
from shared.subagents.config import SubagentConfig
from shared.subagents.engine import Engine
from shared.subagents.planner import Planner
from shared.subagents.rights import STATE_TOOLS
from shared.subagents.seat import Caller
from shared.tools import ToolContext


class Delegation(Plugin):
    """What the tools stand on; they are added by subclasses."""

    name = "subagent"

    def __init__(self) -> None:
        super().__init__()
        self.settings = SubagentConfig()
        self._given: dict[str, Any] = {}  # what the host said itself
        self._added: dict[str, SubagentProfile] = {}
        self._catalogue: ProfileCatalogue | None = None
        self._engine: Engine | None = None
        self._runtime: JaatoRuntime | None = None
        self._on_attach: list[Callable[[JaatoRuntime], object]] = []

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take settings, see SubagentConfig, over those of the settings files; profiles from code stay."""
        self._given = dict(config or {})
        self._settle()
        self._catalogue = None
        if self._engine is not None:
            self._engine.reconfigure(Planner(self.settings, self.catalogue))

    def attach(self, runtime: JaatoRuntime) -> None:
        """Work on this runtime."""
        if self._runtime is runtime and self._engine is not None:
            return
        self._runtime, self._catalogue = runtime, None
        self._settle()
        lead = runtime.registry.get_plugin(self.name) if runtime.registry is not None else None
        if isinstance(lead, Delegation) and lead is not self:  # one engine for all, also where it was never exposed
            lead.attach(runtime)
            self.settings, self._catalogue, self._engine = lead.settings, lead.catalogue, lead.engine
            return
        children = tuple(each for each in self.tools() if each.name in STATE_TOOLS)
        self._engine = Engine(runtime, Planner(self.settings, self.catalogue), child_tools=children)
        waiting, self._on_attach = self._on_attach, []
        for begin in waiting:
            begin(runtime)

    def add_profile(self, profile: SubagentProfile) -> None:
        """Add or replace a profile from code; it beats every file of that name."""
        self._added[profile.name] = profile
        self.settings.add_profile(profile)
        if self._catalogue is not None:
            self._catalogue.add(profile)

    def remove_profile(self, name: str) -> bool:
        """Take back a profile that was added from code; False if there is none."""
        self._added.pop(name, None)
        known = self.settings.profiles.pop(name, None) is not None
        return self.catalogue.remove(name) or known

    def set_ui_hooks(self, hooks: Any) -> Callable[[], None]:
        """Report every agent's life to an object with any of the `on_…` methods; returns the way out."""
        ends: list[Callable[[], None]] = []

        def begin(runtime: JaatoRuntime) -> None:
            ends.append(runtime.set_ui_hooks(hooks))

        def end() -> None:
            if begin in self._on_attach:
                self._on_attach.remove(begin)
            for each in ends:
                each()

        self._when_attached(begin)
        return end

    def set_retry_callback(self, callback: RetryCallback | None) -> None:
        """Call back before a failed model call of any agent is tried again."""
        self._when_attached(lambda runtime: runtime.set_retry_callback(callback))

    @property
    def engine(self) -> Engine:
        """The engine that runs the subagents."""
        if self._engine is None:
            raise SubagentConfigError("the subagent plugin has no runtime yet: call client.configure_tools() first")
        return self._engine

    @property
    def catalogue(self) -> ProfileCatalogue:
        """The profiles, from code and from files."""
        if self._catalogue is None:
            runtime = self._runtime
            registry = runtime.registry if runtime is not None else None
            made = ProfileCatalogue(
                runtime.workspace if runtime is not None else None,
                profiles_dir=self.settings.profiles_dir,
                extra_dirs=self.settings.extra_dirs,
                agent_dirs=self.settings.agent_dirs,
                auto_discover=self.settings.auto_discover_profiles,
                trust_workspace=runtime.trust_workspace if runtime is not None else False,
                still_trusted=lambda: runtime is not None and runtime.is_trusted_now(),
                plugin_profiles=PluginProfiles(registry) if registry is not None else None,
            )
            for profile in self.settings.profiles.values():
                made.add(profile)
            self._catalogue = made
        return self._catalogue

    def _settle(self) -> None:
        """Work out the settings: files say something only once the workspace is known."""
        known = tuple(each.name for each in fields(SubagentConfig))
        written = self._runtime.settings.subagent_options(known) if self._runtime is not None else {}
        self.settings = SubagentConfig.from_dict({**written, **self._given})
        for profile in self._added.values():
            self.settings.add_profile(profile)

    def _when_attached(self, begin: Callable[[JaatoRuntime], object]) -> None:
        if self._runtime is None:
            self._on_attach.append(begin)
        else:
            begin(self._runtime)

    def _called(self, context: ToolContext) -> tuple[Engine, Caller]:
        """The engine, and who calls a tool."""
        return self.engine, self.engine.caller(context)

    def _found(self, context: ToolContext, *names: str | None) -> tuple[Engine, Caller, Subagent]:
        """The subagent that a call means, by the first id or name it gives."""
        engine, caller = self._called(context)
        given = [name for name in dict.fromkeys(names) if name]
        if not given:
            raise SubagentConfigError(
                "agent_id: expected the id or name of a subagent; list_active_subagents shows them"
            )
        agents = [caller.tree.find(caller.seat.id, name) for name in given]
        if any(agent is not agents[0] for agent in agents):
            raise SubagentConfigError(f"{' and '.join(given)} are different subagents: name one of them")
        return engine, caller, agents[0]
