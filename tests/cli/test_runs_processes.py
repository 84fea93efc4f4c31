"""`jaato runs` and other processes: their runs are followed, cancelled, refused while they live, continued after."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from support.command import jaato
from support.crashes import crash
from support.run_worker import RESTLESS, interrupted, working
from support.terminal import Terminal, bare_environment, terminal

from shared.store import Reader

FILE = Path(".jaato") / "state" / "runs.db"


def runs(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return jaato("runs", *words, cwd=folder, **{"JAATO_PROVIDER": "script", **variables})  # as the workers are


def rows(folder: Path, *words: str) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(runs(folder, *words, "--json").stdout)}


def stored(folder: Path, agent_id: str) -> list[str]:
    """The statuses of all runs of an agent."""
    with Reader(folder / FILE) as reader:
        return [run.status for run in reader.runs(reader.agent(agent_id).key)]


def following(folder: Path) -> AbstractContextManager[Terminal]:
    return terminal("runs", "follow", "ann", cwd=folder, env=bare_environment(folder))


def test_runs_of_another_process_are_listed_and_shown(tmp_path: Path) -> None:
    with working(tmp_path, "ann", "bob") as worker:
        found = rows(tmp_path, "--status", "live")
        assert {(name, row["status"], row["owner_alive"]) for name, row in found.items()} == {
            ("ann", "running", True),
            ("bob", "running", True),
        }
        assert found["ann"]["turns"] == 1, "the second call is under way"
        shown = runs(tmp_path, "show", "ann").stdout
        assert "● running" in shown
        assert "a process is at it" in shown
        assert "→ read_file" in shown
        assert "the notes" in shown
        assert "Result" not in shown
        worker.kill()
        found = rows(tmp_path)
        assert {(row["status"], row["owner_alive"]) for row in found.values()} == {("interrupted", False)}


def test_a_run_is_followed_to_its_end(tmp_path: Path) -> None:
    with working(tmp_path, "ann") as worker, following(tmp_path) as screen:
        screen.wait_for("let me look", "→ read_file", "the notes")
        assert worker.let_go() == {"ann": "completed"}
        assert screen.wait_exit() == 0
        assert screen.text.count("answer to ann") == 1
        assert "✓ completed" in screen.text


def test_following_for_programs(tmp_path: Path) -> None:
    with working(tmp_path, "ann") as worker:
        worker.let_go()
        done = runs(tmp_path, "follow", worker.ids["ann"], "--json")
        *messages, end = [json.loads(line) for line in done.stdout.splitlines()]
        assert [message["role"] for message in messages] == ["user", "model", "tool", "model"]
        assert (end["status"], end["result"]["response"]) == ("completed", "answer to ann")


def test_who_leaves_a_run_lets_it_go_on(tmp_path: Path) -> None:
    with working(tmp_path, "ann") as worker:
        with following(tmp_path) as screen:
            screen.wait_for("the notes")
            screen.process.send_signal(signal.SIGINT)
            assert screen.wait_exit() == 130
            assert "goes on" in screen.text
        assert worker.let_go() == {"ann": "completed"}


def test_a_run_whose_process_dies_is_followed_to_its_end(tmp_path: Path) -> None:
    with working(tmp_path, "ann") as worker, following(tmp_path) as screen:
        screen.wait_for("the notes")
        worker.kill()
        assert screen.wait_exit() == 130
        assert "interrupted" in screen.text


def test_a_run_of_another_process_is_cancelled(tmp_path: Path) -> None:
    with working(tmp_path, "ann", "bob") as worker:
        done = runs(tmp_path, "cancel", "ann", "--reason", "not needed", "--timeout", "60")
        assert (done.returncode, done.stdout) == (0, f"cancelled: {worker.ids['ann']}\n")
        assert {name: row["status"] for name, row in rows(tmp_path).items()} == {"ann": "cancelled", "bob": "running"}
        assert "not needed" in runs(tmp_path, "show", "ann").stdout
        again = runs(tmp_path, "cancel", "ann")
        assert again.returncode == 1
        assert "has ended already: cancelled" in again.stderr
        assert worker.let_go() == {"ann": "cancelled", "bob": "completed"}


def test_a_soft_cancel_lets_it_hand_over(tmp_path: Path) -> None:
    with working(tmp_path, RESTLESS) as worker:
        done = runs(tmp_path, "cancel", RESTLESS, "--soft", "--timeout", "60")
        assert done.returncode == 0
        assert "will stop" in done.stdout
        assert stored(tmp_path, worker.ids[RESTLESS]) == ["running"]
        assert worker.let_go() == {RESTLESS: "cancelled"}
        assert f"answer to {RESTLESS}" in runs(tmp_path, "show", RESTLESS).stdout


def test_nobody_is_left_to_cancel_it(tmp_path: Path) -> None:
    ids = interrupted(tmp_path, "ann")
    done = runs(tmp_path, "cancel", "ann")
    assert done.returncode == 1
    assert "its process is gone: it was interrupted" in done.stderr
    assert f"jaato runs continue {ids['ann']}" in done.stderr


def test_a_process_that_does_not_answer(tmp_path: Path) -> None:
    with working(tmp_path, "ann") as worker:
        with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as store:
            store.execute("BEGIN IMMEDIATE")  # it must not stand still in the middle of a write
            worker.process.send_signal(signal.SIGSTOP)  # it stands still, alive
        done = runs(tmp_path, "cancel", "ann", "--timeout", "0")
        worker.process.send_signal(signal.SIGCONT)
        assert done.returncode == 2
        assert "does not answer" in done.stderr


def test_an_interrupted_run_goes_on_here(tmp_path: Path) -> None:
    ids = interrupted(tmp_path, "ann")
    done = runs(tmp_path, "continue", "ann", "and now?", "--permissions", "allow")
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
    assert stored(tmp_path, ids["ann"]) == ["interrupted", "completed"]
    story = json.loads(runs(tmp_path, "show", "ann", "--json").stdout)
    said = [message["text"] for message in story["transcript"] if message["role"] != "tool"]
    assert said == ["ann", "let me look", "and now?", "went on"], "with its history"
    assert (story["model"], story["provider"]) == ("script.yaml", "script")
    assert "read_file" in story["tools"], "what it could call it still can"
    assert "cli" not in story["tools"]
    assert story["turns"] == 2
    with Reader(tmp_path / FILE) as reader:
        told = reader.untold(story["conversation"], "main")
        assert [run.status for run in told] == ["interrupted", "completed"], "its parent hears of it when it is back"
    again = json.loads(runs(tmp_path, "continue", ids["ann"], "once more", "--json", "-q").stdout)
    assert (again["status"], again["response"], again["agent_id"]) == ("completed", "went on", ids["ann"])


def test_a_run_that_lives_elsewhere_is_left_alone(tmp_path: Path) -> None:
    with working(tmp_path, "ann", "bob") as worker:
        done = runs(tmp_path, "continue", "ann", "mine now")
        assert done.returncode == 2
        assert "is running in another process" in done.stderr
        worker.let_go()
        done = runs(tmp_path, "continue", "ann", "mine now")
        assert done.returncode == 2
        assert "which another process leads" in done.stderr
        assert stored(tmp_path, worker.ids["ann"]) == ["completed"]
        worker.kill()
        assert runs(tmp_path, "continue", "ann", "mine now").stdout == "went on\n"


def test_it_never_gets_a_tool_that_it_did_not_have(tmp_path: Path) -> None:
    interrupted(tmp_path, "ann")
    done = runs(tmp_path, "continue", "ann", "try a command", "-p", "cli", "--permissions", "allow")
    assert done.stdout == "no\n"
    story = json.loads(runs(tmp_path, "show", "ann", "--json").stdout)
    [refused] = [each for message in story["transcript"] for each in message["results"] if each["name"] == "cli"]
    assert refused["is_error"]


def test_what_was_spent_of_the_budget_is_gone(tmp_path: Path) -> None:
    interrupted(tmp_path, "ann", inline_config={"budget": {"tool_calls": 2}})  # one of them is used
    done = runs(tmp_path, "continue", "ann", "read twice", "--json", "--permissions", "allow")
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"], result["reason"]) == (3, "partial", "budget")
    story = json.loads(runs(tmp_path, "show", "ann", "--json").stdout)
    assert [each["is_error"] for message in story["transcript"] for each in message["results"]] == [False, False, True]


def test_tools_that_are_not_to_be_had_are_not_lost_by_accident(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    crash("at_a_tool", store)
    given = "--store", str(store), "continue", "sawyer", "go on"
    done = runs(tmp_path, *given)
    assert done.returncode == 2
    assert "measure" in done.stderr
    assert "--fewer-tools" in done.stderr
    with Reader(store) as reader:
        agent = reader.agent("sawyer")
        assert "measure" in agent.spec["tools"]
        assert [run.status for run in reader.runs(agent.key)] == ["interrupted"]
    done = runs(tmp_path, *given, "--fewer-tools")
    assert (done.returncode, done.stdout) == (0, "You said: go on\n")
    assert "it went on without measure, rest, saw: " in done.stderr


@pytest.mark.parametrize("command", ["follow", "cancel", "continue"])
def test_a_conversation_is_no_run(tmp_path: Path, command: str) -> None:
    interrupted(tmp_path, "ann")
    conversation = rows(tmp_path)["ann"]["conversation"]
    done = runs(tmp_path, command, conversation, *(["message"] if command == "continue" else []))
    assert done.returncode == 2
    assert f"jaato chat --resume {conversation}" in done.stderr


def test_ctrl_c_stops_what_was_continued(tmp_path: Path) -> None:
    ids = interrupted(tmp_path, "ann")
    (tmp_path / "script.yaml").write_text("- when: .\n  replies: [{text: late, delay: 600}]\n")
    env = bare_environment(tmp_path, JAATO_PROVIDER="script")
    with terminal("runs", "continue", "ann", "go on", cwd=tmp_path, env=env) as screen:
        with Reader(tmp_path / FILE) as reader:
            key = reader.agent(ids["ann"]).key
            while reader.runs(key)[-1].status != "running":
                assert screen.process.poll() is None, screen.text
        screen.process.send_signal(signal.SIGINT)
        assert screen.wait_exit() == 130
    assert stored(tmp_path, ids["ann"]) == ["interrupted", "cancelled"]
