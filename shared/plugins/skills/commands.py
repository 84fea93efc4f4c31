"""SkillCommands: what a person can type — `skills`, `install`, and `/name args` for each skill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from shared.errors import SkillError, SkillValidationError, ToolError, unknown_name
from shared.plugin import CommandCompletion, CommandParameter, Executor, UserCommand
from shared.skills.info import SkillInfo
from shared.skills.requirements import missing
from shared.tools import ToolContext

if TYPE_CHECKING:
    from shared.plugins.skills.plugin import SkillsPlugin

ACTIONS = ("list", "show", "trust", "distrust", "deactivate", "validate")
_SKILLS = UserCommand(
    "skills",
    "List skills; or show, trust, distrust, deactivate or validate one",
    parameters=(CommandParameter("action", f"One of {', '.join(ACTIONS)}"), CommandParameter("name", "A skill")),
)
_INSTALL = UserCommand(
    "install",
    "Install a skill from a folder, an archive, an address or ClawHub",
    parameters=(
        CommandParameter("source", "Where it is", required=True),
        CommandParameter("option", "'replace' to replace one of the same name"),
    ),
)


class SkillCommands:
    """The commands of one plugin, as its skills are now."""

    def __init__(self, plugin: SkillsPlugin, context: Callable[[], ToolContext]) -> None:
        self._plugin, self._context = plugin, context

    def all(self) -> list[UserCommand]:
        """The commands, the fixed ones first so that no skill can stand in for them."""
        return [_SKILLS, _INSTALL, *map(_command, self._invocable())]

    def executors(self) -> dict[str, Executor]:
        """What each command does."""
        found: dict[str, Executor] = {info.name: self._runner(info.name) for info in self._invocable()}
        return {**found, "skills": self._skills, "install": self._install}

    def completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]:
        """Actions and names of skills for `skills`."""
        if command != "skills" or len(args) > 2:
            return []
        typed = args[-1] if args else ""
        options = ACTIONS if len(args) < 2 else [info.name for info in self._plugin.manager.list()]
        return [CommandCompletion(each) for each in options if each.startswith(typed)]

    def _invocable(self) -> list[SkillInfo]:
        """Skills that people may call here, by a name that can be typed."""
        taken = {_SKILLS.name, _INSTALL.name, "skill", "skill_install"}
        return [
            info
            for info in self._plugin.manager.list()
            if info.user_invocable and info.name not in taken and " " not in info.name and not missing(info.requires)
        ]

    def _runner(self, name: str) -> Executor:
        def run(arguments: str = "") -> Any:
            try:
                answer = self._plugin.use(name, str(arguments), self._context(), invoked_by="user")
            except SkillError as error:
                raise ToolError(str(error)) from None
            return answer.get("instructions", answer)

        return run

    def _install(self, source: str = "", option: str = "") -> str:
        if option not in ("", "replace"):
            raise ToolError(f"install: {unknown_name('option', str(option), ['replace'])}")
        try:
            done = self._plugin.install(str(source), replace=option == "replace")
        except SkillError as error:
            raise ToolError(str(error)) from None
        lines = [f"installed '{done.info.name}' in {done.folder} ({done.files} files); it is not trusted yet:"]
        lines += [f"  {warning.code}: {warning.text}" for warning in done.warnings]
        return "\n".join([*lines, f"look at it, then type: skills trust {done.info.name}"])

    def _skills(self, action: str = "list", name: str = "") -> str:
        manager, wanted = self._plugin.manager, str(name)
        if action not in ACTIONS:
            raise ToolError(f"skills: {unknown_name('action', str(action), ACTIONS)}")
        if action == "list":
            return listing(manager.list(), active=manager.active)
        if not wanted:
            raise ToolError(f"skills {action}: name a skill")
        try:
            return self._about(str(action), wanted)
        except SkillError as error:
            raise ToolError(str(error)) from None

    def _about(self, action: str, name: str) -> str:
        manager = self._plugin.manager
        if action == "show":
            skill, text = manager.render(name)
            return f"{describe(skill.info)}\n\n{text}"
        if action == "validate":
            skill, _ = manager.render(name)
            if not skill.info.folder:
                raise SkillValidationError(f"skill '{name}' was written in code: there is no file to check")
            return "\n".join(map(str, manager.validate(skill.info.folder).problems)) or f"{name}: nothing to complain"
        {"trust": manager.trust, "distrust": manager.distrust, "deactivate": self._plugin.deactivate}[action](name)
        return f"{name}: {action} done"


def _command(info: SkillInfo) -> UserCommand:
    hint = info.argument_hint or "What the skill is applied to"
    parameters = (CommandParameter("arguments", hint, capture_rest=True),)
    text = " ".join(info.description.split())
    return UserCommand(info.name, text if len(text) <= 120 else f"{text[:119]}…", True, parameters)


def listing(skills: Sequence[SkillInfo], *, active: Sequence[str] = ()) -> str:
    """All skills, one line each; what cannot be used says why."""
    return "\n".join(f"{'* ' if info.name in active else '  '}{describe(info)}" for info in skills) or "no skills"


def describe(info: SkillInfo) -> str:
    """A skill in one line."""
    marks = [str(info.scope), str(info.trust_level)]
    if info.disable_model_invocation:
        marks.append("for people only")
    if not info.user_invocable:
        marks.append("for models only")
    if reason := missing(info.requires):
        marks.append(f"unavailable: {reason}")
    return f"{info.name} ({', '.join(marks)}): {' '.join(info.description.split())[:160]}"
