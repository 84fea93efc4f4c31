"""Rights: which plugins and tools a child gets, and whom an agent may spawn; recomputed before every run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from shared.definitions.profile import SubagentProfile
from shared.errors import ConfigError, PluginError, SubagentConfigError, SubagentNestingError, unknown_name
from shared.plugin_view import PluginView
from shared.registry import PluginRegistry
from shared.runtime import JaatoRuntime
from shared.session import JaatoSession
from shared.subagents.known_tools import known_tools
from shared.subagents.plan import OWN_PLUGIN, SPAWN_PLUGINS, Plan
from shared.tools import Tool

log = logging.getLogger(__name__)

STATE_TOOLS = ("set_shared_state", "get_shared_state", "list_shared_state")
_GLOB = frozenset("*?[")


def open_view(runtime: JaatoRuntime, plan: Plan) -> PluginView:
    """The plugins of a child, some of them as instances of its own; whoever opens a view closes it or hands it on."""
    names = [*plan.plugins, OWN_PLUGIN] if plan.may_spawn else list(plan.plugins)
    try:
        view = runtime.plugin_view(names, plan.plugin_configs)
    except (ConfigError, PluginError) as error:
        raise SubagentConfigError(f"{_where(plan)}: {error}") from error
    try:
        view.settle()  # what a child may call is fixed now: tools that come later are not among it
    except BaseException:
        view.close()
        raise
    return view


def tools_of_caller(session: JaatoSession) -> frozenset[str]:
    """The tools that a session may call at this moment, whatever it could call when its turn began."""
    spec, registry = session.spec, session.runtime.registry
    own = [tool for tool in session.view.tools() if spec.tool_names is None or tool.name in spec.tool_names]
    extra = [tool for tool in spec.extra_tools if registry is None or not registry.is_switched_off(tool.name)]
    return frozenset(tool.name for tool in (*own, *extra) if tool.required_agent in (None, spec.profile))


def allowed_tools(plan: Plan, view: PluginView, caller: JaatoSession) -> frozenset[str]:
    """The tools a child may call now: what its profile asks for, of what there is, within what its caller has."""
    asked = [tool for tool in view.tools() if _suits(tool, plan) and _is_asked(plan.profile, tool.name)]
    if not plan.bounded:
        return frozenset(tool.name for tool in asked)
    callers = tools_of_caller(caller)
    return frozenset(tool.name for tool in asked if tool.name in callers or _is_its_own(tool, plan))


def allowed_extras(plan: Plan, tools: Sequence[Tool], caller: JaatoSession) -> tuple[Tool, ...]:
    """The shared-state tools that every child has, unless its profile, its caller or the host takes them away."""
    if plan.may_spawn:
        return ()  # it has the whole plugin
    return _permitted(plan, tools, caller)


def allowed_skill_tools(plan: Plan, caller: JaatoSession) -> tuple[Tool, ...]:
    """The tools of the skills that a profile preloads; a bounded child gets none that its caller lacks."""
    return _permitted(plan, plan.skills.tools, caller) if plan.skills.tools else ()


def _permitted(plan: Plan, tools: Sequence[Tool], caller: JaatoSession) -> tuple[Tool, ...]:
    """Those of the tools which come besides plugins that neither profile, host nor a bounded caller takes away."""
    registry = caller.runtime.registry
    callers = tools_of_caller(caller) if plan.bounded else None
    return tuple(
        tool
        for tool in tools
        if _is_asked(plan.profile, tool.name)
        and not (registry is not None and registry.is_switched_off(tool.name))
        and (callers is None or tool.name in callers)
    )


def require_tools(plan: Plan, view: PluginView, allowed: frozenset[str], registry: PluginRegistry | None) -> None:
    """Refuse a child that would lack a tool its author counted on, or have one its author meant to deny."""
    found = view.tools()
    besides = (*STATE_TOOLS, *(tool.name for tool in plan.skills.tools))
    names = [tool.name for tool in found]
    _require_no_clash(plan, found)
    for wanted in plan.profile.tools or ():
        known = any(fnmatchcase(name, wanted) for name in (*names, *besides))
        usable = wanted in allowed or wanted in besides or _is_glob(wanted)
        if not (known and usable) and not _matches(wanted, plan.profile.disallowed_tools):
            _refuse(plan, wanted, found, registry)
    for denied in plan.profile.disallowed_tools:
        known_names = [*names, *besides]
        if not _is_glob(denied) and denied not in known_names and denied not in known_tools(registry):
            raise SubagentConfigError(f"{_where(plan)}, disallowed_tools: {unknown_name('tool', denied, known_names)}")


def require_plain_name(name: str | None) -> None:
    """Refuse a name that would look like something else where people see who asks for permission."""
    if name is not None and (not name.strip() or not name.isprintable() or "\u203a" in name):
        raise SubagentConfigError(
            f"name: expected plain text on one line without '\u203a', got {name[:40]!a}: it is shown to people"
        )


def require_allowed_agent(profile: SubagentProfile | None, label: str | None) -> None:
    """Refuse a spawn that the calling profile's `allow_agents` does not cover."""
    if profile is not None and not _matches(label or "_inherited", profile.allow_agents):
        raise SubagentNestingError(
            f"profile '{profile.name}' may not spawn '{label or 'an inline subagent'}'; "
            f"it may spawn: {', '.join(profile.allow_agents) or 'nothing'}"
        )


def deepest(general: int, above: Iterable[SubagentProfile]) -> int:
    """How deep agents may nest below a chain of profiles: the settings' limit, or the lowest of theirs."""
    return min([general, *(profile.max_depth for profile in above if profile.max_depth is not None)])


def _suits(tool: Tool, plan: Plan) -> bool:
    return tool.required_agent is None or tool.required_agent == plan.profile.name


def _is_its_own(tool: Tool, plan: Plan) -> bool:
    """A tool bound to this agent, which its caller cannot have; a profile that nobody vouched for may bear any name."""
    return plan.vouched and tool.required_agent == plan.profile.name


def _is_asked(profile: SubagentProfile, name: str) -> bool:
    """Whether a profile wants a tool; what it denies it never wants."""
    wanted = profile.tools is None or _matches(name, profile.tools)
    return wanted and not _matches(name, profile.disallowed_tools)


def _refuse(plan: Plan, wanted: str, found: Sequence[Tool], registry: PluginRegistry | None) -> None:
    """Say why a tool that the profile names is not to be had."""
    tool = next((each for each in found if each.name == wanted), None)
    if tool is not None and not _suits(tool, plan):
        why = f"tool '{wanted}' may only be called by the agent '{tool.required_agent}'"
    elif tool is not None:
        why = f"tool '{wanted}' is not among those of its caller, and it cannot have more"
    elif registry is not None and registry.is_switched_off(wanted):
        why = f"tool '{wanted}' is switched off here"
    elif (owner := known_tools(registry).get(wanted)) in SPAWN_PLUGINS and owner in plan.profile.plugins:
        return  # deep down an agent cannot spawn: it works without these
    else:
        why = unknown_name("tool", wanted, [each.name for each in found])
    raise SubagentConfigError(f"{_where(plan)}, tools: {why}")


def _require_no_clash(plan: Plan, tools: Sequence[Tool]) -> None:
    owners: dict[str, str] = {} if plan.may_spawn else dict.fromkeys(STATE_TOOLS, OWN_PLUGIN)
    for tool in tools:
        if (other := owners.setdefault(tool.name, tool.plugin)) != tool.plugin:
            raise SubagentConfigError(
                f"{_where(plan)}: the plugins '{other}' and '{tool.plugin}' both have a tool '{tool.name}': "
                f"give it only one of them"
            )


def _where(plan: Plan) -> str:
    return f"profile '{plan.label}'" if plan.label else "inline_config"


def _is_glob(text: str) -> bool:
    return not _GLOB.isdisjoint(text)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
