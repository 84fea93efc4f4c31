"""SpawnCall: what a model, or a host, asks for when it spawns a subagent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.types import Message


@dataclass(frozen=True)
class SpawnCall:
    """What a model, or a host, asks for."""

    task: str
    profile: str | None = None
    name: str | None = None
    context: str | Mapping[str, Any] | None = None
    background: bool = False
    inline: Mapping[str, Any] | None = None
    history: tuple[Message, ...] = ()  # what was said before the task
    cleanup: str | None = None  # keep or delete what is stored of it, once its result was handed over; None: as set up

    @property
    def key(self) -> tuple[str, ...]:
        """What makes a second spawn a duplicate of this one."""
        return (self.profile or "", self.task, _canonical(self.context), self.name or "", _canonical(self.inline))


def _canonical(value: object) -> str:
    return "" if value is None else json.dumps(value, sort_keys=True, default=str)
