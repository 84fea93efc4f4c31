"""What is old leaves the store; what runs, has live descendants or a process that leads it, stays."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
from support.stores import TASK, add_agent, add_run, end_run, opened
from support.stress import wait_for

from shared.plugins.subagent import SubagentPlugin
from shared.store import Reader, Store, writes
from shared.store.records import AgentRecord
from shared.store.sweep import prune
from shared.testing import scripted_client

DAY = 86_400.0


def ended(store: Store, agent_id: str, *, days: float, parent: str | None = "main", told: bool = True) -> AgentRecord:
    """An agent whose run ended that long ago."""
    at = time.time() - days * DAY
    agent = add_agent(store, agent_id, parent=parent, at=at)
    run = add_run(store, agent)
    end_run(store, run, at=at)
    store.put(partial(writes.tell, [run] if told else []))
    store.put(partial(writes.say, store.mint(), agent.key, TASK, at, (), ()))
    return agent


def left(path: Path) -> list[str]:
    with Reader(path) as reader:
        return sorted(agent.agent_id for agent in reader.agents())


def test_old_ones_go_and_young_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_agent(store, "main", parent=None)
        old, young = ended(store, "old", days=10), ended(store, "young", days=1)
        store.commit()
        assert prune(path, older_than_seconds=5 * DAY, dry_run=True).agents == 1
        assert left(path) == ["main", "old", "young"]
        assert prune(path, older_than_seconds=5 * DAY).agents == 1
        assert left(path) == ["main", "young"]
        reader = store.reader
        assert not reader.runs(old.key)
        assert not reader.transcript(old.key)
        assert reader.transcript(young.key)


def test_a_parent_stays_with_a_child_that_stays(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_agent(store, "main", parent=None)
        ended(store, "boss", days=10)
        ended(store, "leaf", days=1, parent="boss")
        store.commit()
        prune(path, older_than_seconds=5 * DAY)
        assert left(path) == ["boss", "leaf", "main"]


def test_what_runs_stays_however_old(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_run(store, add_agent(store, "busy", at=time.time() - 99 * DAY))
        store.commit()
        prune(path, older_than_seconds=0)
        assert left(path) == ["busy"]
    prune(path, older_than_seconds=-1)
    assert left(path) == [], "its process is gone: it is interrupted, and may go"


def test_a_conversation_that_nobody_leads_goes_whole(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_agent(store, "main", parent=None, at=time.time() - 10 * DAY)
        store.put(partial(writes.share, "c1", "key", "1", 1, None))
        ended(store, "old", days=10)
        store.commit()
        assert prune(path, older_than_seconds=DAY).conversations == 0
        assert left(path) == ["main"]
    swept = prune(path, older_than_seconds=DAY)
    assert (swept.agents, swept.conversations) == (1, 1)
    with Reader(path) as reader:
        assert reader.conversations() == []
        assert reader.shared_state("c1") == []


def test_the_file_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        agent = add_agent(store, "big")
        end_run(store, add_run(store, agent), response="x" * 2_000_000)
    assert prune(path, older_than_seconds=-1).bytes_freed > 1_000_000


def test_keys_keep_growing_after_everything_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        first = add_agent(store, "a").key
    prune(path, older_than_seconds=-1)
    with opened(path) as store:
        assert add_agent(store, "a").key > first


def test_what_a_living_parent_has_not_heard_of_stays(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_agent(store, "main", parent=None)
        ended(store, "unheard", days=10, told=False)
        store.commit()
        prune(path, older_than_seconds=DAY)
        assert left(path) == ["main", "unheard"]
    prune(path, older_than_seconds=DAY)
    assert left(path) == ["main"]


@pytest.mark.parametrize(("days", "stays"), [(0, True), (90, False), (200, True)])
def test_a_process_that_writes_lets_go_of_what_is_older_than_keep_days(days: int, stays: bool, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with opened(path) as store:
        add_agent(store, "main", parent=None, at=time.time() - 100 * DAY)
        ended(store, "ancient", days=100)
        store.commit()
    plugin = SubagentPlugin()
    with scripted_client(lambda request: "done", plugin, store=path):
        plugin.initialize({"keep_days": days})
        answer = plugin.get_executors()["spawn_subagent"](task="go")
        assert answer["success"], answer
        if stays:
            assert "ancient" in left(path)
        else:
            wait_for(lambda: "ancient" not in left(path))
    assert ("ancient" in left(path)) is stays
