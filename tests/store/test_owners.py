"""Two processes on one store: both see everything, neither takes over what the other runs, a dead one is recognised."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import replace
from pathlib import Path

from support.stores import add_agent, add_run, end_run, opened, python, statuses

from shared.store import Reader
from shared.store.owners import ProcessMark, is_alive, this_process
from shared.store.requests import RequestDesk, ask

HOLDER = """
import sys
from pathlib import Path
from support.stores import add_agent, add_run, end_run, opened
with opened(Path(sys.argv[1])) as store:
    agent = add_agent(store, sys.argv[2])
    add_run(store, agent)
    store.commit()
    print(store.owner, flush=True)
    sys.stdin.readline()
"""


def holder(path: Path, agent_id: str) -> subprocess.Popen[str]:
    """Another process with a run at work."""
    process = python(HOLDER, str(path), agent_id)
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdigit()
    return process


def test_a_process_knows_itself_and_not_others() -> None:
    here = this_process()
    assert is_alive(here)
    assert not is_alive(replace(here, started="1"))
    assert not is_alive(replace(here, boot="another boot"))
    assert is_alive(replace(here, host="a machine that cannot be seen"))


def test_a_process_that_ended_is_dead() -> None:
    process = python("import sys; sys.stdin.readline()")
    code = "from shared.store.owners import _mark; import sys; print(*vars(_mark(int(sys.argv[1]))).values(), sep='|')"
    told = python(code, str(process.pid)).communicate(timeout=60)[0].strip().split("|")
    mark = ProcessMark(int(told[0]), *told[1:])
    assert is_alive(mark)
    process.kill()
    process.wait(20)
    assert not is_alive(mark)


def test_a_live_run_of_another_process_is_seen_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    process = holder(path, "theirs")
    try:
        with opened(path) as store:
            add_run(store, add_agent(store, "ours", conversation="c2"))
            store.commit()
            assert statuses(path) == {"theirs": "queued", "ours": "queued"}
    finally:
        process.kill()
        process.wait(20)
    assert statuses(path) == {"theirs": "interrupted", "ours": "interrupted"}, "one was killed, the other closed"


def test_runs_of_a_killed_process_become_interrupted_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    process = holder(path, "theirs")
    process.kill()
    process.wait(20)
    readers = [Reader(path) for _ in range(4)]
    threads = [threading.Thread(target=reader.agents) for reader in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    with Reader(path) as reader:
        [run] = reader.runs(reader.agent("theirs").key)
        assert run.status == "interrupted"
        assert run.result is not None
        assert run.result["agent_id"] == "theirs"
        assert "process ended" in run.result["error"]
        ended = run.ended_at
    with opened(path) as store:
        [again] = store.reader.runs(run.agent)
        assert again.ended_at == ended
    for reader in readers:
        reader.close()


def test_an_interrupted_run_that_reports_late_changes_nothing(tmp_path: Path) -> None:
    """A result that comes after the end, as from a stopped machine that goes on, never replaces it."""
    path = tmp_path / "runs.db"
    with opened(path) as store:
        run = add_run(store, add_agent(store, "a"))
        end_run(store, run, status="interrupted", response="first")
        end_run(store, run, status="completed", response="second")
        store.commit()
        [found] = store.reader.runs(store.reader.agent("a").key)
        assert (found.status, found.result) == ("interrupted", {"status": "interrupted", "response": "first"})


SERVER = """
import sys, threading
from pathlib import Path
from support.stores import add_agent, add_run, opened
from shared.store.requests import RequestDesk
with opened(Path(sys.argv[1])) as store:
    agent = add_agent(store, "busy")
    add_run(store, agent)
    store.commit()
    done = threading.Event()
    def serve(request):
        if request.kind == "fail":
            raise RuntimeError("no")
        if request.kind == "cancel":
            done.set()
        return f"{request.kind}: {request.body['text']}"
    desk = RequestDesk(store, serve, lambda: not done.is_set())
    desk.attend()
    print(store.owner, agent.key, flush=True)
    sys.stdin.readline()
"""


def test_another_process_is_asked_and_answers(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    process = python(SERVER, str(path))
    assert process.stdout is not None
    owner, agent = map(int, process.stdout.readline().split())
    try:
        for kind, answer in (("message", "message: hi"), ("fail", "failed: no"), ("cancel", "cancel: hi")):
            told = ask(path, owner=owner, agent=agent, kind=kind, body={"text": "hi"}, timeout=60)
            assert told == answer
    finally:
        process.communicate("\n", timeout=60)


def test_a_desk_looks_again_when_there_is_work_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    needed = threading.Event()
    with opened(path) as store:
        agent = add_agent(store, "a")
        store.commit()
        desk = RequestDesk(store, lambda request: "ok", needed.is_set)
        for _ in range(3):
            needed.set()
            desk.attend()
            assert ask(path, owner=store.owner, agent=agent.key, kind="message", body={}, timeout=60) == "ok"
            needed.clear()
