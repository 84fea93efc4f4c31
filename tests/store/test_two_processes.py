"""Two processes on one store: what one runs the other sees, can ask for, and never takes over."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.crashes import crash, hosted
from support.stores import python, statuses
from support.subagents import PATIENCE, Play

from shared.errors import StoreError, SubagentNotFoundError
from shared.store import Reader
from shared.store.reader import follow
from shared.store.remote import cancel_run, tell_run
from shared.subagents.continuing import continue_stored

WORKER = """
import sys, threading
from pathlib import Path
from support.crashes import hosted
from support.subagents import Play, answers_in, calling, user_texts
from shared.providers.script import Reply
go = threading.Event()
def child(request):
    if not answers_in(request):
        return calling(("measure", {"wood": "fir"}), text="one moment")
    if user_texts(request)[-1] == "hurry up":
        return Reply("hurried")
    return Reply("", (("measure", {"wood": "fir"}),), delay=0.02)
config = {"profiles": {"p": {"plugins": ["bench"], "max_turns": 100000}}}
with hosted(Path(sys.argv[1]), Play("noted", child), config=config) as stage:
    agent_id = stage.launch("work", profile="p", name="worker")
    print(agent_id, flush=True)
    print(stage.result(agent_id)["status"], flush=True)
"""


@contextmanager
def worker(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process whose agent `worker` goes on until it is told to hurry, or stopped."""
    process = python(WORKER.replace("PATIENCE", str(PATIENCE)), str(path))
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("subagent_")
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_both_see_all_runs_and_neither_takes_over_the_others(path: Path) -> None:
    with worker(path), hosted(path, Play("noted", "mine")) as stage:
        answer = stage.spawn("here")
        with Reader(path) as reader:
            names = {agent.name for agent in reader.agents()}
            assert {"worker", answer["agent_id"]} <= names
        theirs = [status for name, status in statuses(path).items() if name != answer["agent_id"]]
        assert theirs == ["running"] or theirs == ["queued"]
        assert stage.call("list_active_subagents")["count"] == 1, "a conversation of its own"


def test_another_process_cancels_a_run(path: Path) -> None:
    with worker(path) as process:
        assert "cancelled" in cancel_run(path, "worker", reason="enough", timeout=60)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "cancelled"
        with Reader(path) as reader:
            [run] = reader.runs(reader.agent("worker").key)
            assert run.status == "cancelled"
            assert run.result is not None
            assert run.result["error"] == "enough"
        with pytest.raises(StoreError, match="nothing is running"):
            cancel_run(path, "worker")


def test_another_process_leaves_a_message(path: Path) -> None:
    with worker(path) as process:
        assert "before its next model call" in tell_run(path, "worker", "hurry up", timeout=60)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "completed"


def test_another_process_follows_a_run_to_its_end(path: Path) -> None:
    with worker(path), Reader(path) as reader:
        messages = follow(reader, reader.agent("worker"), poll_seconds=0.01)
        assert next(messages).message.text == "work"
        tell_run(path, "worker", "hurry up", timeout=60)
        assert [each.message.text for each in messages][-1] == "hurried"


def test_nobody_is_there_to_ask(path: Path) -> None:
    crash("at_a_tool", path)
    with pytest.raises(StoreError, match="is interrupted"):
        cancel_run(path, "sawyer")
    with pytest.raises(SubagentNotFoundError, match="no agent 'nobody'"):
        cancel_run(path, "nobody")


def test_a_run_of_a_process_that_is_gone_is_continued_by_hand(path: Path) -> None:
    crash("at_a_tool", path)
    with hosted(path, Play("noted", "sawed after all")) as stage:
        run = continue_stored(stage.client, stage.plugin.engine, "sawyer", "go on")
        assert run.done.wait(PATIENCE)
        assert run.result is not None
        assert run.result.response == "sawed after all"
        again = continue_stored(stage.client, stage.plugin.engine, "sawyer", "and on")
        assert again.done.wait(PATIENCE)


def test_a_run_of_a_process_that_lives_is_not(path: Path) -> None:
    with worker(path), hosted(path, Play("noted", "mine")) as stage, pytest.raises(StoreError, match="another process"):
        continue_stored(stage.client, stage.plugin.engine, "worker", "go on")
