"""Plan: everything a spawn decides before anything starts; what cannot be decided is refused here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shared.budget import Limits
from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.profile import SubagentProfile
from shared.definitions.variables import expand_plugin_configs, variables_for
from shared.errors import ConfigError, SubagentConfigError, unknown_name
from shared.gc.base import GCConfig
from shared.gc.loader import gc_config_from
from shared.plugin import Plugin
from shared.providers import known_providers
from shared.providers.base import ModelSettings
from shared.session import JaatoSession
from shared.subagents.config import SubagentConfig

OWN_PLUGIN = "subagent"


@dataclass(frozen=True)
class Choice:
    """A value and the level it came from: profile, inline, config default or caller."""

    value: str
    level: str


@dataclass(frozen=True)
class Plan:
    """What a child will be."""

    profile: SubagentProfile
    label: str | None  # the profile's name as the caller gave it; None for a spawn without one
    plugins: tuple[str, ...]
    plugin_configs: Mapping[str, Mapping[str, Any]]
    bounded: bool  # never more than the caller has
    may_spawn: bool
    model: Choice
    provider: Choice
    settings: ModelSettings
    gc: GCConfig
    budget: Limits


class Planner:
    """Turns a spawn request into a plan, by the rights of the session that calls."""

    def __init__(self, config: SubagentConfig, catalogue: ProfileCatalogue) -> None:
        self.config, self._catalogue = config, catalogue

    def plan(
        self, caller: JaatoSession, *, profile: str | None, inline: Mapping[str, Any] | None, may_spawn: bool
    ) -> Plan:
        """Decide, or raise SubagentConfigError with the name of what is wrong."""
        inline = dict(inline or {})
        if inline and not self.config.allow_inline:
            raise SubagentConfigError("inline_config is switched off here (allow_inline: false): choose a profile")
        if profile is None:
            return self._without_profile(caller, inline)
        chosen = self._narrowed(self._profile(profile), inline)
        return self._from_profile(caller, profile, chosen, may_spawn=may_spawn)

    def _profile(self, name: str) -> SubagentProfile:
        try:
            return self._catalogue.get(name)
        except ConfigError as error:
            raise SubagentConfigError(str(error)) from error

    def _without_profile(self, caller: JaatoSession, inline: dict[str, Any]) -> Plan:
        inherited = [name for name in caller.view.names if name != OWN_PLUGIN]
        plugins = self._inline_plugins(inline.pop("plugins", None), inherited)
        made = _made_profile("_inline" if inline else "_inherited", plugins, inline)
        return self._plan(caller, made, None, plugins, {}, bounded=True, may_spawn=False)

    def _inline_plugins(self, asked: Sequence[str] | None, inherited: list[str]) -> list[str]:
        if asked is None:
            return inherited
        allowed = self.config.inline_allowed_plugins
        for name in asked:
            if name not in inherited:
                raise SubagentConfigError(f"inline_config.plugins: {unknown_name('plugin', name, inherited)}")
            if allowed and name not in allowed:
                raise SubagentConfigError(
                    f"inline_config.plugins: '{name}' is not allowed inline; allowed: {', '.join(sorted(allowed))}"
                )
        return list(dict.fromkeys(asked))

    def _narrowed(self, profile: SubagentProfile, inline: dict[str, Any]) -> SubagentProfile:
        """A profile under an inline_config: fewer plugins, lower limits, more instructions; never more."""
        changes: dict[str, Any] = {}
        for key, value in inline.items():
            changes[key] = _narrow(profile, key, value)
        try:
            return replace(profile, **changes) if changes else profile
        except ConfigError as error:
            raise SubagentConfigError(f"inline_config: {error}") from error

    def _from_profile(self, caller: JaatoSession, label: str, profile: SubagentProfile, *, may_spawn: bool) -> Plan:
        if profile.skills:
            raise SubagentConfigError(
                f"profile '{label}' asks for skills ({', '.join(profile.skills)}), which cannot be loaded yet"
            )
        callers = [name for name in caller.view.names if name != OWN_PLUGIN]
        asked = callers if profile.plugins == "inherit" else list(profile.plugins)
        registry = caller.runtime.registry
        available = registry.list_available() if registry is not None else []
        bounded = not profile.source.trusted
        for name in asked:
            if name not in available:
                raise SubagentConfigError(f"profile '{label}': {unknown_name('plugin', name, available)}")
            if bounded and name not in caller.view.names:
                raise SubagentConfigError(
                    f"profile '{label}' comes from {profile.source.path}, which is not trusted, and asks for the "
                    f"plugin '{name}' that its caller does not have: expose it, or trust the workspace"
                )
        configs = self._configs(caller, label, profile)
        plugins = [name for name in asked if name != OWN_PLUGIN]
        nested = may_spawn and OWN_PLUGIN in asked
        return self._plan(caller, profile, label, plugins, configs, bounded=bounded, may_spawn=nested)

    def _configs(self, caller: JaatoSession, label: str, profile: SubagentProfile) -> dict[str, Mapping[str, Any]]:
        """The profile's plugin settings with variables filled in; an untrusted one may not loosen a plugin."""
        registry = caller.runtime.registry
        for name, settings in profile.plugin_configs.items():
            if registry is None or name not in registry.list_available():
                known = registry.list_available() if registry is not None else []
                raise SubagentConfigError(f"profile '{label}', plugin_configs: {unknown_name('plugin', name, known)}")
            plugin = registry.get_plugin(name)
            loosening = set(settings) - _harmless(plugin)
            if loosening and not profile.source.trusted:
                raise SubagentConfigError(
                    f"profile '{label}' comes from {profile.source.path}, which is not trusted, and changes the "
                    f"setting '{sorted(loosening)[0]}' of plugin '{name}': trust the workspace to allow that"
                )
        variables = variables_for(caller.runtime.workspace, allowed=self.config.allowed_variables)
        return dict(expand_plugin_configs(profile.plugin_configs, variables))

    def _plan(
        self,
        caller: JaatoSession,
        profile: SubagentProfile,
        label: str | None,
        plugins: Sequence[str],
        configs: Mapping[str, Mapping[str, Any]],
        *,
        bounded: bool,
        may_spawn: bool,
    ) -> Plan:
        config = self.config
        level = "inline" if label is None else "profile"
        model = _first((profile.model, level), (config.default_model, "config"), (caller.model_name, "caller"))
        provider = _first(
            (profile.provider, level), (config.default_provider, "config"), (caller.provider_name, "caller")
        )
        if provider.value not in known_providers() and not caller.runtime.has_provider(provider.value):
            raise SubagentConfigError(unknown_name("provider", provider.value, known_providers()))
        inherited = {name: caller.view.configs[name] for name in plugins if name in caller.view.configs}
        effort = profile.reasoning_effort
        settings = ModelSettings(
            temperature=profile.temperature,
            reasoning_effort=caller.spec.settings.reasoning_effort if effort == "inherit" else effort,
            max_output_tokens=profile.max_output_tokens,
        )
        return Plan(
            profile=profile,
            label=label,
            plugins=tuple(plugins),
            plugin_configs={**inherited, **{name: configs[name] for name in configs if name in plugins}},
            bounded=bounded,
            may_spawn=may_spawn,
            model=model,
            provider=provider,
            settings=settings,
            gc=profile.gc or caller.spec.gc,
            budget=profile.budget or Limits(),
        )


def _harmless(plugin: object) -> set[str]:
    """Settings that narrow or select, and so may come from a file that nobody vouched for."""
    return set(plugin.harmless_settings) if isinstance(plugin, Plugin) else set()


def _first(*options: tuple[str | None, str]) -> Choice:
    return next(Choice(value, level) for value, level in options if value)


def _made_profile(name: str, plugins: Sequence[str], inline: Mapping[str, Any]) -> SubagentProfile:
    try:
        return SubagentProfile(name=name, plugins=list(plugins), **inline)
    except ConfigError as error:
        raise SubagentConfigError(f"inline_config: {error}") from error


def _narrow(profile: SubagentProfile, key: str, value: Any) -> Any:
    """What becomes of one key of an inline_config on top of a profile."""
    match key:
        case "plugins":
            own = None if profile.plugins == "inherit" else profile.plugins
            wider = [name for name in value if own is not None and name not in own]
            if wider:
                raise SubagentConfigError(
                    f"inline_config.plugins: profile '{profile.name}' does not have '{wider[0]}'; with a profile, "
                    f"inline_config may only narrow"
                )
            return tuple(value)
        case "max_turns":
            return min(int(value), profile.max_turns)
        case "timeout_seconds":
            return value if profile.timeout_seconds is None else min(value, profile.timeout_seconds)
        case "budget":
            return _lower(profile.budget, Limits.of(value))
        case "system_instructions":
            return "\n\n".join(text for text in (profile.system_instructions, value) if text)
        case "gc":
            return gc_config_from(value)
        case _:
            return value


def _lower(first: Limits | None, second: Limits) -> Limits:
    if first is None:
        return second
    pairs = {kind: (getattr(first, kind), getattr(second, kind)) for kind in vars(second)}
    return Limits(**{kind: min((v for v in pair if v is not None), default=None) for kind, pair in pairs.items()})
