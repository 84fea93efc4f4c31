"""The plugin's settings, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from shared.errors import ConfigError


@dataclass(frozen=True)
class Settings:
    """What `initialize` takes.

    `trust_project`: whether servers of the workspace's `.mcp.json` are started. They are programs
    chosen by the project, and `${VAR}` lets them read the environment: switch it off for code you do not know.
    """

    workspace: str | Path | None = None  # where `.mcp.json` is looked for and programs run; default: current folder
    config_path: str | Path | None = None  # read this file instead of the project's and the user's
    servers: Mapping[str, Any] = field(default_factory=dict)  # entries as in `mcpServers`; they win over files
    disabled: tuple[str, ...] = ()  # names of servers that are not started
    connect_timeout_seconds: float = 60.0
    call_timeout_seconds: float = 300.0
    wait_seconds: float = 2.0  # how long the first question for tools may wait for connecting servers
    trust_project: bool = True

    @staticmethod
    def defaults() -> dict[str, Any]:
        """Every setting with its default."""
        return {entry.name: getattr(Settings(), entry.name) for entry in fields(Settings)}

    @staticmethod
    def checked(config: Mapping[str, Any]) -> Settings:
        """Settings from plain values; ConfigError names the one that does not fit."""
        values = {key: value for key, value in config.items() if key in Settings.defaults()}
        for key in ("connect_timeout_seconds", "call_timeout_seconds", "wait_seconds"):
            lowest = 0 if key == "wait_seconds" else 0.001
            if isinstance(values[key], bool) or not isinstance(values[key], int | float) or not values[key] >= lowest:
                raise _wrong(key, "a positive number of seconds", values[key])
        for key in ("workspace", "config_path"):
            if values[key] is not None and not isinstance(values[key], str | Path):
                raise _wrong(key, "a path", values[key])
        if not isinstance(values["servers"], Mapping):
            raise _wrong("servers", "an object of server name to settings", values["servers"])
        names = values["disabled"]
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise _wrong("disabled", "a list of server names", names)
        if not isinstance(values["trust_project"], bool):
            raise _wrong("trust_project", "true or false", values["trust_project"])
        return Settings(**{**values, "disabled": tuple(names)})


def _wrong(key: str, expected: str, value: Any) -> ConfigError:
    return ConfigError(f"plugin 'mcp': {key}: expected {expected}, got {value!r}")
