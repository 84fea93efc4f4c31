"""Validation: everything that can be said about a skill's files without using it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.definitions.document import Unreadable
from shared.definitions.files import read_file
from shared.definitions.source import Problem
from shared.skills.files import FILE_NAMES, SKILL_FILE, skill_file
from shared.skills.info import SkillInfo
from shared.skills.reader import read_skill
from shared.skills.strict import strict_problems

_LINK = re.compile(r"\]\(\s*<?([^)>\s#]+)")


@dataclass(frozen=True)
class ValidationResult:
    """The report on one skill; `info` is None if it cannot be used."""

    path: str
    info: SkillInfo | None
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What makes the skill unusable, or in strict mode not compliant."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What was tolerated."""
        return tuple(problem for problem in self.problems if problem.severity != "error")

    @property
    def is_valid(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    def __bool__(self) -> bool:
        return self.is_valid


def validate(path: Path | str, *, strict: bool = False) -> ValidationResult:
    """Check the skill in a folder, or a SKILL.md itself."""
    place = os.path.abspath(path)
    if not os.path.lexists(place):
        return _failed(place, "missing", "there is no such file or folder")
    file = skill_file(place) if os.path.isdir(place) else place
    if file is None:
        return _failed(place, "no-skill-file", f"has no {SKILL_FILE}, so it is no skill")
    folder = os.path.dirname(file)
    try:
        text = read_file(file, root=os.path.realpath(folder)).text
        raw = Path(file).read_bytes().decode()
    except Unreadable as error:
        return ValidationResult(file, None, tuple(fault.at(file) for fault in error.faults))
    except (OSError, UnicodeDecodeError) as error:
        return _failed(file, "unreadable", f"cannot be read: {error}")
    found = read_skill(text, path=file)
    problems = [*found.reading.problems, *_dead_links(found.body, text, folder, file)]
    if strict:
        name = os.path.basename(folder)
        problems += strict_problems(raw.replace("\r\n", "\n"), path=file, folder_name=name)
    return ValidationResult(file, found.reading.info, tuple(problems))


def validate_all(path: Path | str, *, strict: bool = False) -> list[ValidationResult]:
    """Check every skill below a folder, however deep, or the one that the path names."""
    place = os.path.abspath(path)
    if not os.path.isdir(place) or skill_file(place) is not None:
        return [validate(place, strict=strict)]
    return [validate(folder, strict=strict) for folder in _skill_folders(place)]


def _skill_folders(place: str) -> Sequence[str]:
    found = []
    for folder, folders, files in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in (".git", "node_modules", "__pycache__"))
        if any(name in files for name in FILE_NAMES):
            found.append(folder)
            folders.clear()  # what a skill holds belongs to it
    return found


def _dead_links(body: str, text: str, folder: str, file: str) -> list[Problem]:
    """References to files of the skill that are not there, and those to the SKILL.md itself."""
    found = []
    for target in dict.fromkeys(_LINK.findall(body)):
        if "://" in target or target.startswith(("/", "mailto:", "{", "$")) or not target.startswith(_OWN):
            continue
        if not os.path.exists(os.path.join(folder, target)):
            line = text.count("\n", 0, text.find(target)) + 1
            reason = f"refers to '{target}', which is not in the skill's folder"
            found.append(Problem(file, line, "reference-missing", None, reason, "info"))
    return found


_OWN = ("scripts/", "references/", "assets/", "./")


def _failed(path: str, code: str, text: str) -> ValidationResult:
    return ValidationResult(path, None, (Problem(path, None, code, None, text),))
