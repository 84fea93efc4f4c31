"""Manifest: what a `plugin.json` says, in the shapes of Ally, Conduit and Claude Code, told apart by content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shared.definitions.document import Document, Unreadable
from shared.definitions.json_text import read_json
from shared.definitions.manifest_entries import AgentEntry, CommandEntry, Entries, SettingEntry, TextMap
from shared.definitions.profile_fields import shown
from shared.definitions.source import Problem, bounded
from shared.errors import ConfigError

Dialect = Literal["ally", "conduit", "claude"]
MANIFEST_SCHEMA_PATH = Path(__file__).parent / "schemas" / "plugin.schema.json"

#: Fields that mean something here.
_USED = ("name", "id", "version", "description", "config_schema", "config", "tools", "agents", "skills")
#: Fields of each shape that describe, and change nothing here.
_DESCRIBING: TextMap = dict.fromkeys(
    (
        *("$schema", "author", "homepage", "repository", "license", "keywords", "metadata", "displayName", "tags"),
        *("category", "runtime", "activationMode", "defaultEnabled", "icon"),
    ),
    "",
)
#: Fields that promise something which does not happen here, and what that is.
_UNUSED: TextMap = {
    "commands": "its slash commands are not loaded",
    "hooks": "its hooks are not run: write them in Python with register(api)",
    "mcpServers": "its MCP servers are not started: list them in .mcp.json",
    "lspServers": "its language servers are not started",
    "workflows": "its workflows are not loaded",
    "outputStyles": "its output styles are not loaded",
    "experimental": "its experimental parts are not loaded",
    "dependencies": "its dependencies are not installed: install them yourself",
}


@dataclass(frozen=True)
class Manifest:
    """What a plugin brings, as far as it could be read; bad entries are left out and told in the reading."""

    name: str
    dialect: Dialect
    version: str = ""
    description: str = ""
    tools: tuple[CommandEntry, ...] = ()
    agents: tuple[AgentEntry, ...] = ()
    agent_paths: tuple[str, ...] | None = None  # files or folders of agents; None: the usual folder
    skill_paths: tuple[str, ...] | None = None  # folders of skills besides the usual one
    settings: Mapping[str, SettingEntry] = field(default_factory=dict)


@dataclass(frozen=True)
class ManifestReading:
    """What became of a `plugin.json`: a manifest if it can be used at all, and what is to be said about it."""

    manifest: Manifest | None
    problems: tuple[Problem, ...] = ()


def read_manifest(text: str, *, path: str, folder: str, claude: bool = False) -> ManifestReading:
    """A manifest from the text of a file in `folder`; `claude` says that it was found in `.claude-plugin/`."""
    try:
        document = read_json(text.removeprefix("\ufeff"))
    except Unreadable as error:
        faults = [Problem(path, fault.line, fault.code, fault.field, fault.text) for fault in error.faults]
        return ManifestReading(None, bounded(faults))
    if not isinstance(document.value, dict):
        wrong = f"expected an object with the fields of a plugin, got {shown(document.value)}"
        return ManifestReading(None, (Problem(path, 1, "not-an-object", None, wrong),))
    return _Draft(document, path, folder, claude=claude).reading()


def dialect_of(given: Mapping[str, Any], *, claude: bool = False) -> Dialect:
    """Whose shape a manifest has, by what is in it."""
    agents, tools = given.get("agents"), given.get("tools")
    paths = [agents] if isinstance(agents, str) else agents
    if claude or (isinstance(paths, list) and paths and all(isinstance(each, str) for each in paths)):
        return "claude"
    if isinstance(tools, list) or isinstance(agents, list):
        return "ally"
    return "conduit" if "id" in given or "config_schema" in given else "ally"


class _Draft:
    """A manifest in the making."""

    def __init__(self, document: Document, path: str, folder: str, *, claude: bool) -> None:
        self._given: dict[str, Any] = document.value
        self._folder = folder
        self._entries = Entries(document, path)
        self._dialect = dialect_of(self._given, claude=claude)

    def reading(self) -> ManifestReading:
        """The manifest, unless it has no usable name."""
        entries, given, is_claude = self._entries, self._given, self._dialect == "claude"
        name = self._name()
        self._check_fields()
        manifest = Manifest(
            name=name or self._folder,
            dialect=self._dialect,
            version=self._text("version"),
            description=self._text("description"),
            tools=() if is_claude else entries.tools(given.get("tools")),
            agents=() if is_claude else entries.agents(given.get("agents")),
            agent_paths=entries.paths("agents", given.get("agents")) if is_claude else None,
            skill_paths=entries.paths("skills", given.get("skills")),
            settings=entries.settings(given),
        )
        return ManifestReading(manifest if name else None, bounded(entries.problems))

    def _name(self) -> str | None:
        """The id, else the name, else the folder's name; a label for people is no id."""
        for key in ("id", "name"):
            if key in self._given:
                return self._entries.plugin_name(key, self._given[key])
        text = f"neither 'name' nor 'id': the folder's name '{self._folder}' is used"
        self._entries.report((), text, code="name-missing", level="warning")
        return self._entries.plugin_name("name", self._folder)

    def _text(self, key: str) -> str:
        value = self._given.get(key, "")
        if isinstance(value, str):
            return value
        self._entries.report((key,), f"'{key}' must be text, not {shown(value)}; it is left out", level="warning")
        return ""

    def _check_fields(self) -> None:
        for key, value in self._given.items():
            if key in _UNUSED and value not in (None, [], {}, ""):
                self._entries.report((key,), f"'{key}': {_UNUSED[key]}", code="not-used", level="warning")
            elif key not in _USED and key not in _DESCRIBING and key not in _UNUSED:
                self._entries.unknown((key,), key, (*_USED, *_UNUSED))


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema of plugin.json, as shipped for editors."""
    import json

    try:
        schema: dict[str, Any] = json.loads(MANIFEST_SCHEMA_PATH.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the schema of plugin.json is missing from this installation: {error}") from None
    return schema
