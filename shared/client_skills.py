"""What a client offers for skills in host code; made on first use."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import SkillNotFoundError, SubagentError, unknown_name
from shared.on_demand import plugin_on_demand, registry_of
from shared.skills.info import Skill, SkillInfo

if TYPE_CHECKING:
    from shared.plugins.skills.plugin import SkillsPlugin
    from shared.registry import PluginRegistry
    from shared.runtime import JaatoRuntime
    from shared.session import JaatoSession
    from shared.skills.manager import SkillManager
    from shared.subagents.manager import SubagentManager

AnySkill = Skill | SkillInfo | Path | str
PLUGIN = "skills"


class SkillFront:
    """The skills of the main session: those in folders, and those that host code brings along."""

    _skills: Sequence[AnySkill] = ()
    _skill_dirs: Sequence[str | Path] = ()

    if TYPE_CHECKING:

        def get_session(self) -> JaatoSession: ...
        def get_runtime(self) -> JaatoRuntime: ...
        @property
        def subagent_manager(self) -> SubagentManager: ...

    @property
    def skill_manager(self) -> SkillManager:
        """The skills that this client knows."""
        return self._skills_plugin().manager

    def register_skill(self, skill: AnySkill) -> SkillInfo:
        """Add a skill, an object or the folder of its SKILL.md; the model can use it from its next turn on."""
        plugin, runtime = self._skills_plugin(), self.get_runtime()
        _expose(registry_of(runtime))
        info = plugin.manager.register(skill)
        self._skills = [*self._skills, *(each for each in plugin.manager.registered() if each.name == info.name)]
        if runtime.main_session is not None:
            runtime.main_session.refresh_tools()
        return info

    def get_skill(self, name: str) -> Skill | None:
        """A skill with its body; None if there is none of that name."""
        return self.skill_manager.get(name)

    def list_skills(self) -> list[SkillInfo]:
        """What is known of all skills, by name."""
        return self.skill_manager.list()

    def invoke_skill(self, name: str, *args: str) -> str:
        """Put a skill to use: its instructions with the arguments filled in, or the answer of the subagent it runs as.

        One argument is taken as it is written; of several, those with spaces are kept together.
        """
        from shared.plugins.skills.forking import guarding, profile_for

        arguments = args[0] if len(args) == 1 else " ".join(map(_quoted, args))
        plugin = self._skills_plugin()
        skill, text = plugin.manager.render(name, arguments)
        forks, profile = profile_for(skill.info, self.get_runtime())
        if not forks:
            return plugin.manager.activate(name, arguments)
        agent_name = f"{name[:70]}-{secrets.token_hex(4)}"
        with guarding(skill, self.get_session(), agent_name):
            result = self.subagent_manager.delegate_sync(profile, text, agent_name=agent_name)
        if not result.success:
            ended = f"{result.status.value}: {result.error}"
            raise SubagentError(f"skill '{name}' ran as a subagent, which ended as {ended}")
        return result.response

    def _skills_plugin(self) -> SkillsPlugin:
        runtime = self.get_runtime()
        if runtime.registry is None:
            self._introduce_skills(registry_of(runtime))
        plugin: SkillsPlugin = plugin_on_demand(runtime, PLUGIN)  # type: ignore[assignment]
        return plugin

    def _introduce_skills(self, registry: PluginRegistry) -> None:
        """Give a registry what the client was made with; the plugin is exposed, or nobody could use it."""
        if not self._skills and not self._skill_dirs:
            return
        _expose(registry)
        config = registry.config_of(PLUGIN)
        folders = [*config.get("extra_dirs", ()), *(str(Path(each).absolute()) for each in self._skill_dirs)]
        registry.expose_tool(PLUGIN, {**config, "extra_dirs": list(dict.fromkeys(folders))})
        manager: SkillManager = registry.get_plugin(PLUGIN).manager  # type: ignore[union-attr]
        self._skills = [_introduced(manager, each) for each in self._skills]


def _expose(registry: PluginRegistry) -> None:
    if PLUGIN not in registry.list_available():
        from shared.plugins.skills import create_plugin

        registry.register_plugin(create_plugin())
    registry.expose_tool(PLUGIN)


def _introduced(manager: SkillManager, skill: AnySkill) -> AnySkill:
    """The skill as it can be given to another manager: one from a folder has been read by then."""
    registered = {each.name: each for each in manager.registered()}
    if isinstance(skill, Skill | SkillInfo) and skill.name in registered:
        return skill
    if isinstance(skill, str) and not Path(skill).exists():
        if manager.get(skill) is None:
            known = [info.name for info in manager.list()]
            raise SkillNotFoundError(unknown_name("skill", skill, known, hint="Or give the folder of a SKILL.md."))
        return skill
    name = manager.register(skill).name
    return next(each for each in manager.registered() if each.name == name)


def _quoted(text: str) -> str:
    return f'"{text}"' if not text or any(map(str.isspace, text)) else text
