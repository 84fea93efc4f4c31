"""Catalogue: the sources an agent can choose from, out of the workspace's file and the plugin's settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import ConfigError, ToolError, unknown_name
from shared.plugins.references.source import Source, source_from
from shared.workspace import FileMissing, Workspace

FILE = ".jaato/references.json"
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class Catalogue:
    """Sources by id, in order, and what was wrong with those that were left out."""

    sources: dict[str, Source]
    problems: tuple[str, ...] = ()

    def pick(self, ids: Iterable[str]) -> list[Source]:
        """The sources with these ids; an unknown one is a ToolError with suggestions."""
        chosen = list(dict.fromkeys(ids))
        for wanted in chosen:
            if wanted not in self.sources:
                raise ToolError(unknown_name("reference", wanted, self.sources))
        return [self.sources[wanted] for wanted in chosen]

    def tagged(self, tags: Sequence[str] | None) -> list[Source]:
        """The sources that have one of these tags; all of them if none are asked for."""
        if not tags:
            return list(self.sources.values())
        known = {tag for source in self.sources.values() for tag in source.tags}
        for tag in tags:
            if tag not in known:
                raise ToolError(unknown_name("tag", tag, known))
        return [source for source in self.sources.values() if set(tags) & set(source.tags)]


def load_catalogue(workspace: Workspace, overrides: Sequence[Any] | None) -> Catalogue:
    """The workspace's sources, or exactly those that the settings name or describe."""
    base = _base(workspace)
    if overrides is None:
        return base
    sources: dict[str, Source] = {}
    for entry in overrides:
        if isinstance(entry, str):
            if entry not in base.sources:
                raise ConfigError(
                    f"plugin 'references', setting 'sources': {unknown_name('reference', entry, base.sources)}"
                )
            source = base.sources[entry]
        else:
            source = source_from(entry, trusted=True)
        if source.id in sources:
            raise ConfigError(f"plugin 'references', setting 'sources': '{source.id}' is there twice")
        sources[source.id] = source
    return Catalogue(sources, base.problems)


def _base(workspace: Workspace) -> Catalogue:
    try:
        data = json.loads(workspace.read(workspace.locate(FILE), limit=MAX_FILE_BYTES))
    except FileMissing:
        return Catalogue({})
    except (ToolError, ValueError, RecursionError) as error:
        return Catalogue({}, (f"{FILE} cannot be used: {error}",))
    entries = data.get("sources") if isinstance(data, dict) else data
    if not isinstance(entries, list):
        return Catalogue({}, (f'{FILE} cannot be used: expected {{"sources": [...]}}',))
    sources: dict[str, Source] = {}
    problems: list[str] = []
    for entry in entries:
        try:
            source = source_from(entry, trusted=False)
        except ConfigError as error:
            problems.append(f"{FILE}: {error}")
            continue
        if source.id in sources:
            problems.append(f"{FILE}: '{source.id}' is there twice; the first one counts")
        sources.setdefault(source.id, source)
    return Catalogue(sources, tuple(problems))
