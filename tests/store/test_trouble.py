"""A store that cannot be written: the work goes on and says so once, or does not begin where the host insists."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
from pathlib import Path

import pytest
from support.crashes import hosted
from support.stores import python, statuses
from support.subagents import Hold, Play, answers_in

from shared import JaatoRuntime
from shared.events import Event, StoreFailed
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, Step
from shared.store import Reader
from shared.store.place import USUAL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_by_default_the_work_goes_on_and_it_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("JAATO_STORE")
    (tmp_path / ".jaato").write_text("a file where the folder should be")
    events: list[Event] = []
    with caplog.at_level(logging.WARNING), hosted(tmp_path / "x", Play("noted", "done"), store=True) as stage:
        stage.client.get_runtime().bus.subscribe(events.append, interest=frozenset({StoreFailed}))
        for number in range(3):
            assert stage.spawn(f"task {number}")["response"] == "done"
        stage.client.get_runtime().bus.flush()
        assert stage.client.conversation_id is None
    [event] = events
    assert isinstance(event, StoreFailed)
    assert "runs.db" in event.error
    assert len([record for record in caplog.records if "not stored" in record.message]) == 1


def test_a_host_that_names_the_file_insists_on_it(path: Path) -> None:
    path.write_bytes(b"no database at all " * 100)
    with hosted(path, Play("noted", "done")) as stage:
        answer = stage.spawn("task")
        assert not answer["success"]
        assert "runs.db" in answer["error"]
        assert "move it away" in answer["error"]
        assert stage.call("list_active_subagents")["count"] == 0, "nothing was started"
        assert not stage.play.child_requests
        path.unlink()
        assert stage.spawn("task")["success"], "it is looked at again"


def test_the_usual_place_is_used_unless_the_environment_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting, expected in ((None, USUAL), ("elsewhere.db", Path("elsewhere.db")), ("off", None)):
        workspace = tmp_path / str(setting)
        workspace.mkdir()
        monkeypatch.delenv("JAATO_STORE", raising=False)
        if setting is not None:
            monkeypatch.setenv("JAATO_STORE", setting)
        store = JaatoRuntime("script", workspace=workspace).store
        assert (None if store is None else store.path) == (None if expected is None else workspace / expected)
        assert not list(workspace.rglob("*.db")), "nothing is made before there is something to write"


def test_a_lock_of_another_process_delays_but_loses_nothing(path: Path) -> None:
    with hosted(path, Play("noted", "done")) as stage:
        stage.spawn("first")
        holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        agent_id = stage.launch("second")
        holder.execute("COMMIT")
        holder.close()
        assert stage.result(agent_id)["status"] == "completed"
    with Reader(path) as reader:
        assert [run.status for run in reader.newest_runs([agent.key for agent in reader.agents()]).values()] == [
            "completed",
            "completed",
        ]


def test_without_a_store_everything_works(path: Path) -> None:
    with hosted(path, Play("noted", "done"), store=False) as stage:
        assert stage.spawn("task")["response"] == "done"
        assert stage.client.keep_conversation() is None
        assert stage.client.list_conversations() == []
    assert not path.exists()
    assert not (path.parent / ".jaato").exists()


def test_runs_that_are_cancelled_at_the_end_are_stored_as_such(path: Path) -> None:
    hold = Hold()
    with hosted(path, Play("noted", hold)) as stage:
        stage.launch("task")
        hold.wait_entered()
    hold.release()
    with Reader(path) as reader:
        [run] = reader.newest_runs([agent.key for agent in reader.agents()]).values()
        assert run.status in ("cancelled", "interrupted")


FULL = """
import resource, sys
from pathlib import Path
from support.crashes import hosted
from support.subagents import Play
path = Path(sys.argv[1])
store = path if sys.argv[2] == "strict" else None
with hosted(path, Play("noted", lambda request: "x" * 300_000), store=store) as stage:
    print(stage.spawn("first")["status"])
    size = Path(f"{path}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, resource.RLIM_INFINITY))
    print(stage.spawn("second")["status"])
    third = stage.spawn("third")
    print(third.get("status", "refused"), third.get("error", ""))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_a_disk_that_gets_full(path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What had begun comes to its end; a host that insists starts nothing more; what waited is written in the end."""
    monkeypatch.setenv("JAATO_STORE", str(path))
    process = python(FULL, str(path), mode, stderr=subprocess.PIPE)
    output, errors = process.communicate(timeout=100)
    first, second, third = output.splitlines()
    assert (first, second) == ("completed", "completed"), errors
    if mode == "strict":
        assert third.startswith("refused the store ")
        assert "disk" in third
    else:
        assert third.startswith("completed")
    assert errors.count("not stored") == 1
    assert len(statuses(path)) == (2 if mode == "strict" else 3), "written when there was room again"
    assert set(statuses(path).values()) == {"completed"}


def test_broken_characters_are_stored_all_the_same(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def child(request: ModelRequest) -> Step:
        if answers_in(request):
            return "half a pair: \ud83d"
        return Reply("", (("no\udc80such", {"a": "\udc80"}),))

    with caplog.at_level(logging.ERROR), hosted(path, Play("noted", child)) as stage:
        agent_id = stage.spawn("task with \ud800 in it")["agent_id"]
    assert "could not be stored" not in caplog.text
    with Reader(path) as reader:
        agent = reader.agent(agent_id)
        [run] = reader.runs(agent.key)
        assert run.result is not None
        assert run.result["response"] == "half a pair: \ud83d"
        assert [call.name for call in reader.tool_calls(agent.key)] == ["no\\udc80such"]


def test_two_clients_of_one_process_share_a_file(path: Path) -> None:
    with hosted(path, Play("noted", "one")) as first, hosted(path, Play("noted", "two")) as second:
        answers = [stage.spawn("task") for stage in (first, second)]
        assert [answer["response"] for answer in answers] == ["one", "two"]
        assert first.client.conversation_id != second.client.conversation_id
        for stage in (first, second):
            assert stage.call("list_active_subagents")["count"] == 1
