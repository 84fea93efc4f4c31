"""Workloads that read definition files: a thousand agents in markdown, and the metadata of skills."""

from __future__ import annotations

import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.skills import SkillManager

Figures = dict[str, float]

_AGENT = """---
name: agent-{number}
description: "Reviews code of kind {number}: says what is wrong, where, and what to do about it"
tools: Read, Grep, Glob, Bash
model: sonnet
color: blue
---

{body}
"""
_SKILL = "---\nname: skill-{number}\ndescription: {description}\nallowed-tools: Read, Grep\n---\n\n{body}\n"
_OLD = 1_600_000_000  # seconds: files that were not written a moment ago


def scan_1000() -> Figures:
    """Read 1,000 markdown agents for the first time, look again, and look after one of them was edited.

    `times_yaml` compares with nothing but opening each file and giving its head to the YAML library.
    """
    from shared.definitions.catalogue import ProfileCatalogue

    with tempfile.TemporaryDirectory() as place:
        files = _agents(Path(place), 1000)
        catalogue = ProfileCatalogue(place, home=Path(place) / "home")
        first = _ms(catalogue.list)
        again = min(_ms(catalogue.list) for _ in range(5))
        files[7].write_text(_AGENT.format(number=7, body="Other words."))
        edited = _ms(catalogue.list)
        bare = _ms(lambda: _bare(files))
    return {"scan_ms": first, "again_ms": again, "one_edited_ms": edited, "times_yaml": first / bare}


def skills_50() -> Figures:
    """Find 50 skills; and what one of them takes in memory before it is used, measured with 500."""
    with tempfile.TemporaryDirectory() as place:
        few, many = Path(place) / "few", Path(place) / "many"
        _manager(_skills(Path(place) / "warm", 1)).discover()
        found = _ms(_manager(_skills(few, 50)).discover)
        manager = _manager(_skills(many, 500))
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        kept = manager.discover()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return {"scan_ms": found, "bytes_each": (after - before) / len(kept)}


def _agents(root: Path, count: int) -> list[Path]:
    folder = root / ".jaato" / "agents"
    folder.mkdir(parents=True)
    files = []
    for number in range(count):
        path = folder / f"agent-{number}.md"
        path.write_text(_AGENT.format(number=number, body="You review code and cite file and line. " * 60))
        os.utime(path, (_OLD, _OLD))
        files.append(path)
    return files


def _skills(root: Path, count: int) -> Path:
    for number in range(count):
        folder = root / ".jaato" / "skills" / f"skill-{number}"
        folder.mkdir(parents=True)
        text = _SKILL.format(number=number, description="Does a certain thing. " * 8, body="Do it. " * 800)
        (folder / "SKILL.md").write_text(text)
    return root


def _manager(root: Path) -> SkillManager:
    from shared.skills import SkillConfig, SkillManager

    return SkillManager(
        SkillConfig(workspace=root, user_skills_dir=root / "home/skills", record=root / "home/record.json")
    )


def _bare(files: list[Path]) -> None:
    import yaml

    for path in files:
        yaml.load(path.read_text().split("---\n", 2)[1], Loader=yaml.CSafeLoader)


def _ms(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1000
