"""Lint: everything that can be said about definition files without running anything."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from shared.definitions.agent_folders import wanted_folders
from shared.definitions.catalogue import AGENTS_DIR, PROFILES_DIR
from shared.definitions.document import Unreadable
from shared.definitions.files import read_file
from shared.definitions.folder import DefinitionFolder
from shared.definitions.formats import FORMATS, loader_for, stem_of
from shared.definitions.precedence import Scope, rank
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import Reading, unreadable
from shared.definitions.source import Problem, Source
from shared.definitions.variables import workspace_root
from shared.errors import unknown_name


def lint(
    path: Path | str,
    *,
    agent_dirs: Sequence[str] = (),
    plugins: Collection[str] | None = None,
    tools: Collection[str] | None = None,
) -> list[Problem]:
    """What is wrong with a file, a folder of definitions, or the folders of a project; empty if nothing is.

    A project is a folder with `.jaato` inside; `agent_dirs` adds its folders for other hosts. `plugins` are
    those that are known, `tools` what they offer: a profile that asks for any other cannot be spawned.
    """
    place = Path(os.path.abspath(path))
    if not os.path.lexists(place):
        return [Problem(str(place), None, "missing", None, "there is no such file or folder")]
    readings, found = _folders(place, agent_dirs) if place.is_dir() else _file(place)
    if plugins is not None:
        found += [problem for each in readings if each.profile for problem in unknown_plugins(each.profile, plugins)]
    if tools is not None:
        found += [problem for each in readings if each.profile for problem in unknown_tools(each.profile, tools)]
    return sorted(found, key=lambda problem: (problem.path, problem.line or 0))


def unknown_plugins(profile: SubagentProfile, known: Collection[str]) -> Iterator[Problem]:
    """The plugins that a profile asks for and nobody has."""
    asked = () if isinstance(profile.plugins, str) else profile.plugins
    for field, names in (("plugins", asked), ("plugin_configs", profile.plugin_configs)):
        for name in names:
            if name not in known:
                text = f"{field}: {unknown_name('plugin', name, known)}"
                yield Problem(profile.source.path or profile.name, None, "unknown-plugin", field, text, "warning")


def unknown_tools(profile: SubagentProfile, known: Collection[str]) -> Iterator[Problem]:
    """The tools that a profile names and nobody has; those of MCP servers are known only while these run."""
    if "mcp" in profile.plugins or profile.plugins == "inherit":
        return
    for field, names in (("tools", profile.tools or ()), ("disallowed_tools", profile.disallowed_tools)):
        for name in names:
            if name not in known and not set(name) & set("*?["):
                text = f"{field}: {unknown_name('tool', name, known)}"
                yield Problem(profile.source.path or profile.name, None, "unknown-tool", field, text, "warning")


def _file(path: Path) -> tuple[list[Reading], list[Problem]]:
    loader = loader_for(path.name)
    if loader is None:
        known = ", ".join(FORMATS)
        text = f"is not a profile: expected a name that ends in {known}"
        return [], [Problem(str(path), None, "unknown-format", None, text)]
    source = Source("extra", str(path))
    try:
        file = read_file(str(path), root=os.path.realpath(workspace_root(path.parent)))
    except Unreadable as error:
        reading = unreadable(error, stem=stem_of(path.name), source=source)
    else:
        reading = loader(file.text, stem=stem_of(path.name), source=source)
    return [reading], list(reading.problems)


def _folders(path: Path, agent_dirs: Sequence[str]) -> tuple[list[Reading], list[Problem]]:
    root = workspace_root(path)
    own = [path / PROFILES_DIR, path / AGENTS_DIR] if (path / ".jaato").is_dir() else []
    foreign = [each for each in wanted_folders(agent_dirs, project=path, home=path) if each.path.is_dir()]
    folders = [DefinitionFolder(each, Source("extra"), root=root) for each in own]
    folders += [DefinitionFolder(each.path, Source("extra"), root=root, recursive=each.recursive) for each in foreign]
    if not folders:
        folders = [DefinitionFolder(path, Source("extra"), root=root, recursive=True)]
    for folder in folders:
        folder.look()
    together = [Scope("extra", tuple(_read_in(folders[: len(own)])))]  # the two of a project are one scope
    apart = [Scope("extra", tuple(readings)) for folder in folders[len(own) :] for readings in _by_place(folder)]
    found = [problem for scope in (*together, *apart) for problem in rank([scope], ()).problems]
    return list(_read_in(folders)), found + [problem for folder in folders for problem in folder.problems]


def _read_in(folders: Sequence[DefinitionFolder]) -> Iterator[Reading]:
    return (reading for folder in folders for reading in folder.readings)


def _by_place(folder: DefinitionFolder) -> Iterable[list[Reading]]:
    """The readings of a folder that was chosen by hand, in which each one inside stands for itself."""
    places: dict[str, list[Reading]] = {}
    for reading in folder.readings:
        places.setdefault(os.path.dirname(reading.source.path or ""), []).append(reading)
    return places.values()
