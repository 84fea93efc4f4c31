"""SkillLibrary: all skills there are, from code and from folders, with the strongest of each name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace

from shared.definitions.document import Unreadable
from shared.definitions.files import is_inside
from shared.definitions.source import Problem
from shared.errors import (
    SkillConflictError,
    SkillLoadError,
    SkillNotFoundError,
    SkillParseError,
    unknown_name,
)
from shared.skills.config import SkillConfig
from shared.skills.folder import SkillFolder
from shared.skills.info import Skill, SkillInfo, SkillScope, TrustLevel
from shared.skills.plugin_skills import NOTHING, Brought
from shared.skills.ranking import SkillRanking, rank
from shared.skills.trust import TrustRecord


class SkillLibrary:
    """Looks at its folders whenever it is asked, so that edited files count at once; safe for threads."""

    def __init__(
        self,
        config: SkillConfig,
        *,
        brought: Callable[[], Brought] = lambda: NOTHING,
        still_trusted: Callable[[], bool] = lambda: True,
    ) -> None:
        self.config = config
        self._brought, self._still_trusted = brought, still_trusted
        self.record = TrustRecord(config.record_path)
        self._lock = threading.Lock()
        self._code: dict[str, Skill] = {}
        self._of_plugins: dict[str, SkillFolder] = {}  # by path, in the order of the plugins
        self._folders = _folders(config) if config.auto_discover else []
        self._ranking: SkillRanking | None = None
        self._trusted = [os.path.realpath(config.resolved(path)) for path in config.trusted_paths]

    def add(self, skill: Skill) -> None:
        """Add a skill from code; it beats every file of that name, and one from code must be removed first."""
        with self._lock:
            if skill.name in self._code:
                raise SkillConflictError(
                    f"a skill named '{skill.name}' is registered already: deregister it before registering another"
                )
            self._code[skill.name] = skill

    def add_folder(self, path: str, scope: SkillScope, trust: TrustLevel) -> None:
        """Look for skills in one more folder, weaker than all there are."""
        with self._lock:
            if all(folder.path != os.path.abspath(path) for folder in self._folders):
                self._folders.append(SkillFolder(path, scope, trust))
                self._ranking = None

    def remove(self, name: str) -> bool:
        """Take back a skill from code; False if there is none."""
        with self._lock:
            return self._code.pop(name, None) is not None

    def registered(self) -> list[Skill]:
        """The skills from code, in the order they were added."""
        return list(self._code.copy().values())

    def look(self) -> SkillRanking:
        """What the folders hold now."""
        folders = self._brought().folders
        with self._lock:
            if tuple(self._of_plugins) != folders:
                known, self._ranking = self._of_plugins, None
                self._of_plugins = {path: known.get(path) or _of_plugin(path) for path in folders}
            there = [*self._folders, *self._of_plugins.values()]
            changed = [folder.look() for folder in there]
            if self._ranking is None or any(changed):
                self._ranking = rank(there)
            return self._ranking

    def infos(self) -> list[SkillInfo]:
        """All usable skills by name, with the trust they have now."""
        found = {skill.name: skill.info for skill in self._brought().skills}
        found |= {name: each.info for name, each in self.look().winners.items()}
        found |= {name: skill.info for name, skill in self._code.copy().items()}
        return [self.judged(found[name]) for name in sorted(found)]

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong or doubtful in any file."""
        found = self.look().problems
        if (damage := self.record.damage()) is None:
            return found
        return (*found, Problem(str(self.record.path), None, "record-damaged", None, damage))

    def find(self, name: str) -> SkillInfo | None:
        """What is known of a skill, if there is a usable one."""
        if (skill := self._code.get(name)) is not None:
            return self.judged(skill.info)
        if (found := self.look().winners.get(name)) is not None:
            return self.judged(found.info)
        skill = self._of_code(name)
        return skill.info if skill is not None else None

    def load(self, name: str) -> Skill:
        """A skill with its body, as its file is now; raises a SkillError that says what is wrong."""
        if (skill := self._code.get(name)) is not None:
            return replace(skill, info=self.judged(skill.info))
        ranking = self.look()
        found = ranking.winners.get(name)
        if found is None and (skill := self._of_code(name)) is not None:
            return skill
        if found is None:
            raise _absent(name, ranking, [info.name for info in self.infos()])
        try:
            text = found.home.load(found.info.folder)
        except Unreadable as error:
            raise SkillLoadError(f"skill '{name}' in {found.info.folder}: {error}") from None
        info = text.reading.info
        if info is None or info.name != name:
            raise SkillParseError(f"skill '{name}' changed while it was read: {found.info.folder}; try again")
        return Skill(replace(self._judged_now(info), details=text.details), text.body)

    def _of_code(self, name: str) -> Skill | None:
        """A skill that the code of a plugin brings."""
        return next((skill for skill in self._brought().skills if skill.name == name), None)

    def _judged_now(self, info: SkillInfo) -> SkillInfo:
        """The same for one that is about to be used: a project that changed since it was trusted is not any more."""
        if info.scope is SkillScope.PROJECT and info.is_trusted and not self._still_trusted():
            info = replace(info, trust_level=TrustLevel.UNTRUSTED)
        return self.judged(info)

    def judged(self, info: SkillInfo) -> SkillInfo:
        """The same with the trust that it has at this moment."""
        if not info.folder:
            return info
        verdict = self.record.verdict(info.folder)
        if verdict is None:
            real = os.path.realpath(info.folder) if self._trusted else ""
            verdict = info.is_trusted or any(is_inside(real, path) for path in self._trusted)
        level = TrustLevel.TRUSTED if verdict else TrustLevel.UNTRUSTED
        return info if level is info.trust_level else replace(info, trust_level=level)


def _of_plugin(path: str) -> SkillFolder:
    return SkillFolder(path, SkillScope.PLUGIN, TrustLevel.TRUSTED)


def _absent(name: str, ranking: SkillRanking, known: list[str]) -> Exception:
    if name in ranking.conflicts:
        return SkillConflictError(ranking.conflicts[name])
    if name in ranking.broken:
        return SkillParseError(f"skill '{name}' cannot be used: {ranking.broken[name]}")
    return SkillNotFoundError(unknown_name("skill", name, known))


def _folders(config: SkillConfig) -> list[SkillFolder]:
    """Project, then user, then extra folders; a project folder that is the user's own counts as the user's."""
    user = os.path.realpath(config.user_dir)
    vouched = TrustLevel.TRUSTED if config.trust_workspace else TrustLevel.UNTRUSTED
    found = []
    for path in map(config.resolved, config.skills_dirs):
        if os.path.realpath(path) != user:
            within = config.root if path.is_relative_to(config.root) else None
            found.append(SkillFolder(path, SkillScope.PROJECT, vouched, root=within))
    found.append(SkillFolder(config.user_dir, SkillScope.USER, TrustLevel.TRUSTED))
    found += [
        SkillFolder(config.resolved(path), SkillScope.CUSTOM, TrustLevel.UNTRUSTED) for path in config.custom_paths
    ]
    return found
