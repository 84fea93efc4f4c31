"""Pool: with `reuse: true` a later spawn of a profile goes on with the history of an agent that is idle.

An agent is used again below the same parent only, by a spawn that would make the same agent, and never after
a run that failed or was stopped. One that is busy stays alone, and so does one whose last result nobody has read
yet, for the next would take its place: the spawn then makes another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from shared.folder_plugins.scoping import pool_key
from shared.skills.preload import Preloaded
from shared.subagents.agent import Subagent
from shared.subagents.plan import Plan
from shared.subagents.result import Status
from shared.subagents.run import Run
from shared.subagents.seat import Caller

_USABLE = (Status.COMPLETED, Status.PARTIAL)


def key_of(plan: Plan) -> str | None:
    """The pool of a plan's agents: `plugin-{plugin}-{agent}` or `agent-{name}`; None if they are not pooled."""
    profile = plan.profile
    return pool_key(profile.name, plugin=profile.source.plugin) if profile.reuse and plan.label is not None else None


def resume_pooled(
    caller: Caller,
    plan: Plan,
    tools: frozenset[str],
    begin: Callable[[Subagent], Run],
    *,
    name: str | None,
    task: tuple[str, ...],
    max_children: int,
) -> Run | None:
    """Another run of an idle agent of the pool; None if a new agent is needed, or an equal task is under way.

    `tools` are what a new agent would have: one that has lost some of them is not used again. `task` is what makes
    a second spawn a duplicate, from now on of this agent. Raises SubagentNestingError over a limit.
    """
    if (key := key_of(plan)) is None:
        return None
    for agent in _idle(caller, key, plan):
        if name not in (None, agent.name) or not tools <= agent.tools:
            continue
        run = caller.tree.reuse(agent, partial(begin, agent), key=task, max_children=max_children)
        if run is not None:
            return run
    return None


def _idle(caller: Caller, key: str, plan: Plan) -> Iterator[Subagent]:
    for agent in caller.tree.children(caller.seat.id):
        result = agent.run.result
        if agent.closed or agent.cleanup or agent.session is None or not agent.run.done.is_open or result is None:
            continue
        if agent.run.background and not agent.run.told:
            continue
        if result.status in _USABLE and key_of(agent.plan) == key and _is_same(agent.plan, plan):
            yield agent


def _is_same(first: Plan, second: Plan) -> bool:
    """Whether two plans make the same agent; the tools of preloaded skills are made anew for each."""
    bare = [replace(plan, skills=Preloaded()) for plan in (first, second)]
    return bare[0] == bare[1] and first.skills.text == second.skills.text
