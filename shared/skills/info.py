"""What is known of a skill: SkillInfo without its body, Skill with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from shared.skills.files import read_text, skill_files

Function = Callable[..., Any]


class SkillScope(StrEnum):
    """Where a skill was found, strongest first."""

    CODE = "code"
    PROJECT = "project"
    USER = "user"
    CUSTOM = "custom"
    PLUGIN = "plugin"


class TrustLevel(StrEnum):
    """Whether somebody vouched for a skill: an untrusted one grants no tools, sets no hooks and never forks."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a skill needs on this machine: all `bins`, one of `any_bins`, all `env`, one of `os`."""

    bins: tuple[str, ...] = ()
    any_bins: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    os: tuple[str, ...] = ()
    namespace: str = "openclaw"


@dataclass(frozen=True, slots=True)
class SkillDetails:
    """Fields that nobody needs before a skill is used; those of a file are read when they are asked for."""

    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    hooks: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SkillInfo:
    """The first tier: what is in memory of every skill, and what a model chooses by."""

    name: str
    description: str
    folder: str = ""  # the folder of its SKILL.md; empty for a skill that was written in code
    scope: SkillScope = SkillScope.CODE
    trust_level: TrustLevel = TrustLevel.TRUSTED
    allowed_tools: tuple[str, ...] | None = None  # None: the field is absent; (): it is empty or unreadable
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    context: str | None = None  # "fork", or None
    agent: str | None = None  # the profile that a fork runs under
    affinity: str | None = None  # metadata.conduit.agent
    disable_model_invocation: bool = False
    user_invocable: bool = True
    argument_hint: str | None = None
    requires: Requirements | None = None
    has_hooks: bool = False
    details: SkillDetails | None = None

    @property
    def path(self) -> Path | None:
        """The folder of the skill."""
        return Path(self.folder) if self.folder else None

    @property
    def is_trusted(self) -> bool:
        """Whether somebody vouched for it."""
        return self.trust_level is TrustLevel.TRUSTED

    @property
    def sets_hooks(self) -> bool:
        """Whether it has hooks and may have them."""
        own = self.details is not None and bool(self.details.hooks)
        return self.is_trusted and (self.has_hooks or own)

    @property
    def is_guarded(self) -> bool:
        """Whether something must be enforced while it is in use: tools it forbids, hooks it sets."""
        return bool(self.disallowed_tools) or self.sets_hooks

    @property
    def forks(self) -> bool:
        """Whether it asks to run as a subagent."""
        return self.context == "fork"


@dataclass(frozen=True)
class Skill:
    """The second tier: a skill with its body; its other files are read on demand."""

    info: SkillInfo
    body: str = ""
    tools: tuple[Function, ...] = ()
    is_active: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", tuple(self.tools))

    @property
    def name(self) -> str:
        """The skill's name."""
        return self.info.name

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files in scripts/, references/ and assets/, relative to the skill."""
        return skill_files(self.info.folder) if self.info.folder else ()

    def read(self, path: str) -> str:
        """The third tier: the text of one of its files; raises SkillLoadError for anything outside its folder."""
        return read_text(self.info, path)
