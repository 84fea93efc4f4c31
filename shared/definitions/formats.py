"""The formats a profile can be written in: a table from suffix to loader."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from shared.definitions.agents import read_agent
from shared.definitions.json_text import read_json
from shared.definitions.profile_file import Reading, read_profile
from shared.definitions.source import Source
from shared.definitions.yaml_text import read_yaml


class Loader(Protocol):
    """Makes a reading of a file's text; it never raises for what the text says."""

    def __call__(self, text: str, *, stem: str, source: Source) -> Reading: ...


FORMATS: Mapping[str, Loader] = {
    ".json": partial(read_profile, parse=read_json),
    ".yaml": partial(read_profile, parse=read_yaml),
    ".yml": partial(read_profile, parse=read_yaml),
    ".md": read_agent,
}


def loader_for(name: str) -> Loader | None:
    """The loader for a file name; None for hidden files, a README, and suffixes that are no profile's."""
    if name.startswith(".") or name == "README.md":
        return None
    return FORMATS.get(os.path.splitext(name)[1].lower())


def stem_of(name: str) -> str:
    """A file's name without its suffix, which is the profile's name unless the file says another."""
    return os.path.splitext(os.path.basename(name))[0]
