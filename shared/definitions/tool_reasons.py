"""Why each tool of a profile is there or missing, as far as can be said without starting an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from shared.definitions.profile import SubagentProfile
from shared.definitions.usable_tools import usable_profile
from shared.errors import SubagentConfigError


@dataclass(frozen=True)
class ToolReason:
    """One tool: whether an agent of the profile gets it, and why."""

    tool: str
    given: bool
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def tool_reasons(profile: SubagentProfile, owners: Mapping[str, str]) -> list[ToolReason]:
    """The story of every tool that a profile asks for or would get; `owners` has the plugin of each tool."""
    try:
        usable = usable_profile(profile, owners)
    except SubagentConfigError as error:
        return [ToolReason(name, False, str(error)) for name in (*profile.unmapped_tools, *profile.unmapped_denied)]
    reasons = [_named(name, usable, owners) for name in usable.tools or () if name not in owners]
    if isinstance(usable.plugins, str):
        if usable.tools is None:
            reasons.append(
                ToolReason("*", True, "all tools of the caller: none are named, and its plugins are inherited")
            )
        reasons += [ToolReason(name, False, "is denied (disallowed_tools)") for name in usable.disallowed_tools]
    for tool, plugin in owners.items():
        asked = usable.tools is not None and any(fnmatchcase(tool, pattern) for pattern in usable.tools)
        if asked or (usable.tools is None and not isinstance(usable.plugins, str) and plugin in usable.plugins):
            reasons.append(_offered(tool, plugin, usable, asked=asked))
    return reasons + [ToolReason(name, False, _absent(name)) for name in usable.unmapped_tools]


def _absent(name: str) -> str:
    if "(" in name:
        return "allows a part of what a tool does, which cannot be enforced here"
    return "there is no tool of that name here"


def _named(name: str, profile: SubagentProfile, owners: Mapping[str, str]) -> ToolReason:
    """A name or pattern in `tools` that is itself no tool."""
    if any(fnmatchcase(tool, name) for tool in owners):
        return ToolReason(name, True, "is a pattern: what it stands for is listed")
    return ToolReason(name, False, _absent(name))


def _offered(tool: str, plugin: str, profile: SubagentProfile, *, asked: bool) -> ToolReason:
    denying = next((pattern for pattern in profile.disallowed_tools if fnmatchcase(tool, pattern)), None)
    if denying is not None:
        return ToolReason(tool, False, f"is denied (disallowed_tools: {denying})")
    if not isinstance(profile.plugins, str) and plugin not in profile.plugins:
        return ToolReason(tool, False, f"belongs to the plugin '{plugin}', which 'plugins' does not name")
    why = "is asked for (tools)" if asked else "no tools are named, so all of its plugin are given"
    return ToolReason(tool, True, f"{why}, plugin '{plugin}'")
