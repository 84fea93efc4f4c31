"""Plays `pip install` where there is no network: whether what it is told to install exists."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def problem(words: list[str]) -> str | None:
    """What is wrong with a `pip` command line; None if it would install something that exists."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if words[:1] != ["install"]:
        return f"pip {shlex.join(words)}: only `install` is expected here"
    for word in words[1:]:
        if word.startswith("-"):
            continue
        found = re.fullmatch(r"([\w-]+|\.)(?:\[([\w,-]+)\])?", word)
        if found is None or found[1] not in (project["name"], "."):
            return f"{word} is not {project['name']}"
        if unknown := set((found[2] or "").split(",")) - {"", *project["optional-dependencies"]}:
            return f"{word}: there is no extra {', '.join(sorted(unknown))}"
    return None


if __name__ == "__main__":
    sys.exit(problem(sys.argv[1:]))
