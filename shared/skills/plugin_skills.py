"""PluginSkills: the skills that the plugins in use bring along, in folders or in code."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from shared.hooks import ExposedPlugins
from shared.skills.info import Skill, SkillInfo, SkillScope

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Brought:
    """What plugins bring: folders with skills, and skills from their code by name, the first plugin's first."""

    folders: tuple[str, ...] = ()
    skills: tuple[Skill, ...] = ()


NOTHING = Brought()


class PluginSkills:
    """Asks the exposed plugins for `get_skill_folders()` and `get_skills()`, again whenever plugins come or go.

    A plugin that is in use is trusted, and so are its skills; they leave with it.
    """

    def __init__(self, plugins: Callable[[], ExposedPlugins | None]) -> None:
        self._plugins = plugins
        self._seen: tuple[ExposedPlugins | None, int, Brought] = (None, 0, NOTHING)

    def __call__(self) -> Brought:
        """What there is now; the same object as long as no plugin has come or gone."""
        plugins = self._plugins()
        if plugins is None:
            return NOTHING
        known, version, brought = self._seen
        if known is plugins and version == plugins.version:
            return brought
        version = plugins.version
        found = _brought(plugins)
        brought = brought if brought == found else found
        self._seen = (plugins, version, brought)
        return brought


def _brought(plugins: ExposedPlugins) -> Brought:
    folders: dict[str, None] = {}
    skills: dict[str, Skill] = {}
    for name in plugins.list_exposed():
        plugin = plugins.get_plugin(name)
        folders |= dict.fromkeys(map(str, _asked(plugin, "get_skill_folders", name)))
        for each in _asked(plugin, "get_skills", name):
            if (skill := _skill(each, name)) is not None:
                skills.setdefault(skill.name, skill)
    return Brought(tuple(folders), tuple(skills.values()))


def _asked(plugin: Any, method: str, name: str) -> Iterable[Any]:
    ask = getattr(plugin, method, None)
    if ask is None:
        return ()
    try:
        return tuple(ask() or ())
    except Exception:  # foreign code: a plugin that fails brings no skills, and the others are none the worse
        log.warning("plugin '%s' failed to say which skills it brings", name, exc_info=True)
        return ()


def _skill(given: Any, plugin: str) -> Skill | None:
    """A skill as a plugin has it: one of ours, or anything with name, description and content."""
    if isinstance(given, Skill):
        return replace(given, info=replace(given.info, scope=SkillScope.PLUGIN))
    parts = [getattr(given, key, None) for key in ("name", "description", "content")]
    if not all(isinstance(part, str) and part.strip() for part in parts):
        log.warning("plugin '%s' brings a skill without name, description or content", plugin)
        return None
    name, description, content = map(str, parts)
    return Skill(SkillInfo(name, description, scope=SkillScope.PLUGIN), content)
