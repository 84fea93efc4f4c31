"""Forking: a skill that runs as a subagent, through the tool that every spawn goes through."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from shared.definitions.agent_models import model_and_provider
from shared.errors import SkillValidationError
from shared.runtime import JaatoRuntime
from shared.session import JaatoSession
from shared.skills.guards import guards_for
from shared.skills.info import Skill, SkillInfo
from shared.subagents.seat import KEY, Seat
from shared.toolbox import Toolbox
from shared.tools import Tool, ToolContext
from shared.types import FunctionCall

SPAWN = "spawn_subagent"


def profile_for(info: SkillInfo, runtime: JaatoRuntime | None) -> tuple[bool, str | None]:
    """Whether a skill runs as a subagent, and under which profile; an untrusted one never does."""
    if not info.is_trusted:
        return False, None
    if info.forks:
        return True, info.agent or _known(runtime, info.affinity)
    profile = _known(runtime, info.affinity)
    return profile is not None, profile


def fork(
    runtime: JaatoRuntime | None, skill: Skill, text: str, profile: str | None, context: ToolContext
) -> dict[str, Any]:
    """Run a skill's text as the task of a subagent and return its result, for the session that calls.

    The call takes the way of every tool call: permission, hooks and limits apply as if the model had made it.
    What the skill forbids, and its own hooks, hold for that subagent and all below it.
    """
    info = skill.info
    tool = _spawn_tool(runtime)
    session = context.session or (runtime.main_session if runtime is not None else None)
    if runtime is None or tool is None or session is None or SPAWN not in session.tool_names:
        raise SkillValidationError(
            f"skill '{info.name}' runs as a subagent, which this agent cannot spawn: it needs the plugin 'subagent'"
        )
    arguments: dict[str, Any] = {"task": text, "name": info.name[:80]}
    if profile is not None:
        arguments["profile"] = profile
    elif model := _model(info, session.provider_name):
        arguments["inline_config"] = {"model": model}
    toolbox = Toolbox([tool], gate=runtime.broker, hooks=runtime.hooks, profile=session.profile)
    call = FunctionCall(context.call_id or f"skill-{info.name}", SPAWN, arguments)
    with guarding(skill, session, arguments["name"]):
        result = toolbox.run(call, context)
    if isinstance(result.result, dict):
        return {"skill": info.name, **result.result}
    if result.is_error:
        raise SkillValidationError(str(result.result).removeprefix("Error: "))
    return {"skill": info.name, "response": result.result}


def guarding(skill: Skill, session: JaatoSession, name: str) -> AbstractContextManager[None]:
    """While it lasts, what a skill forbids and its hooks hold for the subagent of that name below a session."""
    return guards_for(session.runtime).standing(skill, partial(_is_forked, session, name))


def _is_forked(session: JaatoSession, name: str, agent_id: str | None) -> bool:
    """Whether an agent is the subagent of that name below a session, or below one of those."""
    seat = session.extras.get(KEY)
    agent = seat.tree.get(agent_id) if isinstance(seat, Seat) and agent_id is not None else None
    if seat is None or agent is None:
        return False
    return any((each.parent_id, each.name) == (seat.id, name) for each in (agent, *seat.tree.above(agent)))


def _model(info: SkillInfo, provider: str) -> str | None:
    """The model that a skill asks for, if the caller's provider has such; None to inherit."""
    found = model_and_provider(info.model) if info.model else None
    return found[0] if found is not None and found[1] in (None, provider) else None


def _spawn_tool(runtime: JaatoRuntime | None) -> Tool | None:
    if runtime is None or runtime.registry is None:
        return None
    return next((tool for tool in runtime.registry.tools() if tool.name == SPAWN), None)


def _known(runtime: JaatoRuntime | None, profile: str | None) -> str | None:
    """A profile that exists here; skills written for another host name agents that do not."""
    if profile is None or runtime is None or runtime.registry is None:
        return None
    tool = _spawn_tool(runtime)
    plugin = runtime.registry.get_plugin(tool.plugin) if tool is not None else None
    catalogue = getattr(plugin, "catalogue", None)
    return profile if catalogue is not None and catalogue.find(profile) is not None else None
