"""Skills on disk for tests: write one, and a manager that sees nothing but the test's own folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.skills import SkillConfig, SkillManager


def write_skill(root: Path, name: str, body: str = "Do it.", *, folder: str | None = None, **fields: str) -> Path:
    """A folder with a SKILL.md; underscores in fields become hyphens, the value is written as it is."""
    place = root / (folder or name)
    place.mkdir(parents=True, exist_ok=True)
    given = {"name": name, "description": f"Does {name} things.", **fields}
    lines = [f"{key.replace('_', '-')}: {value}" for key, value in given.items()]
    (place / "SKILL.md").write_text("\n".join(["---", *lines, "---", "", body, ""]), encoding="utf-8")
    return place


def manager_in(root: Path, **settings: Any) -> SkillManager:
    """A manager whose workspace, user folder and record lie in one folder."""
    own = {"workspace": root / "project", "user_skills_dir": root / "home/skills", "record": root / "home/record.json"}
    (root / "project").mkdir(exist_ok=True)
    return SkillManager(SkillConfig(**{**own, **settings}))
