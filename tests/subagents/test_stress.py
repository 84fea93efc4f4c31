"""No run is lost: thousands of spawns, reads, cancels, continues and closes from many threads at once."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.engine import Record, agent_of, assert_at_rest, engine_of, profiles, run_of, tree_of
from support.stress import rapid_switching, run_threads
from support.subagents import Play, Stage, calling, staged, task_of
from support.tools import Lab

from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, Step
from shared.subagents.result import Status
from shared.types import Role

WIDE = {"max_children": 10_000, "max_total_spawns": 100_000, "max_concurrent": 6}
FINAL = {status.value for status in Status if status.is_final}


def _moody(request: ModelRequest) -> Step:
    """A child that, by its task, answers at once, uses a tool, thinks for a while, fails or delegates."""
    mood = task_of(request).rsplit(" ", 1)[-1]
    said = sum(message.role is Role.MODEL for message in request.messages)
    if mood == "tool" and said % 2 == 0 and request.tool_choice == "auto":
        return calling(("add", {"a": 1, "b": 2}), ("add", {"a": 3}))
    if mood == "slow":
        return Reply("slow", delay=0.02)
    if mood == "fail":
        return RuntimeError("a bug in a provider")
    if mood == "nest" and said % 2 == 0 and request.tool_choice == "auto":
        spawn = {"task": f"{said} below {task_of(request)} slow", "inline_config": {"timeout_seconds": 0.05}}
        return calling(("spawn_subagent", spawn), ("spawn_subagent", {**spawn, "name": "b", "background": True}))
    return "done"


class _Chaos:
    """One of many threads that do everything to all agents, at random."""

    def __init__(self, stage: Stage, seed: int, known: list[str]) -> None:
        self._stage, self._dice, self._known = stage, random.Random(seed), known
        self.runs: Counter[str] = Counter()  # that this thread started, by agent
        self._seed = seed

    def act(self, step: int) -> None:
        do = self._dice.choices(
            (self._spawn, self._read, self._cancel, self._continue, self._close, self._list, self._wait),
            (40, 20, 15, 15, 5, 3, 2),
        )[0]
        do(step)

    def _spawn(self, step: int) -> None:
        mood = self._dice.choice(("now", "tool", "slow", "fail", "nest"))
        options = {"profile": "deep"} if mood == "nest" else {"inline_config": self._limits()} if mood == "slow" else {}
        background = self._dice.random() < 0.7
        answer = self._stage.spawn(f"task {self._seed}.{step} {mood}", background=background, **options)
        self.runs[answer["agent_id"]] += 1
        self._known.append(answer["agent_id"])

    def _limits(self) -> dict[str, Any]:
        return {"timeout_seconds": self._dice.choice((0.001, 0.01, 0.02, 10))}

    def _read(self, step: int) -> None:
        if agent_id := self._any():
            answer = self._stage.call("get_subagent_result", agent_id=agent_id)
            assert answer["complete"] == (answer["status"] in FINAL)

    def _cancel(self, step: int) -> None:
        if agent_id := self._any():
            mode = self._dice.choice(("soft", "hard"))
            answer = self._stage.call("cancel_subagent", agent_id=agent_id, mode=mode)
            listed = [each["agent_id"] for each in (*answer["cancelled"], *answer["already_finished"])]
            assert agent_id in listed
            assert len(set(listed)) == len(listed)

    def _continue(self, step: int) -> None:
        if agent_id := self._any():
            background = self._dice.random() < 0.5
            answer = self._stage.call("continue_subagent", agent_id=agent_id, message="more", background=background)
            self.runs[agent_id] += "status" in answer  # a refusal has none

    def _close(self, step: int) -> None:
        if agent_id := self._any():
            assert self._stage.call("close_subagent", agent_id=agent_id)["success"]

    def _list(self, step: int) -> None:
        assert self._stage.call("list_active_subagents")["success"]

    def _wait(self, step: int) -> None:
        assert self._stage.call("wait_for_subagents", mode="any", timeout_seconds=0.01)["success"]

    def _any(self) -> str | None:
        return self._dice.choice(self._known[-20:]) if self._known else None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_run_is_lost_whatever_is_done_to_it(seed: int) -> None:
    count, steps = 12, 250
    known: list[str] = []
    deep = SubagentProfile("deep", plugins=["subagent", "lab"])
    config = {**WIDE, "max_depth": 2, **profiles(deep)}
    with rapid_switching(), staged(_moody, Lab(), config=config) as stage:
        record = Record(stage)
        crowd = [_Chaos(stage, seed * 1000 + index, known) for index in range(count)]

        def body(index: int) -> None:
            for step in range(steps):
                crowd[index].act(step)

        run_threads(count, body)
        assert_at_rest(stage)
        started = sum((each.runs for each in crowd), Counter())
        assert set(known) == {agent.agent_id for agent in tree_of(stage).children("main")}
        completions = record.completions()
        assert {agent_id: completions[agent_id] for agent_id in known} == started
        below = [agent.agent_id for agent in tree_of(stage).below("main") if agent.parent_id != "main"]
        assert [completions[agent_id] for agent_id in below] == [1] * len(below)
        assert len(below) > 50
        for agent_id in (*known, *below):
            result = run_of(stage, agent_id).result
            assert result is not None
            assert result.success == (result.status is Status.COMPLETED)
            assert record.statuses(agent_id)[-1] == result.status.value


def test_thousands_of_runs_in_the_background_and_none_is_missing() -> None:
    with rapid_switching(), staged("done", config=WIDE) as stage:
        ids: list[str] = []

        def body(index: int) -> None:
            ids.extend(stage.launch(f"{index}.{number}") for number in range(150))

        run_threads(16, body)
        assert_at_rest(stage)
        assert len(set(ids)) == 16 * 150
        assert {stage.result(agent_id)["status"] for agent_id in ids} == {"completed"}


def test_a_cancel_that_races_with_the_end_gives_one_honest_result() -> None:
    with rapid_switching(), staged("done", config=WIDE) as stage:
        record = Record(stage)
        for number in range(300):
            agent_id = stage.launch(f"{number}")
            receipts: list[dict[str, object]] = []
            run_threads(3, lambda index: receipts.append(stage.call("cancel_subagent", agent_id=agent_id)))  # noqa: B023
            status = stage.result(agent_id)["status"]
            assert status in ("completed", "cancelled")
            for receipt in receipts:
                assert bool(receipt["cancelled"]) <= (status == "cancelled"), "what completed was not cancelled"
        assert_at_rest(stage)
        assert set(record.completions().values()) == {1}


def test_continuing_from_many_threads_starts_one_run() -> None:
    with rapid_switching(), staged("done", config=WIDE) as stage:
        record = Record(stage)
        agent_id = stage.spawn("first")["agent_id"]
        begun = []
        lock = threading.Lock()

        def body(index: int) -> None:
            for _ in range(40):
                answer = stage.call("continue_subagent", agent_id=agent_id, message="more")
                if answer.get("status") == "completed":
                    with lock:
                        begun.append(answer)

        run_threads(8, body)
        assert_at_rest(stage)
        assert record.completions() == {agent_id: 1 + len(begun)}
        assert agent_of(stage, agent_id).turns == 1 + len(begun)


def test_closing_while_it_starts_leaves_no_session() -> None:
    with rapid_switching(), staged("done", config=WIDE) as stage:
        for number in range(200):
            agent_id = stage.launch(f"{number}")
            stage.call("close_subagent", agent_id=agent_id)
            assert agent_of(stage, agent_id).session is None
        assert_at_rest(stage)
        assert all(agent.session is None for agent in tree_of(stage).below("main"))


def test_equal_spawns_from_many_threads_start_one_agent() -> None:
    profile = SubagentProfile("p")
    with rapid_switching(), staged(lambda request: Reply("done", delay=0.05), config=profiles(profile)) as stage:
        for number in range(20):
            answers: list[dict[str, object]] = []
            run_threads(8, lambda index: answers.append(stage.spawn(f"task {number}", profile="p")))  # noqa: B023
            assert {answer["status"] for answer in answers} == {"completed"}
            assert len({answer["agent_id"] for answer in answers}) == 1, "all asked while it was live"
        assert_at_rest(stage)


def test_trees_three_deep_from_many_threads() -> None:
    deep = SubagentProfile("deep", plugins=["subagent"])
    config = {**WIDE, **profiles(deep), "max_depth": 3, "max_concurrent": 2}

    def child(request: ModelRequest) -> Step:
        depth = int(task_of(request).split()[0])
        said = sum(message.role is Role.MODEL for message in request.messages)
        if said or depth == 3:
            return f"depth {depth}"
        more = {"task": f"{depth + 1} of {task_of(request)}", "profile": "deep"}
        return calling(("spawn_subagent", {**more, "name": "a"}), ("spawn_subagent", {**more, "background": True}))

    with rapid_switching(), staged(Play(child=child), config=config) as stage:
        record = Record(stage)
        run_threads(8, lambda index: [stage.spawn(f"1 {index}.{n}", profile="deep") for n in range(6)])
        assert_at_rest(stage)
        agents = tree_of(stage).below("main")
        assert len(agents) == 8 * 6 * (1 + 2 + 4)
        assert {agent.run.status for agent in agents} == {Status.COMPLETED}
        assert set(record.completions().values()) == {1}
        assert engine_of(stage).slots.limit == 2


def test_nothing_is_left_over_after_thousands_of_runs() -> None:
    soak = Path(__file__).parents[2] / "benchmarks" / "soak.py"
    count = "6000"  # what is let go of from time to time is so every 3,000 runs: both looks are alike far from it
    done = subprocess.run([sys.executable, str(soak), count], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing grew" in done.stdout
