"""A process of its own whose subagents read a file and then wait for their model, until they are let go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support.subagents import PATIENCE, Play, answers_in, calling, task_of
from support.terminal import ROOT, bare_environment

from shared import JaatoClient, PluginRegistry
from shared.plugins.subagent import SubagentPlugin
from shared.providers.base import ModelRequest
from shared.providers.script import ScriptProvider, Step

SCRIPT = "script.yaml"  # what plays the model of this name in every process that is no worker
RESTLESS = "restless"  # who reads on and on, as long as it may
_READ = {"calls": [{"name": "read_file", "args": {"path": "notes.txt"}}]}
RULES: list[dict[str, Any]] = [
    {"when": "try a command", "replies": [{"calls": [{"name": "cli", "args": {"command": "true"}}]}, "no"]},
    {"when": "read twice", "replies": [_READ, _READ, "read twice"]},
    {"when": ".", "replies": ["went on"]},
]


@dataclass(frozen=True)
class Worker:
    """The process, and the ids of its agents by name: they are all in their second model call."""

    process: subprocess.Popen[str]
    ids: dict[str, str]

    def let_go(self) -> dict[str, str]:
        """Let the models answer; returns the status of each agent, by name."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self.wait_ended()

    def wait_ended(self) -> dict[str, str]:
        """The status of each agent by name, once all have ended; the process leads its conversation on."""
        assert self.process.stdout is not None
        found: dict[str, str] = json.loads(self.process.stdout.readline())
        return found

    def kill(self) -> None:
        """End the process as a crash would."""
        self.process.kill()
        self.process.wait(PATIENCE)


@contextmanager
def working(folder: Path, *names: str, **spawn: Any) -> Iterator[Worker]:
    """A worker in a folder with an agent of each name, whose task is its name; it is gone afterwards."""
    (folder / "notes.txt").write_text("the notes\n")
    (folder / SCRIPT).write_text(yaml.safe_dump(RULES))
    code = "import sys, json, support.run_worker as w; w.work(sys.argv[2:], json.loads(sys.argv[1]))"
    env = bare_environment(folder, PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT / 'tests'}")
    command = [sys.executable, "-c", code, json.dumps(spawn), *names]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=folder, env=env)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, "the worker did not come to its point"
        yield Worker(process, json.loads(line))
    finally:
        process.kill()
        process.communicate()


def interrupted(folder: Path, *names: str, **spawn: Any) -> dict[str, str]:
    """Agents whose process was killed in the middle of their work; returns their ids by name."""
    with working(folder, *names, **spawn) as worker:
        worker.kill()
        return worker.ids


# -- inside the process --------------------------------------------------------------------------


def work(names: list[str], spawn: dict[str, Any]) -> None:
    """Start the agents, say so when all of them wait for their model, and end them when there is a line to read."""
    go, waiting = threading.Event(), threading.Semaphore(0)

    def child(request: ModelRequest) -> Step:
        if not answers_in(request):
            return calling(("read_file", {"path": "notes.txt"}), text="let me look")
        waiting.release()
        assert go.wait(PATIENCE * 2), "nobody let go"
        if task_of(request) == RESTLESS and request.tool_choice != "none":
            return calling(("read_file", {"path": "notes.txt"}))
        return f"answer to {task_of(request)}"

    registry, plugin = PluginRegistry(), SubagentPlugin()
    registry.discover()
    registry.expose_tool("file_edit")
    registry.register_plugin(plugin)
    registry.expose_tool("subagent")
    client = JaatoClient(provider_name="script")
    client.register_provider("script", ScriptProvider(Play("noted", child)))
    client.connect(model=SCRIPT)
    client.configure_tools(registry, permissions="allow")
    call = plugin.get_executors()
    ids = {
        name: call["spawn_subagent"]({"task": name, "name": name, "background": True, **spawn})["agent_id"]
        for name in names
    }
    for _ in names:
        assert waiting.acquire(timeout=PATIENCE), "an agent did not come to its point"
    store = client.get_runtime().store
    assert store is not None
    store.commit()
    _tell(ids)
    threading.Thread(target=_heed, args=(go,), daemon=True).start()
    wanted = {"wait": True, "timeout_seconds": PATIENCE * 2}
    _tell({name: call["get_subagent_result"]({"agent_id": ids[name], **wanted})["status"] for name in names})
    threading.Event().wait()


def _heed(go: threading.Event) -> None:
    sys.stdin.readline()
    go.set()


def _tell(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
