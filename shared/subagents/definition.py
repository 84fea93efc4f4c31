"""A subagent as host code defines it: a profile, or a mapping of its fields, with functions among its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import profile_from
from shared.errors import ConfigError, PluginError, SubagentConfigError
from shared.plugin import Plugin
from shared.registry import PluginRegistry
from shared.subagents.known_tools import known_tools
from shared.tools import Tool

Config = SubagentProfile | Mapping[str, Any]


@dataclass(frozen=True)
class Definition:
    """A profile, and functions of the host that its agents may call besides the tools of its plugins."""

    profile: SubagentProfile
    functions: tuple[Tool, ...] = ()
    key: str = ""  # the same for the same functions

    @staticmethod
    def of(config: Config) -> Definition:
        """What a host gave; raises SubagentConfigError with all that is wrong."""
        if isinstance(config, SubagentProfile):
            return Definition(config)
        if not isinstance(config, Mapping):
            raise SubagentConfigError(
                f"expected a SubagentProfile or a dict of its fields, got {type(config).__name__}"
            )
        name = config.get("name")
        if not isinstance(name, str) or not name.strip():
            raise SubagentConfigError("a subagent needs a name: give 'name', by which tasks are delegated to it")
        tools = config.get("tools")
        given: Sequence[Any] = tools if isinstance(tools, list | tuple) else ()
        called = [each for each in given if callable(each)]
        try:
            made = {id(each): Tool.from_function(each) for each in called}
            names = [made[id(each)].name if callable(each) else each for each in given]
            profile = profile_from(name, _fields(config, names if given else tools))
        except (ConfigError, PluginError) as error:
            raise SubagentConfigError(str(error)) from error
        return Definition(profile, tuple(made.values()), "_".join(f"{each:x}" for each in made))

    def settled(self, registry: PluginRegistry) -> SubagentProfile:
        """The profile with the plugins of the tools it names, where it names no plugins itself."""
        profile, plugins = self.profile, self.profile.plugins
        if isinstance(plugins, str):
            return profile
        found = list(plugins)
        if self.functions:
            own = FunctionTools(f"{profile.name}_functions_{self.key}", self.functions)
            if own.name not in registry.list_available():
                registry.register_plugin(own)
            found.append(own.name)
        if profile.tools and not plugins:
            owners = known_tools(registry)
            found += [owners[name] for name in profile.tools if name in owners]
        return profile if found == list(plugins) else replace(profile, plugins=tuple(dict.fromkeys(found)))


class FunctionTools(Plugin):
    """Functions of the host as a plugin of their own: never exposed, only given to the agents that name them."""

    def __init__(self, name: str, functions: Sequence[Tool]) -> None:
        super().__init__()
        self.name, self._functions = name, tuple(functions)

    def renew(self) -> FunctionTools:
        """Another instance, for another session."""
        return FunctionTools(self.name, self._functions)

    def tools(self) -> list[Tool]:
        """One tool for each function."""
        return [replace(each, plugin=self.name) for each in self._functions]


def _fields(config: Mapping[str, Any], tools: Any) -> dict[str, Any]:
    """The fields under the names that a profile has for them; None is the same as leaving one out."""
    fields = {**config, "tools": tools}
    if "system_prompt" in fields and "system_instructions" not in fields:
        fields["system_instructions"] = fields.pop("system_prompt")
    return {key: value for key, value in fields.items() if value is not None}
