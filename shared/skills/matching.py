"""Matching: which skills a message is probably about, by their names and the words of their descriptions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from shared.skills.info import SkillInfo

NAME_SCORE = 10.0
THRESHOLD = 2.0
_WORD = re.compile(r"[^\W_]{3,}")
#: Words that say nothing about what a skill is for.
_COMMON = frozenset(
    _WORD.findall("""
    the and for with this that from when use used user users asks ask any all not are can has have into how what
    which will should would could about also such like via you your skill skills need needs want wants please help
    make makes work works using does their there them they then than one two other more most very only just etc
    new get set way ways thing things task tasks file files provide provides including include includes""")
)


def best_matches(message: str, skills: Sequence[SkillInfo], *, most: int = 2) -> list[SkillInfo]:
    """The skills that fit a message best, at most so many; none if nothing speaks clearly for one.

    A skill named in the message always fits. Otherwise words of its description count, rare ones more:
    a word that half of all skills use tells nothing.
    """
    if most < 1 or not skills:
        return []
    said, plain = _words(message), f" {' '.join(_WORD.findall(message.lower()))} "
    if not said:
        return []
    words = {skill.name: _words(skill.description) | _words(skill.name) for skill in skills}
    uses = Counter(word for each in words.values() for word in each)
    scored = []
    for skill in skills:
        common = said & words[skill.name]
        score = sum(1.0 / uses[word] ** 0.5 for word in common) if len(common) > 1 else 0.0
        if _is_named(skill.name, message, plain):
            score += NAME_SCORE
        if score >= THRESHOLD:
            scored.append((-score, skill.name, skill))
    return [skill for _, _, skill in sorted(scored, key=lambda each: each[:2])[:most]]


def _is_named(name: str, message: str, plain: str) -> bool:
    """Whether a message has the name as it is, or its words one after the other."""
    parts = _WORD.findall(name.lower())
    if not parts:
        return False
    if len(parts) == 1 and parts[0] in _COMMON:
        return f"/{name}" in message
    return f" {' '.join(parts)} " in plain


def _words(text: str) -> frozenset[str]:
    """Words without their commonest endings, so that 'reviews' finds 'review'."""
    return frozenset(_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON)


def _stem(word: str) -> str:
    for ending in ("ing", "ers", "er", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
