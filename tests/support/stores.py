"""Stores for tests: opened in a folder of the test, with agents and runs in them; and processes that come and go."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from shared.store import Reader, Store, writes
from shared.store.codec import encoded
from shared.store.place import Place
from shared.store.records import AgentRecord, RunRecord
from shared.types import Message, Role

ROOT = Path(__file__).parents[2]
TASK = Message.from_text(Role.USER, "a task", pinned=True)


@contextmanager
def opened(path: Path, *, strict: bool = True) -> Iterator[Store]:
    """A store of this process, open."""
    store = Store(Place(path, strict=strict))
    store.open()
    try:
        yield store
    finally:
        store.close()


def add_agent(
    store: Store, agent_id: str, *, conversation: str = "c1", parent: str | None = "main", at: float | None = None
) -> AgentRecord:
    """An agent in a store; its conversation is made with it."""
    store.put(partial(writes.add_conversation, conversation, store.owner, "/w"))
    agent = AgentRecord(
        store.mint(), conversation, agent_id, parent, agent_id, 1, agent_id, None, "m", "script", {}, at or time.time()
    )
    store.put(partial(writes.add_agent, agent))
    return agent


def add_run(store: Store, agent: AgentRecord, *, background: bool = True) -> int:
    """A run of an agent, queued."""
    key = store.mint()
    run = RunRecord(key, agent.key, store.owner, "queued", background, TASK, time.time())
    store.put(partial(writes.add_run, run))
    return key


def end_run(store: Store, run: int, *, at: float | None = None, status: str = "completed", **result: Any) -> None:
    """The end of a run."""
    store.put(partial(writes.end_run, run, status, encoded({"status": status, **result}), at or time.time()))


def statuses(path: Path) -> dict[str, str]:
    """The status of every agent's newest run, by agent id."""
    with Reader(path) as reader:
        agents = {agent.key: agent.agent_id for agent in reader.agents()}
        return {agents[key]: run.status for key, run in reader.newest_runs(list(agents)).items()}


def python(code: str, *args: str, **options: Any) -> subprocess.Popen[str]:
    """Another process that runs this code, with the package and the helpers of the tests at hand."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "JAATO_TRACE_LOG": ""}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code, *args], env=env, **{**pipes, **options})
