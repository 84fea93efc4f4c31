"""The plugin's settings: what each may be, and its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from shared.plugins._base import WORKSPACE_SCHEMA

_SECONDS: Mapping[str, Any] = {"type": "number", "exclusiveMinimum": 0}

SCHEMA: Mapping[str, Any] = {
    "workspace": WORKSPACE_SCHEMA,
    "config_path": WORKSPACE_SCHEMA,
    "servers": {"type": "object"},
    "disabled": {"type": "array", "items": {"type": "string"}},
    "connect_timeout_seconds": _SECONDS,
    "call_timeout_seconds": _SECONDS,
    "wait_seconds": {"type": "number", "minimum": 0},
    "trust_project": {"type": ["boolean", "null"]},
}


@dataclass(frozen=True)
class Settings:
    """What `initialize` takes.

    `trust_project` says whether servers of the workspace's `.mcp.json` are started: they are programs
    chosen by the project, and `${VAR}` shows them the environment. Left out, the workspace must be trusted.
    """

    workspace: str | None = None  # where `.mcp.json` is looked for and programs run; default: the runtime's
    config_path: str | None = None  # read this file instead of the project's and the user's
    servers: Mapping[str, Any] = field(default_factory=dict)  # entries as in `mcpServers`; they win over files
    disabled: list[str] = field(default_factory=list)  # names of servers that are not started
    connect_timeout_seconds: float = 60.0
    call_timeout_seconds: float = 300.0
    wait_seconds: float = 2.0  # how long the first question for tools may wait for connecting servers
    trust_project: bool | None = None

    @staticmethod
    def of(config: Mapping[str, Any]) -> Settings:
        """Settings from checked values."""
        return Settings(**{entry.name: config[entry.name] for entry in fields(Settings)})


DEFAULTS: Mapping[str, Any] = {entry.name: getattr(Settings(), entry.name) for entry in fields(Settings)}
