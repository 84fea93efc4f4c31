"""The files of a skill's folder: its SKILL.md, and what lies in scripts/, references/ and assets/."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from shared.errors import SkillLoadError, ToolError
from shared.workspace import Workspace

if TYPE_CHECKING:
    from shared.skills.info import SkillInfo

SKILL_FILE = "SKILL.md"
FILE_NAMES = (SKILL_FILE, "skill.md")
INDEXED = ("scripts", "references", "assets")
MAX_LISTED = 500
MAX_READ = 1 << 20


def skill_file(folder: str) -> str | None:
    """The path of a folder's SKILL.md, however it is spelt; None if there is none."""
    for name in FILE_NAMES:
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            return path
    return None


def skill_files(folder: str) -> tuple[str, ...]:
    """The files of the usual folders, sorted, without links, and not more than a few hundred."""
    found: list[str] = []
    for name in INDEXED:
        if os.path.islink(os.path.join(folder, name)):
            continue
        for place, folders, files in os.walk(os.path.join(folder, name)):
            folders.sort()
            found += (os.path.relpath(os.path.join(place, file), folder) for file in sorted(files))
            if len(found) >= MAX_LISTED:
                return tuple(found[:MAX_LISTED])
    return tuple(found)


def read_text(info: SkillInfo, path: str) -> str:
    """The text of one file of a skill; never one outside its folder."""
    if not info.folder:
        raise SkillLoadError(f"skill '{info.name}' was written in code and has no files")
    try:
        workspace = Workspace(info.folder)
        return workspace.read(workspace.locate(path), limit=MAX_READ).decode()
    except ToolError as error:
        raise SkillLoadError(f"skill '{info.name}': {error}") from None
    except UnicodeDecodeError:
        raise SkillLoadError(f"skill '{info.name}': '{path}' is not UTF-8 text") from None
