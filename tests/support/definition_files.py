"""Files that a page shows, read by the readers that read them in real life."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import yaml

from shared.definitions.lint import lint
from shared.definitions.manifest import read_manifest
from shared.errors import PolicyError
from shared.permissions.policy_file import parse_policy, read_policy_data
from shared.plugins.mcp.config import Refused, read_servers
from shared.providers.script_file import read_rules
from shared.settings import load_settings
from shared.skills.validation import validate


def complaints(project: Path, name: str) -> list[str]:
    """Everything that its reader has to say about a file of a project; unknown kinds of files are a complaint."""
    path = project / name
    reader = next((read for pattern, read in _READERS.items() if fnmatch(name, pattern)), None)
    if reader is None:
        return [f"nobody knows how to read {name}: expected a name like {', '.join(_READERS)}"]
    return reader(path, project)


def parsed(language: str, text: str) -> object:
    """A snippet in a language of data, or an error."""
    return _PARSERS[language](text)


def _profile(path: Path, project: Path) -> list[str]:
    return [str(problem) for problem in lint(path)]


def _settings(path: Path, project: Path) -> list[str]:
    found = load_settings(project, trust_workspace=True).problems
    return [str(problem) for problem in found if problem.path.startswith(str(project))]


def _policy(path: Path, project: Path) -> list[str]:
    try:
        parse_policy(read_policy_data(path))
    except PolicyError as error:
        return [str(error)]
    return []


def _plugin(path: Path, project: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    reading = read_manifest(text, path=str(path), folder=path.parent.name)
    return [str(problem) for problem in reading.problems]


def _skill(path: Path, project: Path) -> list[str]:
    return [str(problem) for problem in validate(path).problems]


def _servers(path: Path, project: Path) -> list[str]:
    found = read_servers(workspace=path.parent, config_path=path)
    return [each.error for each in found.values() if isinstance(each, Refused)]


def _script(path: Path, project: Path) -> list[str]:
    read_rules(path)
    return []


def _program(path: Path, project: Path) -> list[str]:
    compile(path.read_text(encoding="utf-8"), path.name, "exec")
    return []


def _host(path: Path, project: Path) -> list[str]:
    """Settings of other hosts; tests/mcp_server/test_docs.py starts the servers that they name."""
    parsed("toml" if path.suffix == ".toml" else "json", path.read_text(encoding="utf-8"))
    return []


_PARSERS: dict[str, Callable[[str], object]] = {"json": json.loads, "yaml": yaml.safe_load, "toml": tomllib.loads}
_READERS: dict[str, Callable[[Path, Path], list[str]]] = {
    "*.jaato/profiles/*": _profile,
    "*.jaato/agents/*": _profile,
    "*.claude/agents/*": _profile,
    "*.jaato/config.yaml": _settings,
    "*permissions.json": _policy,
    "*/plugin.json": _plugin,
    "*/SKILL.md": _skill,
    "*.codex/config.toml": _host,
    "*.gemini/settings.json": _host,
    "*.cursor/mcp.json": _host,
    "*.vscode/mcp.json": _host,
    "*.mcp.json": _servers,
    "*script.yaml": _script,
    "*.py": _program,
}
