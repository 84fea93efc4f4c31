"""Preloading: the bodies and tools of the skills that a profile asks for, ready when its agent starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.runtime import JaatoRuntime
from shared.session import JaatoSession
from shared.skills.activation import Activations
from shared.skills.config import SkillConfig
from shared.skills.guards import guards_for
from shared.skills.info import Skill
from shared.skills.manager import SkillManager
from shared.skills.plugin_skills import PluginSkills
from shared.tools import Tool

PLUGIN = "skills"


@dataclass(frozen=True)
class Preloaded:
    """What an agent gets at its start: a text for its system prompt, and tools."""

    text: str = ""
    tools: tuple[Tool, ...] = ()
    guarded: tuple[Skill, ...] = ()  # those that forbid tools or have hooks

    def take_up(self, session: JaatoSession) -> None:
        """Enforce what the skills forbid and run their hooks, for one agent as long as its session lives."""
        if not self.guarded:
            return
        guards = guards_for(session.runtime)
        for skill in self.guarded:
            guards.begin(skill, session.agent_id, until=session.cancel_token)


def preload_for(runtime: JaatoRuntime, names: Sequence[str]) -> Preloaded:
    """Load skills for an agent of a runtime: from its plugin `skills`, or its workspace if that is not exposed."""
    registry = runtime.registry
    plugin = registry.get_plugin(PLUGIN) if registry is not None and registry.is_exposed(PLUGIN) else None
    manager = getattr(plugin, "manager", None)
    if not isinstance(manager, SkillManager):
        trusted = bool(runtime.trust_workspace)
        config = SkillConfig(workspace=runtime.workspace, trust_workspace=trusted)
        brought = PluginSkills(lambda: runtime.registry)
        manager = SkillManager(config, brought=brought, still_trusted=runtime.is_trusted_now)
    return preload(manager, names)


def preload(manager: SkillManager, names: Sequence[str], *, plugin: str = PLUGIN) -> Preloaded:
    """Load skills for an agent of its own; raises SkillNotFoundError for one that does not exist.

    Nothing is activated in the manager: the tools belong to that agent alone.
    """
    active = Activations(namespaced=manager.config.namespace_tools)
    blocks, guarded = [], []
    for name in dict.fromkeys(names):
        skill, text = manager.render(name)
        active.begin(skill)
        if skill.info.is_guarded:
            guarded.append(skill)
        blocks.append(f'<skill name="{skill.name}">\n{text.strip()}\n</skill>')
    tools = tuple(Tool.from_function(each, plugin=plugin) for each in active.tools())
    return Preloaded("\n\n".join(blocks), tools, tuple(guarded))
