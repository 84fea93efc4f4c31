"""Names of tools that are known only when an agent is started: given where they exist, named where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from shared.definitions.profile import SubagentProfile
from shared.definitions.source import one_line
from shared.definitions.tool_names import plugin_of
from shared.errors import SubagentConfigError, unknown_name

_MCP = "mcp"
_ANY_MCP = "*__*"
_NAMES, _NAME_CHARS = 20, 80  # that a note shows


def usable_profile(profile: SubagentProfile, owners: Mapping[str, str]) -> SubagentProfile:
    """The profile with what an agent of another host names, as far as there is a tool of that name.

    `owners` has the plugin of every tool that there is. What is left in `unmapped_tools` is to be
    reported. Raises SubagentConfigError if none of its tools exist, or one that it denies is not known.
    """
    if not profile.unmapped_tools and not profile.unmapped_denied:
        return profile
    found = {name: _matching(name, owners) for name in profile.unmapped_tools}
    tools = tuple(dict.fromkeys((*(profile.tools or ()), *(tool for each in found.values() for tool in each))))
    missing = tuple(name for name, each in found.items() if not each)
    if missing and not tools:
        raise SubagentConfigError(
            f"profile '{profile.name}': none of its tools is to be had here: {', '.join(missing)}; "
            f"change its tools, or add a plugin that has them"
        )
    for denied in profile.unmapped_denied:
        if not _matching(denied, owners):
            known = unknown_name("tool", denied, list(owners))
            raise SubagentConfigError(f"profile '{profile.name}' denies a tool that does not exist: {known}")
    plugins = profile.plugins
    if not isinstance(plugins, str):
        plugins = tuple(dict.fromkeys((*plugins, *(owners[tool] for each in found.values() for tool in each))))
    return replace(
        profile,
        plugins=plugins,
        tools=profile.tools if profile.tools is None else tools,
        disallowed_tools=(*profile.disallowed_tools, *profile.unmapped_denied),
        unmapped_tools=missing,
        unmapped_denied=(),
    )


def tool_notes(profile: SubagentProfile) -> tuple[str, ...]:
    """What the one who spawns a usable profile should know: the tools that it has to do without."""
    names = [one_line(name)[:_NAME_CHARS] for name in profile.unmapped_tools]
    if not names:
        return ()
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return (f"it works without these tools, which are not to be had here: {', '.join(names[:_NAMES])}{more}",)


def _matching(name: str, owners: Mapping[str, str]) -> list[str]:
    """The tools of a name or pattern; ours are found by the table alone, so that no pattern reaches them."""
    others = [tool for tool in owners if plugin_of(tool) is None]
    if name == _ANY_MCP:
        return [tool for tool in others if owners[tool] == _MCP]
    if name in others:
        return [name]
    return [tool for tool in others if any(map(str.isalnum, name)) and fnmatchcase(tool, name)]
