"""Rights: which plugins and tools a child gets, and whom an agent may spawn; recomputed before every run."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from shared.definitions.profile import SubagentProfile
from shared.errors import SubagentConfigError, SubagentNestingError, unknown_name
from shared.plugin_view import PluginView
from shared.runtime import JaatoRuntime
from shared.session import JaatoSession
from shared.subagents.plan import OWN_PLUGIN, Plan
from shared.tools import Tool

STATE_TOOLS = ("set_shared_state", "get_shared_state", "list_shared_state")


def open_view(runtime: JaatoRuntime, plan: Plan) -> PluginView:
    """The plugins of a child, some of them as instances of its own; whoever opens a view closes it or hands it on."""
    names = [*plan.plugins, OWN_PLUGIN] if plan.may_spawn else list(plan.plugins)
    return runtime.plugin_view(names, plan.plugin_configs)


def allowed_extras(plan: Plan, tools: Sequence[Tool], caller: JaatoSession) -> tuple[Tool, ...]:
    """The shared-state tools that every child has, unless its profile or the host takes them away."""
    profile, registry = plan.profile, caller.runtime.registry
    if plan.may_spawn:
        return ()  # it has the whole plugin
    return tuple(
        tool
        for tool in tools
        if (profile.tools is None or _matches(tool.name, profile.tools))
        and not _matches(tool.name, profile.disallowed_tools)
        and not (registry is not None and registry.is_switched_off(tool.name))
    )


def allowed_tools(plan: Plan, view: PluginView, caller: JaatoSession) -> frozenset[str]:
    """The tools a child may call now: what its profile asks for, of what there is, within what its caller has."""
    profile = plan.profile
    tools = [tool for tool in view.tools() if _suits(tool, plan)]
    names = [tool.name for tool in tools]
    _check_names(plan, names)
    kept = [name for name in names if profile.tools is None or _matches(name, profile.tools)]
    kept = [name for name in kept if not _matches(name, profile.disallowed_tools)]
    if plan.bounded:
        callers = set(caller.tool_names)
        kept = [name for name in kept if name in callers]
    return frozenset(kept)


def _suits(tool: Tool, plan: Plan) -> bool:
    return tool.required_agent is None or tool.required_agent == plan.profile.name


def _check_names(plan: Plan, names: Sequence[str]) -> None:
    """No child is started without the tools its author counted on."""
    for wanted in plan.profile.tools or ():
        if any(fnmatchcase(name, wanted) for name in names) or wanted in STATE_TOOLS:
            continue
        where = f"profile '{plan.label}'" if plan.label else "inline_config"
        raise SubagentConfigError(f"{where}, tools: {unknown_name('tool', wanted, names)}")


def require_allowed_agent(profile: SubagentProfile | None, label: str | None) -> None:
    """Refuse a spawn that the calling profile's `allow_agents` does not cover."""
    if profile is not None and not _matches(label or "_inherited", profile.allow_agents):
        raise SubagentNestingError(
            f"profile '{profile.name}' may not spawn '{label or 'an inline subagent'}'; "
            f"it may spawn: {', '.join(profile.allow_agents) or 'nothing'}"
        )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
