"""Agents that rest leave memory and come back from the store; what was not to be kept is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.crashes import hosted
from support.subagents import PATIENCE, Hold, Play, Stage, answers_in, calling, spawning, task_of, user_texts

from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.store import Reader
from shared.subagents.tree import Tree


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def tree_of(stage: Stage) -> Tree:
    tree: Tree = stage.client.get_session().extras["subagents"].tree
    return tree


def eventually(condition: Callable[[], object], *, patience: float = PATIENCE) -> bool:
    """Whether something becomes true in time; it happens on another thread, and tells nobody."""
    pause = threading.Event()
    for _ in range(int(patience / 0.01)):
        if condition():
            return True
        pause.wait(0.01)
    return False


SOON = {"session_ttl_minutes": 0.0005}


def test_it_leaves_memory_and_stays_readable_and_continuable(path: Path) -> None:
    with hosted(path, Play("noted", lambda request: f"answer {len(request.messages)}"), config=SOON) as stage:
        answer = stage.spawn("a task", name="worker")
        agent_id = answer["agent_id"]
        assert eventually(lambda: tree_of(stage).get(agent_id) is None)
        assert stage.call("list_active_subagents")["count"] == 0
        assert stage.call("get_subagent_result", agent_id="worker")["response"] == "answer 1"
        again = stage.call("continue_subagent", agent_id=agent_id, message="more")
        assert (again["agent_id"], again["response"]) == (agent_id, "answer 3")
        assert user_texts(stage.play.child_requests[-1]) == ["a task", "more"]


def test_one_whose_result_nobody_has_heard_stays(path: Path) -> None:
    with hosted(path, Play("noted", "done"), config=SOON) as stage:
        heard = stage.spawn("heard")["agent_id"]
        unheard = stage.launch("unheard")
        assert eventually(lambda: tree_of(stage).get(heard) is None)
        agent = tree_of(stage).get(unheard)
        assert agent is not None
        assert agent.run.done.wait(PATIENCE)
        stage.ask("what is new?")
        assert unheard in str(stage.client.get_history()[-2].text)
        assert eventually(lambda: tree_of(stage).get(unheard) is None)


def test_a_parent_stays_while_somebody_below_it_works(path: Path) -> None:
    hold = Hold("leaf's answer")

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "leaf":
            return hold(request)
        return spawning("leaf", background=True) if not answers_in(request) else "sent"

    config = {**SOON, "max_depth": 2, "profiles": {"boss": {"plugins": ["subagent"]}}}
    with hosted(path, Play("noted", child), config=config) as stage:
        boss = stage.spawn("lead", profile="boss")["agent_id"]
        hold.wait_entered()
        assert not eventually(lambda: tree_of(stage).get(boss) is None, patience=0.4)
        hold.release()
        [leaf] = tree_of(stage).children(boss)
        assert leaf.run.done.wait(PATIENCE)


def test_what_is_not_to_be_kept_is_removed_when_its_result_was_handed_over(path: Path) -> None:
    with hosted(path, Play("noted", "done"), config={"cleanup": "delete"}) as stage:
        answer = stage.spawn("secret task")
        assert answer["response"] == "done"
        assert stage.call("get_subagent_result", agent_id=answer["agent_id"])["response"] == "done", "still in memory"
        refused = stage.call("continue_subagent", agent_id=answer["agent_id"], message="more")
        assert "closed" in refused["error"]
        background = stage.launch("another secret")
        agent = tree_of(stage).get(background)
        assert agent is not None
        assert agent.run.done.wait(PATIENCE)
        store = stage.client.get_runtime().store
        assert store is not None
        names = [each.agent_id for each in store.reader.agents()]
        assert names == ["main", background], "nobody has heard of the second one yet"
        stage.ask("what is new?")
        assert [each.agent_id for each in store.reader.agents()] == ["main"]
    with Reader(path) as reader:
        assert [each.agent_id for each in reader.agents()] == ["main"]


def test_a_tool_result_counts_as_told_with_the_message_that_brings_it(path: Path) -> None:
    def parent(request: ModelRequest) -> Step:
        return calling(("spawn_subagent", {"task": "x"})) if not answers_in(request) else "done"

    with hosted(path, Play(parent, "y")) as stage:
        stage.ask()
        conversation = stage.client.conversation_id
        store = stage.client.get_runtime().store
        assert store is not None
        assert conversation is not None
        assert store.reader.untold(conversation, "main") == []
        [agent] = [each for each in store.reader.agents() if not each.is_main]
        [run] = store.reader.runs(agent.key)
        assert run.told_at is not None
