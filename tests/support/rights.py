"""A plugin with settings and a tool of one agent only, trees of scripted agents, and a look at what they were given."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from support.subagents import Act, Play, Stage, task_of

from shared import Plugin, tool
from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.types import Role

STATE = {"set_shared_state", "get_shared_state", "list_shared_state"}


class Desk(Plugin):
    """Knows every instance of its class, so make a class per test with `desk()`."""

    name = "desk"
    config_keys: ClassVar[Mapping[str, Any]] = {"drawer": "top", "lines": 10}
    harmless_settings: ClassVar[frozenset[str]] = frozenset({"lines"})
    made: ClassVar[list[Desk]]

    def __init__(self) -> None:
        super().__init__()
        self.settings_taken: list[dict[str, Any]] = []
        self.shut_down = 0
        self.made.append(self)

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take settings, and note them."""
        super().initialize(config)
        self.settings_taken.append(dict(self.config))

    def shutdown(self) -> None:
        """Count."""
        self.shut_down += 1

    @tool(auto_approved=True)
    def look(self) -> str:
        """Say what is in the drawer."""
        return f"the {self.config['drawer']} drawer, {self.config['lines']} lines"

    @tool
    def scribble(self, text: str = "") -> str:
        """Write something down."""
        return f"wrote {text}"

    @tool(required_agent="archivist")
    def shred(self) -> str:
        """Destroy the drawer."""
        return "shredded"


def desk() -> Desk:
    """An instance of a class of its own."""

    class OwnDesk(Desk):
        made: ClassVar[list[Desk]] = []

    return OwnDesk()


def live(plugin: Desk) -> list[Desk]:
    """The instances of its class that were initialised and not shut down."""
    return [each for each in plugin.made if each.settings_taken and not each.shut_down]


def by_task(parts: Mapping[str, Act | Sequence[Act]]) -> Callable[[ModelRequest], Step]:
    """Children that act by their task; of several steps each model call plays the next, the last one repeats."""

    def play(request: ModelRequest) -> Step:
        acts = parts[task_of(request)]
        if isinstance(acts, (list, tuple)):
            said = sum(message.role is Role.MODEL for message in request.messages)
            acts = acts[min(said, len(acts) - 1)]
        return acts(request) if callable(acts) else acts  # type: ignore[return-value]

    return play


def request_of(play: Play, task: str) -> ModelRequest:
    """The newest request of the child with this task."""
    return [request for request in list(play.child_requests) if task_of(request) == task][-1]


def tools_of(play: Play, task: str) -> set[str]:
    """The tools that the child with this task was given at its newest request."""
    return {schema.name for schema in request_of(play, task).tools.schemas}


def dry(stage: Stage, /, **args: Any) -> Any:
    """What a spawn would use."""
    return stage.spawn("a dry run", dry_run=True, **args)


def refused(answer: Any, *words: str) -> str:
    """The error of an answer that must be a refusal which names these."""
    assert answer["success"] is False, answer
    text = str(answer["error"])
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"
    return text


def write_profile(workspace: Path, name: str, /, **fields: Any) -> None:
    """A profile file of the project, which nobody has trusted."""
    folder = workspace / ".jaato" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"description": "for a test", **fields}))
