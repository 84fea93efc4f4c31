"""For authors of skills: SkillTestHarness checks and tries a skill without a model, and a pytest fixture has one.

In a `conftest.py`: `pytest_plugins = ["shared.skills.testing"]`, or import `skill_harness` from here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.definitions.source import Problem
from shared.errors import SkillError, SkillNotFoundError
from shared.skills.config import SkillConfig
from shared.skills.info import Function, Skill
from shared.skills.manager import Invoker, SkillManager
from shared.skills.validation import ValidationResult

try:
    import pytest
except ImportError:  # the harness itself works without
    pytest = None  # type: ignore[assignment]


@dataclass(frozen=True)
class SkillTrial:
    """What came of using a skill once."""

    success: bool
    text: str = ""
    tools: tuple[str, ...] = ()  # granted while it was active
    error: str | None = None

    def __bool__(self) -> bool:
        return self.success


class SkillTestHarness:
    """One skill, from a folder or from code, apart from all others; nothing is left active between trials."""

    def __init__(self, skill: Skill | Path | str, *, agent_tools: Iterable[str] = (), trusted: bool = True) -> None:
        own = tuple(agent_tools)
        self.folder = None if isinstance(skill, Skill) else Path(skill).absolute()
        trusted_paths = [self.folder] if trusted and self.folder is not None else []
        config = SkillConfig(auto_discover=False, trusted_paths=trusted_paths, record=Path(os.devnull) / "none")
        self.manager = SkillManager(config, agent_tools=lambda: own)
        self.name = self.manager.register(skill).name

    @property
    def skill(self) -> Skill:
        """The skill under test."""
        found = self.manager.get(self.name)
        if found is None:
            raise SkillNotFoundError(f"skill '{self.name}' was deregistered from its harness")
        return found

    def validate(self, *, strict: bool = False) -> ValidationResult:
        """The report on its files; a skill from code has none, and nothing is wrong with them."""
        if self.folder is None:
            return ValidationResult(f"code:{self.name}", self.skill.info, ())
        return self.manager.validate(self.folder, strict=strict)

    def problems(self, *, strict: bool = False) -> tuple[Problem, ...]:
        """Everything the report has to say."""
        return self.validate(strict=strict).problems

    def invoke(self, arguments: str = "", *, invoked_by: Invoker = "code") -> SkillTrial:
        """Use the skill once: its text with the arguments filled in, and the tools it grants."""
        before = self.manager.tool_names
        try:
            text = self.manager.activate(self.name, arguments, invoked_by=invoked_by)
        except SkillError as error:
            return SkillTrial(False, error=str(error))
        try:
            return SkillTrial(True, text, tuple(sorted(self.manager.tool_names - before)))
        finally:
            self.manager.deactivate(self.name)

    def call_tool(self, name: str, /, **arguments: Any) -> Any:
        """Call one of the functions that the skill brings along, by the name it was written with."""
        found: dict[str, Function] = {each.__name__: each for each in self.manager.get_tools(self.name)}
        if name not in found:
            raise SkillNotFoundError(f"skill '{self.name}' has no tool '{name}'; it has: {', '.join(found) or 'none'}")
        return found[name](**arguments)

    def read(self, path: str) -> str:
        """One of its files, as a model would get it."""
        return self.skill.read(path)


if pytest is not None:

    @pytest.fixture
    def skill_harness() -> Callable[..., SkillTestHarness]:
        """Makes harnesses: `skill_harness(path_or_skill, agent_tools=…, trusted=…)`."""
        return SkillTestHarness
