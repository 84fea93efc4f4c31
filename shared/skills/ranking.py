"""Ranking: which of several skills of one name counts, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.definitions.source import Problem
from shared.skills.folder import SkillFolder
from shared.skills.info import SkillInfo
from shared.skills.reader import SkillReading


@dataclass(frozen=True, slots=True)
class Found:
    """A skill of a folder that won its name."""

    info: SkillInfo
    home: SkillFolder


@dataclass(frozen=True)
class SkillRanking:
    """The outcome for all names."""

    winners: Mapping[str, Found]
    conflicts: Mapping[str, str]  # name → the sentence that says which skills clash
    broken: Mapping[str, str]  # name → what is wrong with its file
    shadowed: Mapping[str, tuple[str, ...]]  # name → files that lose to a stronger one
    problems: tuple[Problem, ...]


def rank(folders: Sequence[SkillFolder]) -> SkillRanking:
    """Let the strongest folder win each name; two in one folder are both refused."""
    winners: dict[str, Found] = {}
    conflicts: dict[str, str] = {}
    broken: dict[str, str] = {}
    shadowed: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for folder in folders:
        problems += folder.problems
        for name, group in _by_name(folder.readings, problems, broken).items():
            if name in winners or name in conflicts:
                shadowed[name] = (*shadowed.get(name, ()), *(reading.folder for reading in group))
            elif len(group) > 1:
                paths = ", ".join(reading.folder for reading in group)
                conflicts[name] = f"{len(group)} skills are named '{name}': {paths}; rename all but one"
                problems += [
                    Problem(reading.folder, None, "duplicate-name", "name", conflicts[name]) for reading in group
                ]
            elif (info := group[0].info) is not None:
                winners[name] = Found(info, folder)
    return SkillRanking(dict(sorted(winners.items())), conflicts, broken, shadowed, tuple(problems))


def _by_name(
    readings: Sequence[SkillReading], problems: list[Problem], broken: dict[str, str]
) -> dict[str, list[SkillReading]]:
    usable: dict[str, list[SkillReading]] = {}
    for reading in readings:
        problems += reading.problems
        if reading.info is not None:
            usable.setdefault(reading.name, []).append(reading)
        else:
            broken.setdefault(reading.name, str(reading.problems[0]) if reading.problems else "it cannot be read")
    return usable
