"""Skills: instructions in folders that an agent loads when it needs them."""

from __future__ import annotations

from shared.skills.config import SkillConfig
from shared.skills.info import Skill, SkillDetails, SkillInfo, SkillScope, TrustLevel
from shared.skills.manager import SkillManager
from shared.skills.validation import ValidationResult

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
