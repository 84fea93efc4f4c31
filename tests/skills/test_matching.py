"""Which skills a message is about, and the catalogue in the prompt."""

from __future__ import annotations

import pytest

from shared.skills import SkillInfo
from shared.skills.catalogue import MAX_CHARS, catalogue_text
from shared.skills.matching import best_matches

SKILLS = [
    SkillInfo("code-review", "Reviews pull requests for correctness and style."),
    SkillInfo("weather", "Look up current weather conditions and forecasts for a city."),
    SkillInfo("release-notes", "Write release notes from the git history when a version is published."),
    SkillInfo("food-order", "Order food from restaurants nearby."),
]


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("Please do a code review of my branch", ["code-review"]),
        ("What is the weather like?", ["weather"]),
        ("use weather and food-order", ["food-order", "weather"]),
        ("Show current conditions and forecast for the city of Rome", ["weather"]),
        ("We have a published version: look at the git history", ["release-notes"]),
        ("Say hello", []),
        ("", []),
        ("style", []),
    ],
)
def test_messages(message: str, names: list[str]) -> None:
    assert [info.name for info in best_matches(message, SKILLS)] == names


def test_at_most_so_many() -> None:
    everything = "weather, food order, code review, release notes"
    assert len(best_matches(everything, SKILLS)) == 2
    assert len(best_matches(everything, SKILLS, most=3)) == 3
    assert best_matches(everything, SKILLS, most=0) == []


def test_a_word_that_all_skills_use_tells_nothing() -> None:
    same = [SkillInfo(f"s{number}x", "Converts images between formats.") for number in range(30)]
    assert best_matches("converts images between formats", same) == []


def test_the_catalogue_is_sorted_and_stays_on_lines() -> None:
    skills = [SkillInfo("b", "Second\n\nline"), SkillInfo("a", "First \x1b[31m")]
    text = catalogue_text(skills)
    assert text is not None
    assert text.splitlines()[-2:] == ["- a: First \\x1b[31m", "- b: Second line"]
    assert text == catalogue_text(reversed(skills))
    assert catalogue_text([]) is None


def test_very_many_skills_keep_their_names() -> None:
    text = catalogue_text(SkillInfo(f"skill-{number:04}", "x " * 700) for number in range(900))
    assert text is not None
    assert len(text) < MAX_CHARS + 1000
    assert "- skill-0899" in text
    more = catalogue_text(SkillInfo(f"skill-{number:05}", "x " * 700) for number in range(9000))
    assert more is not None
    assert "more;" in more.splitlines()[-1]
