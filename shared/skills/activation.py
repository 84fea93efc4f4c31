"""Activations: which skills are in use, and which tools an agent has because of them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any

from shared.skills.info import Function, Skill, SkillScope
from shared.skills.tool_rules import granted_names


class Activations:
    """The agent's own tools, plus what active skills grant; what one grants goes with it, in any order."""

    def __init__(self, agent_tools: Callable[[], Iterable[str]] | None = None, *, namespaced: bool = True) -> None:
        self._agent_tools = agent_tools or tuple
        self._namespaced = namespaced
        self._lock = threading.Lock()
        self._active: dict[str, Skill] = {}

    def begin(self, skill: Skill) -> None:
        """Put a skill to use; one that is in use already counts with its newest text."""
        with self._lock:
            self._active[skill.name] = skill

    def end(self, name: str) -> bool:
        """Put a skill out of use; False if it was not in use."""
        with self._lock:
            return self._active.pop(name, None) is not None

    def is_active(self, name: str) -> bool:
        """Whether a skill is in use."""
        return name in self._active

    def is_of_plugin(self, name: str) -> bool:
        """Whether a skill in use came with a plugin."""
        skill = self._active.get(name)
        return skill is not None and skill.info.scope is SkillScope.PLUGIN

    @property
    def names(self) -> list[str]:
        """The skills in use, in the order they were activated."""
        return list(self._active.copy())

    def tool_names(self) -> frozenset[str]:
        """Every tool the agent may use now: its own, and those that trusted active skills grant."""
        granted = [name for skill in self._active.copy().values() for name in self.granted(skill)]
        return frozenset((*self._agent_tools(), *granted))

    def granted(self, skill: Skill) -> list[str]:
        """The tools that a skill adds; an untrusted one adds none."""
        if not skill.info.is_trusted:
            return []
        return [*granted_names(skill.info.allowed_tools or ()), *(self.tool_name(skill, each) for each in skill.tools)]

    def tools(self) -> list[Function]:
        """The functions that trusted active skills bring along, under the names the model uses."""
        skills = [skill for skill in self._active.copy().values() if skill.info.is_trusted]
        return [_renamed(each, self.tool_name(skill, each)) for skill in skills for each in skill.tools]

    def tool_name(self, skill: Skill, tool: Function) -> str:
        """The name of a skill's tool: `skill.tool`, or its own where names are not prefixed."""
        own = getattr(tool, "__jaato_tool__", {}).get("name") or tool.__name__
        return f"{skill.name}.{own}" if self._namespaced else own


def _renamed(tool: Function, name: str) -> Function:
    @functools.wraps(tool)
    def call(*args: Any, **keywords: Any) -> Any:
        return tool(*args, **keywords)

    call.__name__ = call.__qualname__ = name
    if hasattr(tool, "__jaato_tool__"):
        call.__jaato_tool__ = {**tool.__jaato_tool__, "name": name}  # type: ignore[attr-defined]
    return call
