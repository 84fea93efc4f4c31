"""Which servers there are: `.mcp.json` of the project, `mcp.json` of the user, and inline settings."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.config import jaato_home
from shared.errors import ConfigError, unknown_name
from shared.file_tree import TreeFile
from shared.plugins.mcp.config_trust import ProjectTrust
from shared.plugins.mcp.json_lines import line_of
from shared.plugins.mcp.spec import Place, ServerSpec, read_entry

PROJECT_FILE = ".mcp.json"
USER_FILE = "mcp.json"
INLINE = "settings"
_SWITCHED_OFF = "it is named in the setting `disabled`"


@dataclass(frozen=True)
class Refused:
    """A server entry that cannot be used; the others are."""

    name: str
    source: str
    error: str


@dataclass(frozen=True)
class Disabled:
    """A server that is configured and not to be started."""

    name: str
    source: str
    reason: str
    untrusted: bool = False


Entry = ServerSpec | Refused | Disabled


@dataclass(frozen=True)
class Source:
    """One place that names servers; a stronger source hides same-named servers of a weaker one."""

    label: str
    place: Place
    entries: Mapping[str, Any] = field(repr=False)
    distrust: str = ""  # why its servers are not started


def read_servers(
    *,
    workspace: Path,
    config_path: str | Path | None = None,
    inline: Mapping[str, Any] | None = None,
    disabled: Iterable[str] = (),
    trust: ProjectTrust = ProjectTrust(),  # noqa: B008 - immutable
) -> dict[str, Entry]:
    """All servers by name, strongest source first; ConfigError when a file as a whole is broken."""
    off = set(disabled)
    found: dict[str, Entry] = {}
    sources = _sources(workspace, config_path, inline, trust)
    for source in sorted(sources, key=lambda each: bool(each.distrust)):  # what nobody trusts hides nothing
        for name, raw in source.entries.items():
            if name not in found:
                found[name] = _entry(name, raw, source, workspace, switched_off=name in off)
    for name in sorted(off - found.keys()):
        found[name] = Refused(name, INLINE, f"disabled: {unknown_name('server', name, found)}")
    return found


def _sources(
    workspace: Path, config_path: str | Path | None, inline: Mapping[str, Any] | None, trust: ProjectTrust
) -> list[Source]:
    sources = [Source(INLINE, Place(None, "", ("servers",)), inline)] if inline else []
    if config_path is not None:
        path = workspace / Path(config_path).expanduser()
        if not path.exists():
            raise ConfigError(f"plugin 'mcp': config_path names {path}, which does not exist: create it or correct it")
        return [*sources, read_file(path)]
    project, user = workspace / PROJECT_FILE, jaato_home() / USER_FILE
    if project.exists():
        sources.append(read_file(project, trust=trust))
    if user.exists():
        sources.append(read_file(user))
    return sources


def read_file(path: Path, *, trust: ProjectTrust | None = None) -> Source:
    """The server entries of one file, not yet looked into."""
    if not path.is_file():
        raise ConfigError(f"{path}: expected a JSON file, found something else: remove it or put the file there")
    try:
        data, executable = path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8: save the file as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}): check its permissions") from error
    distrust = trust.with_content(TreeFile(data, executable).digest).reason if trust is not None else ""
    return Source(str(path), Place(path, text, ("mcpServers",)), _servers(_parse(path, text), path, text), distrust)


def _parse(path: Path, text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"{path}: the name '{name}' stands twice in one object: keep one of them")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}:{error.lineno}: not valid JSON, {error.msg} at column {error.colno}: correct that line"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not valid JSON, nested too deeply: expected an object with 'mcpServers'") from error


def _servers(data: Any, path: Path, text: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise ConfigError(f'{path}:1: expected an object such as {{"mcpServers": {{}}}}, got {type(data).__name__}')
    for key in data:
        if key not in ("mcpServers", "$schema"):
            raise ConfigError(f"{path}:{line_of(text, [key])}: {unknown_name('key', key, ['mcpServers'])}")
    servers = data.get("mcpServers", {})
    if not isinstance(servers, dict):
        raise ConfigError(
            f"{path}:{line_of(text, ['mcpServers'])}: mcpServers: expected an object of server name to settings, "
            f"got {type(servers).__name__}"
        )
    return servers


def _entry(name: str, raw: Any, source: Source, workspace: Path, *, switched_off: bool) -> Entry:
    if switched_off:
        return Disabled(name, source.label, _SWITCHED_OFF)
    if isinstance(raw, Mapping) and raw.get("disabled") is True:
        return Disabled(name, source.label, "its entry says `disabled: true`")
    if source.distrust:
        return Disabled(name, source.label, source.distrust, untrusted=True)
    try:
        return read_entry(name, raw, place=source.place, source=source.label, workspace=workspace)
    except ConfigError as error:
        return Refused(name, source.label, str(error))
