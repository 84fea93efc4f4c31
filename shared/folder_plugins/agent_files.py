"""The agents of a plugin: each a markdown file whose front matter the manifest beats, read as any other agent is."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from shared.definitions.agent_dialects import ALLY, CLAUDE, Dialect
from shared.definitions.agent_overlay import Overlay
from shared.definitions.agents import read_agent
from shared.definitions.document import Unreadable
from shared.definitions.files import read_file
from shared.definitions.formats import stem_of
from shared.definitions.manifest import Manifest
from shared.definitions.manifest_entries import AgentEntry
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import Reading, unreadable
from shared.definitions.source import Problem, Source
from shared.definitions.tool_names import our_names
from shared.folder_plugins.places import PluginFolder

_NEEDED = frozenset({"body"})  # an agent without a prompt is no use


def read_agents(
    manifest: Manifest, root: Path, folder: PluginFolder
) -> tuple[tuple[SubagentProfile, ...], list[Problem]]:
    """The agents that can be used, and what is wrong with the others.

    Which plugins their tools come from is settled when they are scoped.
    """
    own = frozenset(tool.name for tool in manifest.tools)
    dialect = replace(CLAUDE if manifest.dialect == "claude" else ALLY, required=_NEEDED)
    entries = list(manifest.agents)
    if manifest.dialect == "claude":
        entries += [AgentEntry("", path) for path in _markdown(root, manifest.agent_paths or ("agents",))]
    found: dict[str, SubagentProfile] = {}
    problems: list[Problem] = []
    for entry in entries:
        path = str(folder.path / entry.system_prompt_file)
        reading = _read(entry, root, path, own, dialect)
        problems += reading.problems
        if reading.profile is None:
            continue
        agent, remarks = _bounded(reading.profile, path)
        problems += remarks
        if agent.name in found:
            text = f"the plugin has two agents '{agent.name}'; this one is left out"
            problems.append(Problem(path, None, "duplicate-name", "name", text))
        else:
            found[agent.name] = agent if manifest.dialect == "claude" else _demanding(agent)
    return tuple(found.values()), problems


def _markdown(root: Path, paths: Collection[str]) -> Iterator[str]:
    for path in paths:
        if (root / path).is_dir():
            yield from sorted(
                f"{path}/{name}" for name in os.listdir(root / path) if name.endswith(".md") and name != "README.md"
            )
        elif path.endswith(".md"):
            yield path


def _read(entry: AgentEntry, root: Path, path: str, own: frozenset[str], dialect: Dialect) -> Reading:
    source, stem = Source("plugin", path, trusted=False), stem_of(path)
    try:
        text = read_file(str(root / entry.system_prompt_file), root=os.path.realpath(root)).text
    except Unreadable as error:
        return unreadable(error, stem=stem, source=source)
    fields = {**({"name": entry.name} if entry.name else {}), **entry.fields}
    return read_agent(text, stem=stem, source=source, overlay=Overlay(dialect, fields, own))


def _bounded(profile: SubagentProfile, path: str) -> tuple[SubagentProfile, list[Problem]]:
    """The agent of a plugin that is in use, without what would reach into other plugins."""
    agent = replace(profile, plugin_configs={}, source=replace(profile.source, trusted=True))
    if not profile.plugin_configs:
        return agent, []
    text = "'plugin_configs' is not taken over: a plugin does not set up others"
    return agent, [Problem(path, None, "field-ignored", "plugin_configs", text, "warning")]


def _demanding(agent: SubagentProfile) -> SubagentProfile:
    """An agent whose author wrote for plugins like this: a name that is nobody's is a mistake, told at the spawn."""
    nobodys = tuple(name for name in agent.unmapped_tools if _is_nobodys(name))
    if not nobodys or agent.tools is None:
        return agent
    rest = tuple(name for name in agent.unmapped_tools if name not in nobodys)
    return replace(agent, tools=(*agent.tools, *nobodys), unmapped_tools=rest)


def _is_nobodys(name: str) -> bool:
    """Whether a name is neither another host's nor a pattern, which could reach further than a name."""
    return our_names(name) is None and "__" not in name and not any(char in name for char in "*?[(")
