"""Planner: from a spawn request to a plan, by the rights of the session that calls; what is wrong is refused here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from shared.budget import Limits
from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.profile import SubagentProfile
from shared.definitions.usable_tools import usable_profile
from shared.definitions.variables import expand_plugin_configs, variables_for
from shared.errors import ConfigError, SkillError, SubagentConfigError, unknown_name
from shared.gc.base import GCConfig
from shared.gc.loader import load_strategy
from shared.plugin import Plugin
from shared.providers import known_providers
from shared.providers.base import ModelSettings
from shared.registry import PluginRegistry
from shared.session import JaatoSession
from shared.skills.preload import Preloaded, preload_for
from shared.subagents.config import SubagentConfig
from shared.subagents.inline import inline_settings, narrowed
from shared.subagents.known_tools import known_tools
from shared.subagents.plan import OWN_PLUGIN, SPAWN_PLUGINS, Choice, Plan
from shared.subagents.scripted import providers_of, require_no_script

KEPT = 64  # plans that are remembered


class Planner:
    """Turns a spawn request into a plan, by the rights of the session that calls."""

    def __init__(self, config: SubagentConfig, catalogue: ProfileCatalogue) -> None:
        self.config, self._catalogue = config, catalogue
        self._plain: dict[tuple[object, ...], tuple[Plan, tuple[object, ...]]] = {}

    def plan(
        self,
        caller: JaatoSession,
        *,
        profile: str | None,
        inline: Mapping[str, Any] | None,
        depth: int = 1,
        deepest: int = 1,
        confined: bool = False,
    ) -> Plan:
        """Decide, or raise SubagentConfigError with the name of what is wrong.

        The child will be at `depth`; only one above `deepest` may spawn in turn. `confined` says that the
        caller itself is bounded: then a trusted profile gives its child no more than the caller has, or an
        untrusted agent could reach through it what it was denied.
        """
        given = inline_settings(inline)
        if inline and not self.config.allow_inline:
            raise SubagentConfigError("inline_config is switched off here (allow_inline: false): choose a profile")
        if profile is None:
            return self._without_profile(caller, given) if given else self._alike(caller)
        return self._from_profile(caller, profile, given, depth=depth, deepest=deepest, confined=confined)

    def _alike(self, caller: JaatoSession) -> Plan:
        """The plan of a child that is to be like its caller: worked out once, for as long as the caller stays the same.

        What it depends on is compared by identity, and kept, so that nothing else can take its place.
        """
        spec, view = caller.spec, caller.view
        key = (id(spec), id(view), caller.model_name, caller.provider_name, caller.runtime.tools_version)
        found = self._plain.get(key)
        if found is None:
            if len(self._plain) >= KEPT:
                self._plain.clear()
            found = self._plain[key] = self._without_profile(caller, {}), (spec, view)
        return found[0]

    def _without_profile(self, caller: JaatoSession, inline: dict[str, Any]) -> Plan:
        plugins = self._inherited(caller, inline.get("plugins"))
        made = SubagentProfile("_inline", **{**inline, "plugins": plugins}) if inline else _inheriting(tuple(plugins))
        return self._plan(caller, made, None, plugins, {}, inline=inline, bounded=True, vouched=False, may_spawn=False)

    def _inherited(self, caller: JaatoSession, asked: Sequence[str] | None) -> list[str]:
        """The caller's plugins, or those of them that an inline_config names."""
        own = [name for name in _plugins_of(caller) if name not in SPAWN_PLUGINS]
        allowed = self.config.inline_allowed_plugins
        for name in asked or ():
            if name in SPAWN_PLUGINS:
                raise SubagentConfigError(
                    f"inline_config.plugins: '{name}' cannot be given inline: use a profile that lists it"
                )
            if name not in own:
                raise SubagentConfigError(
                    f"inline_config.plugins: only your own plugins can be given: {unknown_name('plugin', name, own)}"
                )
            if allowed and name not in allowed:
                raise SubagentConfigError(
                    f"inline_config.plugins: '{name}' is not allowed inline; allowed: {', '.join(sorted(allowed))}"
                )
        return own if asked is None else list(asked)

    def _from_profile(
        self, caller: JaatoSession, label: str, inline: dict[str, Any], *, depth: int, deepest: int, confined: bool
    ) -> Plan:
        found = self._profile(label, caller.runtime.registry)
        profile = narrowed(found, inline)
        vouched = found.source.trusted and not confined
        if not found.source.trusted:
            require_no_script(
                providers_of(found), own=caller.provider_name, where=f"profile '{label}' is not trusted and"
            )
        if found.inherits_plugins:
            asked = self._inherited(caller, inline.get("plugins"))
        else:
            asked = list(profile.plugins)
            self._require_plugins(caller, label, profile, asked, vouched=vouched)
        configs = self._configs(caller, label, profile, vouched=vouched)
        deep = depth >= _lowest(deepest, profile.max_depth)
        plan = self._plan(
            caller,
            profile,
            label,
            [name for name in asked if name != OWN_PLUGIN and not (deep and name in SPAWN_PLUGINS)],
            configs,
            inline=inline,
            bounded=not vouched or found.inherits_plugins,
            vouched=vouched,
            may_spawn=OWN_PLUGIN in asked and not deep,
        )
        return replace(plan, skills=self._skills(caller, label, profile)) if profile.skills else plan

    def _profile(self, name: str, registry: PluginRegistry | None) -> SubagentProfile:
        try:
            profile = self._catalogue.get(name)
        except ConfigError as error:
            raise SubagentConfigError(str(error)) from error
        if profile.unmapped_tools or profile.unmapped_denied:  # an agent that was written for another host
            profile = usable_profile(profile, known_tools(registry))
        return profile

    @staticmethod
    def _skills(caller: JaatoSession, label: str, profile: SubagentProfile) -> Preloaded:
        """The bodies and tools of the skills that a profile asks for."""
        try:
            return preload_for(caller.runtime, profile.skills) if profile.skills else Preloaded()
        except SkillError as error:
            raise SubagentConfigError(f"profile '{label}', skills: {error}") from error

    def _require_plugins(
        self, caller: JaatoSession, label: str, profile: SubagentProfile, asked: Sequence[str], *, vouched: bool
    ) -> None:
        """All plugins exist, and without trust the caller has every one of them."""
        available, own = _available(caller), _plugins_of(caller)
        for name in asked:
            if name not in available:
                raise SubagentConfigError(f"profile '{label}': {unknown_name('plugin', name, available)}")
            if not vouched and name not in own:
                raise SubagentConfigError(
                    f"profile '{label}' asks for the plugin '{name}', which its caller does not have: "
                    f"{_why(profile)}, so it cannot have more than its caller"
                )

    def _configs(
        self, caller: JaatoSession, label: str, profile: SubagentProfile, *, vouched: bool
    ) -> dict[str, dict[str, Any]]:
        """The profile's plugin settings with variables filled in; without trust none may loosen a plugin."""
        if not profile.plugin_configs:
            return {}
        available, registry = _available(caller), caller.runtime.registry
        for name, settings in profile.plugin_configs.items():
            if name not in available or registry is None:
                raise SubagentConfigError(
                    f"profile '{label}', plugin_configs: {unknown_name('plugin', name, available)}"
                )
            if name in SPAWN_PLUGINS:
                raise SubagentConfigError(f"profile '{label}', plugin_configs: only the host sets up '{name}'")
            loosening = sorted(set(settings) - _harmless(registry.get_plugin(name)))
            if loosening and not vouched:
                raise SubagentConfigError(
                    f"profile '{label}' changes the setting '{loosening[0]}' of plugin '{name}': {_why(profile)}, so "
                    f"it may only change settings that widen nothing"
                )
        variables = variables_for(caller.runtime.workspace, allowed=self.config.allowed_variables)
        return expand_plugin_configs(profile.plugin_configs, variables)

    def _plan(
        self,
        caller: JaatoSession,
        profile: SubagentProfile,
        label: str | None,
        plugins: Sequence[str],
        configs: Mapping[str, Mapping[str, Any]],
        *,
        inline: Mapping[str, Any],
        bounded: bool,
        vouched: bool,
        may_spawn: bool,
    ) -> Plan:
        config = self.config
        level = {key: "inline" if key in inline else "profile" for key in ("model", "provider")}
        models = (profile.model, level["model"]), (config.default_model, "config"), (caller.model_name, "caller")
        providers = (
            (profile.provider, level["provider"]),
            (config.default_provider, "config"),
            (caller.provider_name, "caller"),
        )
        return Plan(
            profile=profile,
            label=label,
            plugins=tuple(plugins),
            plugin_configs=_with_inherited(caller, plugins, configs),
            bounded=bounded,
            vouched=vouched,
            may_spawn=may_spawn,
            model=_first(*models),
            provider=_known(caller, _first(*providers)),
            settings=_model_settings(profile, caller),
            gc=_loadable(profile.gc) if profile.gc is not None else caller.spec.gc,
            budget=profile.budget or Limits(),
            project=config.project or caller.spec.project,
            location=config.location or caller.spec.location,
        )


def _model_settings(profile: SubagentProfile, caller: JaatoSession) -> ModelSettings:
    effort = profile.reasoning_effort
    return ModelSettings(
        temperature=profile.temperature,
        reasoning_effort=caller.spec.settings.reasoning_effort if effort == "inherit" else effort,
        max_output_tokens=profile.max_output_tokens,
    )


def _loadable(gc: GCConfig) -> GCConfig:
    """Settings of a strategy that there is: an unknown one is refused before anything starts."""
    try:
        load_strategy(gc.type)
    except ConfigError as error:
        raise SubagentConfigError(str(error)) from error
    return gc


def _lowest(general: int, own: int | None) -> int:
    return general if own is None else min(general, own)


def _plugins_of(caller: JaatoSession) -> list[str]:
    """The plugins that a session really has at the moment: what was taken out of use is not among them."""
    view = caller.view
    return [name for name in view.names if view.plugin(name) is not None]


def _available(caller: JaatoSession) -> list[str]:
    registry = caller.runtime.registry
    return registry.list_available() if registry is not None else []


def _why(profile: SubagentProfile) -> str:
    """Why a profile gives no rights of its own."""
    if profile.source.trusted:
        return "its caller is an agent with bounded rights"
    remedy = " (look at it with `jaato trust`)" if profile.source.kind == "project" else ""
    return f"it comes from {profile.source}, which is not trusted{remedy}"


def _with_inherited(
    caller: JaatoSession, plugins: Sequence[str], configs: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The caller's own settings of each plugin under those of the profile; a plugin without either is shared."""
    inherited = caller.view.configs
    return {
        name: {**inherited.get(name, {}), **configs.get(name, {})}
        for name in plugins
        if name in inherited or name in configs
    }


def _harmless(plugin: object) -> frozenset[str]:
    """Settings that narrow or select, and so may come from a file that nobody vouched for."""
    return plugin.harmless_settings if isinstance(plugin, Plugin) else frozenset()


def _first(*options: tuple[str | None, str]) -> Choice:
    return next(Choice(value, level) for value, level in options if value)


def _known(caller: JaatoSession, provider: Choice) -> Choice:
    if provider.value not in known_providers() and not caller.runtime.has_provider(provider.value):
        raise SubagentConfigError(unknown_name("provider", provider.value, known_providers()))
    return provider


@lru_cache(maxsize=64)
def _inheriting(plugins: tuple[str, ...]) -> SubagentProfile:
    """The profile of a spawn that asks for nothing special; most do, so it is checked once."""
    return SubagentProfile("_inherited", plugins=plugins)
