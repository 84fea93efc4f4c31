"""A conversation in which a test's model makes one tool call at a time, with skills that have hooks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.skills import write_skill
from support.subagents import is_child
from support.tools import Lab, calls, results_of

from shared import JaatoClient, PluginRegistry
from shared.plugins.cli import create_plugin as create_cli
from shared.plugins.file_edit import create_plugin as create_file_edit
from shared.plugins.skills import SkillsPlugin
from shared.plugins.subagent import SubagentPlugin
from shared.providers.base import ModelRequest
from shared.providers.script import ScriptProvider

GUARD = """import json, sys
told = json.load(sys.stdin)
with open({log!r}, "a") as log:
    log.write(json.dumps(told) + "\\n")
if "secret" in json.dumps(told.get("tool_input")):
    sys.stderr.write("no secrets here")
    sys.exit(2)
"""
PYTHON = f"{sys.executable} ./scripts/check.py"


class Model:
    """Says what it is told to say, turn by turn, and keeps what it was sent; a child makes one call."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.results: list[str] = []
        self.childs: list[str] = []

    def __call__(self, request: ModelRequest) -> Any:
        if is_child(request):
            self.childs = results_of(request.messages)
            return "done" if self.childs else calls(("add", {"a": 1}))
        self.results = results_of(request.messages)
        return self.replies.pop(0) if self.replies else "end"


class Talk:
    """A client, and calls that its model makes on demand."""

    def __init__(self, client: JaatoClient, plugin: SkillsPlugin, model: Model) -> None:
        self.client, self.plugin, self.model = client, plugin, model

    def call(self, tool: str, /, **args: Any) -> str:
        """The result of one tool call, as the model reads it."""
        self.model.replies = [calls((tool, args)), "end"]
        self.client.send_message("go")
        return self.model.results[-1]


@contextmanager
def talking(workspace: Path, *, trusted: bool | None = True, **config: Any) -> Iterator[Talk]:
    registry, plugin, model = PluginRegistry(), SkillsPlugin(), Model()
    for each in (Lab(), create_cli(), create_file_edit(), SubagentPlugin()):
        registry.register_plugin(each, expose=True)
    registry.register_plugin(plugin, expose=True, config=config)
    client = JaatoClient(provider_name="script", workspace=workspace, trust_workspace=trusted)
    client.register_provider("script", ScriptProvider(model))
    client.connect()
    client.configure_tools(registry, permissions="allow")
    try:
        yield Talk(client, plugin, model)
    finally:
        client.close()


def hooked(workspace: Path, hooks: Any, *, script: str = "", name: str = "watchful", **fields: str) -> Path:
    """A skill of the project with hooks, and the log that its script writes."""
    folder = write_skill(workspace / ".jaato/skills", name, hooks=json.dumps(hooks), **fields)
    (folder / "scripts").mkdir(exist_ok=True)
    log = workspace / "log.jsonl"
    (folder / "scripts/check.py").write_text(script or GUARD.format(log=str(log)))
    return log


def on(event: str, matcher: str = "", command: str = PYTHON, **more: Any) -> dict[str, Any]:
    return {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}]}


def told(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
