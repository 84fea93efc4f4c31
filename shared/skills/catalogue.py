"""The catalogue of skills in a system prompt: the same bytes as long as the skills are the same."""

from __future__ import annotations

from collections.abc import Iterable

from shared.definitions.source import one_line
from shared.skills.info import SkillInfo

MAX_DESCRIPTION = 1_536
MAX_CHARS = 24_000
HEAD = """Skills are instructions for certain kinds of work. When a task fits one, load it with the tool `skill` before
you begin, and follow what it says. Available skills:"""


def catalogue_text(skills: Iterable[SkillInfo]) -> str | None:
    """Name and description of each skill, in order of their names; None if there are none.

    With very many skills descriptions are cut alike, so that every name stays in.
    """
    found = sorted((skill.name, one_line(" ".join(skill.description.split()))) for skill in skills)
    if not found:
        return None
    for limit in (MAX_DESCRIPTION, 400, 160, 60, 0):
        lines = [f"- {name}: {_cut(text, limit)}" if limit else f"- {name}" for name, text in found]
        if sum(map(len, lines)) <= MAX_CHARS or not limit:
            break
    kept: list[str] = []
    room = MAX_CHARS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            kept.append(f"- and {len(lines) - len(kept)} more; `skill` lists them when a name is not known")
            break
        kept.append(line)
    return "\n".join([HEAD, *kept])


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
