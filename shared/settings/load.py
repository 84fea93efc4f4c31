"""load_settings: user, project, overlay, environment and code, in this order, the last word to the strongest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared import config
from shared.definitions.source import Problem
from shared.errors import ConfigError, unknown_name
from shared.settings.keys import KEYS
from shared.settings.origin import CODE, DEFAULT, Origin
from shared.settings.settings import Settings
from shared.settings.tree import Node, Value, grown, merged

CONFIG_FILE = "config.yaml"
PROJECT_FILE = ".jaato/config.yaml"


def load_settings(
    workspace: Path | str | None = None,
    *,
    trust_workspace: bool | None = None,
    code: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings of a workspace; raises ConfigError with everything that is wrong in a file.

    The project's file is data: without trust, what would widen rights, run code or send keys elsewhere does not
    count and is among the `problems`. `trust_workspace` left out: as recorded by `jaato trust`.
    """
    found = survey(workspace, trust_workspace=trust_workspace, code=code)
    if wrong := [problem for problem in found.problems if problem.severity == "error"]:
        raise ConfigError("; ".join(map(str, wrong)))
    return found


def survey(
    workspace: Path | str | None = None,
    *,
    trust_workspace: bool | None = None,
    code: Mapping[str, Any] | None = None,
) -> Settings:
    """Like `load_settings`, but a file with an error is left out and its errors are among the problems."""
    root = Path(workspace or Path.cwd()).resolve()
    entries: dict[str, Node] = dict(_defaults())
    files: list[str] = []
    problems: list[Problem] = []
    if any(_is_there(path) for path in config_paths(root).values()) or config.config_overlay() is not None:
        from shared.settings.stack import stacked  # loaded only where there are files: it brings the YAML reader

        entries, files, problems = stacked(root, entries, trust_workspace)
    _cover(entries, _environment())
    _cover(entries, _code(code or {}))
    return Settings(root, {key: entries[key] for key in KEYS if key in entries}, tuple(files), tuple(problems))


def config_paths(workspace: Path) -> dict[str, Path | None]:
    """Where settings are looked for, weakest first; the overlay is None when JAATO_CONFIG names none."""
    return {
        "user": config.jaato_home() / CONFIG_FILE,
        "project": workspace / PROJECT_FILE,
        "overlay": config.config_overlay(),
    }


def _is_there(path: Path | None) -> bool:
    return path is not None and os.path.lexists(path)


def _cover(entries: dict[str, Node], strong: Mapping[str, Node]) -> None:
    for key, node in strong.items():
        entries[key] = merged(entries.get(key), node)


def _defaults() -> Iterator[tuple[str, Node]]:
    for key, entry in KEYS.items():
        if entry.default is not None:
            yield key, grown(entry.default, lambda inside: DEFAULT, depth=entry.depth)
    yield "trace", Value(str(config.default_trace_path()), DEFAULT)


def _environment() -> dict[str, Node]:
    found: dict[str, Node] = {}
    for place, variable, text in config.settings_from_environment():
        origin = Origin("environment", variable)
        value: Any = _number(variable, text) if place[0] == "retry" else text
        if place == ("trace",) and not text:
            value = False
        for step in reversed(place[1:]):
            value = {step: value}
        node = grown(value, lambda inside, origin=origin: origin, depth=len(place) - 1)  # type: ignore[misc]
        found[place[0]] = merged(found.get(place[0]), node)
    return found


def _number(variable: str, text: str) -> float:
    try:
        return int(text) if variable.endswith("ATTEMPTS") else float(text)
    except ValueError:
        raise ConfigError(f"{variable} must be a number, not '{text}'") from None


def _code(given: Mapping[str, Any]) -> dict[str, Node]:
    for key in given:
        if key not in KEYS:
            raise ConfigError(unknown_name("setting", key, KEYS))
    return {
        key: grown(value, lambda inside: CODE, depth=KEYS[key].depth)
        for key, value in given.items()
        if value is not None
    }
