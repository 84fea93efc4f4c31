"""Skills: instructions in folders that an agent loads when it needs them. Names are loaded when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.skills.config import SkillConfig as SkillConfig
    from shared.skills.info import Skill as Skill
    from shared.skills.info import SkillDetails as SkillDetails
    from shared.skills.info import SkillInfo as SkillInfo
    from shared.skills.info import SkillScope as SkillScope
    from shared.skills.info import TrustLevel as TrustLevel
    from shared.skills.manager import SkillManager as SkillManager
    from shared.skills.validation import ValidationResult as ValidationResult

_HOMES = {
    "SkillConfig": "shared.skills.config",
    **dict.fromkeys(("Skill", "SkillDetails", "SkillInfo", "SkillScope", "TrustLevel"), "shared.skills.info"),
    "SkillManager": "shared.skills.manager",
    "ValidationResult": "shared.skills.validation",
}

__all__ = [
    "Skill",
    "SkillConfig",
    "SkillDetails",
    "SkillInfo",
    "SkillManager",
    "SkillScope",
    "TrustLevel",
    "ValidationResult",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
