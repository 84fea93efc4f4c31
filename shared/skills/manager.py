"""SkillManager: the public front of skills — find, register, activate, validate."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from shared.definitions.source import Problem
from shared.errors import SkillLoadError, SkillNotFoundError, SkillParseError, SkillValidationError, unknown_name
from shared.skills.activation import Activations
from shared.skills.arguments import fill_in
from shared.skills.config import SkillConfig
from shared.skills.files import SKILL_FILE
from shared.skills.info import Function, Skill, SkillInfo, SkillScope, TrustLevel
from shared.skills.library import SkillLibrary
from shared.skills.reader import read_skill, unsafe_name
from shared.skills.requirements import missing
from shared.skills.trust import TrustRecord
from shared.skills.validation import ValidationResult, validate

Invoker = Literal["code", "user", "model"]


class SkillManager:
    """Finds skills, loads what is asked for, and keeps track of those in use.

    `agent_tools` says which tools the agent has by itself; `tool_names` is those plus what active skills grant.
    """

    def __init__(
        self, config: SkillConfig | None = None, *, agent_tools: Callable[[], Iterable[str]] | None = None
    ) -> None:
        self.config = config or SkillConfig()
        self._library = SkillLibrary(self.config)
        self._activations = Activations(agent_tools, namespaced=self.config.namespace_tools)

    # -- finding ---------------------------------------------------------------------------------

    def discover(self) -> builtins.list[SkillInfo]:
        """Look at all folders; what has not changed is not read again. Returns what is usable, by name."""
        return self._library.infos()

    def list(self) -> builtins.list[SkillInfo]:
        """What is known of all skills, by name."""
        return self._library.infos()

    def get(self, name: str) -> Skill | None:
        """A skill with its body; None if there is none. Raises SkillConflictError or SkillParseError for a bad one."""
        try:
            skill = self._library.load(name)
        except SkillNotFoundError:
            return None
        return replace(skill, is_active=self._activations.is_active(name))

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong or doubtful in any skill's file."""
        return self._library.problems()

    def shadowed(self) -> dict[str, tuple[str, ...]]:
        """Files that lose to a stronger skill of the same name."""
        return dict(self._library.look().shadowed)

    def unavailable(self, name: str) -> str | None:
        """Why a skill cannot be used on this machine; None if it can."""
        return missing(self._info(name).requires)

    # -- registering -----------------------------------------------------------------------------

    def register(self, skill: Skill | SkillInfo | Path | str) -> SkillInfo:
        """Add a skill: an object, or the folder of a SKILL.md; raises SkillConflictError if the name is taken."""
        made = self._from_path(Path(skill)) if isinstance(skill, (Path, str)) else skill
        made = made if isinstance(made, Skill) else Skill(made)
        if unsafe_name(made.name) or not made.info.description.strip():
            raise SkillValidationError(
                f"skill {made.name!a}: it needs a name of letters, digits and '-', and a description"
            )
        self._library.add(made)
        return made.info

    def registered(self) -> builtins.list[Skill]:
        """The skills that were registered, in that order."""
        return self._library.registered()

    def add_folder(self, path: Path | str, *, trusted: bool = False) -> None:
        """Look for skills in one more folder, such as that of a plugin."""
        level = TrustLevel.TRUSTED if trusted else TrustLevel.UNTRUSTED
        self._library.add_folder(str(path), SkillScope.PLUGIN, level)

    def deregister(self, name: str) -> None:
        """Take back a skill that was registered; it is deactivated first."""
        if not self._library.remove(name):
            known = [info.name for info in self.list() if info.scope is SkillScope.CODE]
            raise SkillNotFoundError(unknown_name("registered skill", name, known))
        self._activations.end(name)

    # -- using -----------------------------------------------------------------------------------

    def activate(self, name: str, arguments: str = "", *, invoked_by: Invoker = "code") -> str:
        """Put a skill to use and return its text, with the arguments filled in."""
        skill, text = self.render(name, arguments, invoked_by=invoked_by)
        self._activations.begin(skill)
        return text

    def render(self, name: str, arguments: str = "", *, invoked_by: Invoker = "code") -> tuple[Skill, str]:
        """A skill and its text with the arguments filled in, without putting it to use."""
        skill = self._library.load(name)
        _require_invocable(skill.info, invoked_by)
        if reason := missing(skill.info.requires):
            raise SkillValidationError(f"skill '{name}' cannot be used here: {reason}")
        text = fill_in(skill.body, arguments, variables=self._variables(skill.info))
        if skill.info.disallowed_tools:  # nobody takes tools from an agent in mid-turn: it is told instead
            text = f"{text.rstrip()}\n\nFor this, do not use: {', '.join(skill.info.disallowed_tools)}."
        return skill, text

    def deactivate(self, name: str) -> None:
        """Put a skill out of use: the tools it granted are gone, those of other skills stay."""
        if not self._activations.end(name):
            raise SkillNotFoundError(unknown_name("active skill", name, self._activations.names))

    @property
    def active(self) -> builtins.list[str]:
        """Names of the skills in use."""
        return self._activations.names

    @property
    def tool_names(self) -> frozenset[str]:
        """Every tool that the agent may use now."""
        return self._activations.tool_names()

    def get_tools(self, name: str) -> builtins.list[Function]:
        """The functions that a skill brings along, as they were registered."""
        return [*self._library.load(name).tools]

    def get_all_tools(self) -> builtins.list[Function]:
        """The functions of all active skills that are trusted, named `skill.tool` unless that is switched off."""
        return self._activations.tools()

    # -- checking and trust ----------------------------------------------------------------------

    def validate(self, path: Path | str, *, strict: bool = False) -> ValidationResult:
        """The report on a skill's folder; `strict` holds it to the specification to the letter."""
        return validate(path, strict=strict)

    @property
    def record(self) -> TrustRecord:
        """What was installed, and which of it is trusted."""
        return self._library.record

    def trust(self, name: str) -> None:
        """Vouch for a skill as it is now."""
        self.record.trust(self._folder(name))

    def distrust(self, name: str) -> None:
        """Vouch for a skill no longer."""
        self.record.distrust(self._folder(name))

    # -- inside ----------------------------------------------------------------------------------

    def _info(self, name: str) -> SkillInfo:
        return self._library.find(name) or self._library.load(name).info

    def _folder(self, name: str) -> str:
        folder = self._info(name).folder
        if not folder:
            raise SkillLoadError(f"skill '{name}' was written in code, which is trusted as it is")
        return folder

    def _variables(self, info: SkillInfo) -> dict[str, str]:
        project = {"${CLAUDE_PROJECT_DIR}": str(self.config.root)}
        return {**project, "${CLAUDE_SKILL_DIR}": info.folder, "{baseDir}": info.folder} if info.folder else project

    def _from_path(self, path: Path) -> Skill:
        report = validate(path)
        if report.info is None:
            error = report.errors[0] if report.errors else None
            if error is not None and error.code in ("missing", "no-skill-file"):
                raise SkillNotFoundError(str(error))
            fields = error is not None and error.field is not None and not error.code.startswith("yaml")
            raise (SkillValidationError if fields else SkillParseError)(str(error))
        folder = path if path.is_dir() else path.parent
        file = Path(report.path)
        text = read_skill(file.read_text(encoding="utf-8-sig"), path=str(folder.absolute() / (file.name or SKILL_FILE)))
        assert text.reading.info is not None
        return Skill(replace(self._library.judged(text.reading.info), details=text.details), text.body)


def _require_invocable(info: SkillInfo, invoked_by: Invoker) -> None:
    if invoked_by == "model" and info.disable_model_invocation:
        raise SkillValidationError(
            f"skill '{info.name}' is for people only (disable-model-invocation): ask the user to type /{info.name}"
        )
    if invoked_by == "user" and not info.user_invocable:
        raise SkillValidationError(f"skill '{info.name}' is not for people to call (user-invocable: false)")
