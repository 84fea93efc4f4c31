"""The agents of a plugin: each a prompt file whose front matter the manifest beats."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.definitions.agent_rights import AgentRights
from shared.definitions.document import Unreadable
from shared.definitions.files import read_file
from shared.definitions.frontmatter import FrontMatter, read_front_matter
from shared.definitions.manifest import Manifest
from shared.definitions.manifest_entries import AgentEntry
from shared.definitions.profile_fields import FIELDS, Unfit
from shared.definitions.rights_keys import is_rights_key, plain
from shared.definitions.source import Problem, Severity, bounded
from shared.definitions.tool_list import tool_entries
from shared.errors import ConfigError
from shared.folder_plugins.places import PluginFolder

#: Fields of a prompt file that become fields of the profile.
_FIELDS = {
    "name": "name",
    "description": "description",
    "model": "model",
    "temperature": "temperature",
    "reasoning_effort": "reasoning_effort",
    "effort": "reasoning_effort",
    "maxTurns": "max_turns",
    "max_turns": "max_turns",
}
_ALLOWING = ("tools", "allowedtools")
#: Words for a size instead of a model's name: which model has it depends on the provider, so the caller's is used.
_MODEL_SIZES = frozenset({"sonnet", "opus", "haiku", "fable"})


@dataclass(frozen=True)
class Agent:
    """An agent of a plugin, before it is known which plugins its tools come from."""

    name: str
    path: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[str, ...] | None = None  # None: core tools and the plugin's own
    denied: tuple[str, ...] = ()


def read_agents(manifest: Manifest, root: Path, folder: PluginFolder) -> tuple[tuple[Agent, ...], list[Problem]]:
    """The agents that can be used, and what is wrong with the others."""
    own = {tool.name for tool in manifest.tools}
    entries = list(manifest.agents)
    if manifest.dialect == "claude":
        entries += [AgentEntry("", path) for path in _markdown(root, manifest.agent_paths or ("agents",))]
    found: dict[str, Agent] = {}
    problems: list[Problem] = []
    for entry in entries:
        draft = _Draft(entry, own, str(folder.path / entry.system_prompt_file))
        agent = draft.agent(root)
        if agent is not None and agent.name in found:
            draft.report("name", "duplicate-name", f"the plugin has two agents '{agent.name}'; this one is left out")
        elif agent is not None:
            found[agent.name] = agent
        problems += bounded(draft.problems)
    return tuple(found.values()), problems


def _markdown(root: Path, paths: Collection[str]) -> Iterator[str]:
    for path in paths:
        if (root / path).is_dir():
            yield from sorted(
                f"{path}/{name}" for name in os.listdir(root / path) if name.endswith(".md") and name != "README.md"
            )
        elif path.endswith(".md"):
            yield path


class _Draft:
    """One agent in the making; any error leaves it out."""

    def __init__(self, entry: AgentEntry, own: Collection[str], path: str) -> None:
        self._entry, self._own, self._path = entry, own, path
        self._matter = FrontMatter({}, "")
        self.problems: list[Problem] = []

    def report(self, key: str, code: str, text: str, severity: Severity = "error") -> None:
        """Say what is wrong with a field."""
        self.problems.append(Problem(self._path, self._matter.line(key), code, key, text, severity))

    def agent(self, root: Path) -> Agent | None:
        """The agent, if nothing is wrong with it."""
        entry = self._entry
        try:
            self._read(root)
        except Unreadable as error:
            self.problems += [Problem(self._path, each.line, each.code, each.field, each.text) for each in error.faults]
            return None
        fields = {**self._fields(), **entry.fields}
        written = fields.pop("name", None)
        rights = self._rights()
        fields["system_instructions"] = self._matter.body.strip() or None
        if fields["system_instructions"] is None:
            self.report("system_prompt_file", "empty-body", "the prompt is empty: write what the agent should do")
        name = entry.name or written or os.path.basename(self._path).removesuffix(".md")
        if any(problem.severity == "error" for problem in self.problems):
            return None
        if rights.agents is not None and "allow_agents" not in fields:
            fields["allow_agents"] = rights.agents
        tools = None if rights.allowed is None else (*rights.allowed, *rights.unmapped)
        return Agent(name, self._path, fields, tools, (*rights.denied, *rights.unmapped_denied))

    def _read(self, root: Path) -> None:
        text = read_file(str(root / self._entry.system_prompt_file), root=os.path.realpath(root)).text
        try:
            self._matter = read_front_matter(text)
        except Unreadable as error:
            if not self._entry.name or [fault.code for fault in error.faults] != ["no-frontmatter"]:
                raise
            self._matter = FrontMatter({}, text)  # the manifest says all there is to say: the file is the prompt
        for fault in self._matter.faults:
            self.report(fault.field or "", fault.code, fault.text, "warning")

    def _fields(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, target in _FIELDS.items():
            value = self._matter.fields.get(key)
            if value is None or target in self._entry.fields or (key == "name" and self._entry.name):
                continue
            if target == "model" and value in _MODEL_SIZES:
                self.report(key, "model-size", f"model '{value}' names a size: the caller's model is used", "info")
                continue
            try:
                found[target] = FIELDS[target](value)
            except (Unfit, ConfigError) as error:
                self.report(key, getattr(error, "code", "wrong-value"), f"'{key}' {error}")
        return found

    def _rights(self) -> AgentRights:
        """The tools by our names; the manifest's list replaces the file's, what the file denies stays denied."""
        rights = AgentRights(self.report)
        given = {key: value for key, value in self._matter.fields.items() if is_rights_key(key)}
        if (listed := self._entry.fields.get("tools")) is not None:
            given = {key: value for key, value in given.items() if plain(key) not in _ALLOWING}
            given["tools"] = list(listed)
        for key, value in given.items():
            try:
                self._take(rights, key, value)
            except Unfit as error:
                self.report(key, error.code, f"'{key}' {error}")
        return rights

    def _take(self, rights: AgentRights, key: str, value: Any) -> None:
        """The plugin's own tools go by their own names, whatever another host calls so."""
        if plain(key) not in _ALLOWING or not isinstance(value, list | str):
            rights.take(key, value)
            return
        entries = tool_entries(value)
        own = [entry.text for entry in entries if entry.text in self._own]
        others = [entry.text for entry in entries if entry.text not in self._own]
        rights.take(key, others if own or isinstance(value, list) else value)
        if rights.allowed is not None:
            rights.allowed |= dict.fromkeys(own)
            if entries and not rights.allowed:
                known = ", ".join(entry.text for entry in entries)
                self.report(key, "tools-unknown", f"none of its tools is known here: {known}", "warning")
