"""SkillManager: the public front of skills — find, register, activate, validate."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from shared.cancel import CancelToken
from shared.definitions.source import Problem
from shared.errors import SkillLoadError, SkillNotFoundError, SkillParseError, SkillValidationError, unknown_name
from shared.skills.activation import Activations
from shared.skills.arguments import fill_in
from shared.skills.config import SkillConfig
from shared.skills.files import SKILL_FILE
from shared.skills.guards import SkillGuards
from shared.skills.info import Function, Skill, SkillInfo, SkillScope, TrustLevel
from shared.skills.library import SkillLibrary
from shared.skills.plugin_skills import NOTHING, Brought
from shared.skills.reader import read_skill, unsafe_name
from shared.skills.requirements import missing
from shared.skills.trust import TrustRecord
from shared.skills.validation import ValidationResult, validate

Invoker = Literal["code", "user", "model"]


class SkillManager:
    """Finds skills, loads what is asked for, and keeps track of those in use.

    `agent_tools` says which tools the agent has by itself; `tool_names` is those plus what active skills grant.
    `brought` are the skills of plugins; `guards` enforce what active skills forbid, and run their hooks.
    `still_trusted` says of a trusted workspace whether it is, at the moment when one of its skills is used.
    """

    def __init__(
        self,
        config: SkillConfig | None = None,
        *,
        agent_tools: Callable[[], Iterable[str]] | None = None,
        brought: Callable[[], Brought] = lambda: NOTHING,
        guards: SkillGuards | None = None,
        still_trusted: Callable[[], bool] = lambda: True,
    ) -> None:
        self.config = config or SkillConfig()
        self._guards = guards
        self._changing = threading.Lock()  # a skill is in use with its guards, or neither
        self._library = SkillLibrary(self.config, brought=brought, still_trusted=still_trusted)
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
        self._end(name)

    # -- using -----------------------------------------------------------------------------------

    def activate(
        self,
        name: str,
        arguments: str = "",
        *,
        invoked_by: Invoker = "code",
        agent_id: str = "main",
        until: CancelToken | None = None,
    ) -> str:
        """Put a skill to use and return its text, with the arguments filled in.

        What it forbids and its hooks hold for that agent, until the skill is put out of use or the token fires.
        """
        skill, text = self.render(name, arguments, invoked_by=invoked_by)
        with self._changing:
            self._activations.begin(skill)
            notes = self._guards.begin(skill, agent_id, until=until) if self._guards is not None else ()
        return "\n\n".join([text, *(f"[Note: {note}]" for note in notes)])

    def render(self, name: str, arguments: str = "", *, invoked_by: Invoker = "code") -> tuple[Skill, str]:
        """A skill and its text with the arguments filled in, without putting it to use."""
        skill = self._library.load(name)
        _require_invocable(skill.info, invoked_by)
        if reason := missing(skill.info.requires):
            raise SkillValidationError(f"skill '{name}' cannot be used here: {reason}")
        text = fill_in(skill.body, arguments, variables=self._variables(skill.info))
        if skill.info.disallowed_tools:
            text = f"{text.rstrip()}\n\nFor this, do not use: {', '.join(skill.info.disallowed_tools)}."
        return skill, text

    def deactivate(self, name: str) -> None:
        """Put a skill out of use: the tools it granted are gone, those of other skills stay."""
        if not self._end(name):
            raise SkillNotFoundError(unknown_name("active skill", name, self._activations.names))

    def drop_lost(self) -> builtins.list[str]:
        """Put skills out of use whose plugin has left; returns their names."""
        active = self._activations.names
        lost = [name for name in active if self._activations.is_of_plugin(name) and self._library.find(name) is None]
        return [name for name in lost if self._end(name)]

    def end_all(self) -> None:
        """Put every skill out of use."""
        for name in self._activations.names:
            self._end(name)

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

    def tool_name(self, skill: Skill, tool: Function) -> str:
        """What one of a skill's functions is called by a model."""
        return self._activations.tool_name(skill, tool)

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

    def _end(self, name: str) -> bool:
        with self._changing:
            if self._guards is not None:
                self._guards.end(name)
            return self._activations.end(name)

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
