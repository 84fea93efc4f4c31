"""Tools that come with a preloaded skill obey what its profile allows and denies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.rights import desk, tools_of
from support.subagents import Stage, staged

from shared.skills import Skill, SkillInfo


def wave() -> str:
    """Wave."""
    return "waved"


def shout() -> str:
    """Shout."""
    return "shouted"


GREET = Skill(SkillInfo("greet", "Greets people."), "Say hello.", tools=(wave, shout))


@contextmanager
def stage_with(**fields: Any) -> Iterator[Stage]:
    profile = {"plugins": ["desk"], "skills": ["greet"], **fields}
    with staged(None, desk(), config={"profiles": {"greeter": profile}}) as stage:
        stage.client.register_skill(GREET)
        yield stage


def given(stage: Stage) -> set[str]:
    assert stage.spawn("greet", profile="greeter")["success"]
    return {name for name in tools_of(stage.play, "greet") if name.startswith("greet")}


def test_a_skill_brings_its_tools() -> None:
    with stage_with() as stage:
        assert given(stage) == {"greet.wave", "greet.shout"}


@pytest.mark.parametrize("denied", ["*shout", "greet.shout"])
def test_what_a_profile_denies_no_skill_gives_back(denied: str) -> None:
    with stage_with(disallowed_tools=[denied]) as stage:
        assert given(stage) == {"greet.wave"}


def test_a_list_of_tools_is_the_whole_list() -> None:
    with stage_with(tools=["look", "greet.wave"]) as stage:
        assert given(stage) == {"greet.wave"}
