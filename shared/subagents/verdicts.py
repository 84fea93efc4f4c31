"""Verdicts: which tools a child gets, remembered for as long as neither the plugins nor its caller change."""

from __future__ import annotations

from typing import NamedTuple

from shared.plugin_view import PluginView
from shared.session import JaatoSession
from shared.subagents.plan import Plan
from shared.subagents.rights import allowed_extras, allowed_tools, require_tools
from shared.tools import Tool

KEPT = 256


class _Case(NamedTuple):
    """What a verdict depends on; objects by identity, and kept, so that no other can take their place."""

    profile: int
    plugins: tuple[str, ...]
    bounded: bool
    vouched: bool
    may_spawn: bool
    caller: int
    view: int


class Verdicts:
    """Decides what a child may call. A parent that spawns fifty equal children has it worked out once."""

    def __init__(self, child_tools: tuple[Tool, ...]) -> None:
        self._child_tools = child_tools
        self._version = -1
        self._known: dict[_Case, tuple[frozenset[str], tuple[object, ...]]] = {}

    def decide(self, plan: Plan, view: PluginView, caller: JaatoSession) -> frozenset[str]:
        """The tools that the child may ever call; raises if it would lack one its author counted on."""
        if not (view.shares_all and caller.view.shares_all):  # instances of their own have tools of their own
            return self._decided(plan, view, caller)
        version = caller.runtime.tools_version
        if version != self._version or len(self._known) > KEPT:
            self._known, self._version = {}, version
        known = self._known
        case = _Case(
            id(plan.profile), plan.plugins, plan.bounded, plan.vouched, plan.may_spawn, id(caller.spec), id(caller.view)
        )
        found = known.get(case)
        if found is None:
            found = self._decided(plan, view, caller), (plan.profile, caller.spec, caller.view)
            if caller.runtime.tools_version == version:
                known[case] = found
        return found[0]

    def _decided(self, plan: Plan, view: PluginView, caller: JaatoSession) -> frozenset[str]:
        tools = allowed_tools(plan, view, caller)
        require_tools(plan, view, tools, caller.runtime.registry)
        extras = allowed_extras(plan, self._child_tools, caller)
        return tools | {tool.name for tool in extras}
