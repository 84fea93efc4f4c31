"""Runs and agents: stored before any work, one final status, results that stay, and nothing else that does."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
from support.engine import Record, agent_of, assert_at_rest, in_thread, profiles, run_of, tree_of
from support.stress import wait_for
from support.subagents import Hold, Play, Stage, answers_in, calling, spawning, staged, task_of, user_texts
from support.tools import Lab

from shared import Plugin, tool
from shared.events import AgentCompleted, AgentCreated, StatusChanged
from shared.loop import HAND_OVER
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, Step
from shared.subagents import tree
from shared.subagents.result import Status, SubagentResult
from shared.types import Role

DEEP = SubagentProfile("deep", plugins=["subagent"])


# -- one id, one result ------------------------------------------------------------------------------


def test_an_agent_is_known_before_any_of_its_work() -> None:
    seen: list[Any] = []
    holder: list[Stage] = []

    def child(request: ModelRequest) -> Step:
        seen.append(holder[0].call("list_active_subagents")["active_sessions"])
        return "done"

    with staged(child) as stage:
        holder.append(stage)
        record = Record(stage)
        agent_id = stage.spawn()["agent_id"]
        assert [(each["agent_id"], each["status"]) for each in seen[0]] == [(agent_id, "running")]
        kinds = [type(event) for event in record.events if event.agent_id == agent_id]
        assert kinds == [AgentCreated, StatusChanged, StatusChanged, StatusChanged, AgentCompleted]
        assert record.statuses(agent_id) == ["queued", "running", "completed"]


def test_a_result_is_stored_before_anybody_is_told() -> None:
    with staged("done") as stage:
        found: list[Any] = []
        bus = stage.client.get_runtime().bus
        bus.subscribe(
            lambda event: found.append(stage.call("get_subagent_result", agent_id=event.agent_id)),
            interest=frozenset({AgentCompleted}),
        )
        agent_id = stage.launch()
        wait_for(lambda: bool(found))
        assert (found[0]["agent_id"], found[0]["status"], found[0]["response"]) == (agent_id, "completed", "done")


def test_a_result_can_be_read_again_and_again_also_after_the_agent_is_closed() -> None:
    with staged("done") as stage:
        agent_id = stage.launch()
        first = stage.result(agent_id)
        stage.call("close_subagent", agent_id=agent_id)
        assert stage.result(agent_id) == stage.call("get_subagent_result", agent_id=agent_id) == first
        assert "closed" in stage.call("continue_subagent", agent_id=agent_id, message="more")["error"]


def test_an_answer_without_a_word_is_told_as_such() -> None:
    with staged(Reply("")) as stage:
        result = stage.spawn()
        assert (result["status"], result["response"]) == ("completed", "")
        assert "without saying anything" in result["notes"][0]
    with staged("a word") as stage:
        assert "notes" not in stage.spawn()


def test_a_run_is_finished_once_and_the_first_end_counts() -> None:
    with staged("done") as stage:
        agent_id = stage.spawn()["agent_id"]
        run = run_of(stage, agent_id)
        before = run.result
        assert not run.finish(SubagentResult(agent_id, Status.FAILED))
        assert not run.begin()
        assert run.result is before


def test_a_run_cannot_be_continued_while_it_works() -> None:
    hold = Hold("done")
    with staged(hold) as stage:
        agent_id = stage.launch()
        hold.wait_entered()
        refused = stage.call("continue_subagent", agent_id=agent_id, message="more")
        assert refused["success"] is False
        assert "running" in refused["error"]
        hold.release()
        assert_at_rest(stage)


def test_a_name_is_enough_where_only_one_has_it() -> None:
    deep = {"max_depth": 2, "max_total_spawns": 100, **profiles(DEEP)}
    with staged("done", config=deep) as stage:
        stage.spawn("one", name="ann")
        for number in range(30):
            stage.spawn(f"task {number}", name="bob")
        assert stage.call("get_subagent_result", agent_id="ann")["complete"]
        many = stage.call("get_subagent_result", agent_id="bob")["error"]
        assert "30 subagents are named 'bob'" in many
        assert many.count("subagent_") == 20, "a list that stays readable"
        assert "no subagent 'carl'" in stage.call("get_subagent_result", agent_id="carl")["error"]


def test_nobody_reaches_an_agent_beside_or_above_it() -> None:
    hold = Hold("done")

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "beside":
            return hold(request)
        if not answers_in(request):
            return calling(("cancel_subagent", {"agent_id": task_of(request)}))
        return str(answers_in(request)[-1])

    with staged(child, config={"max_depth": 2, **profiles(DEEP)}) as stage:
        beside = stage.launch("beside")
        hold.wait_entered()
        assert "no subagent" in stage.spawn(beside, profile="deep")["response"]
        assert not run_of(stage, beside).status.is_final
        hold.release()
        assert_at_rest(stage)


# -- max_turns and context collection ------------------------------------------------------------------


class _Archive(Plugin):
    """A tool whose answers fill a context."""

    name = "archive"

    @tool
    def read(self, page: int) -> str:
        """Read a page."""
        return f"page {page}: " + "lorem ipsum " * 40


class _Reader:
    """A child that reads page after page, and notes how large each request was."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.choices: list[str] = []

    def __call__(self, request: ModelRequest) -> Step:
        if not request.tools.schemas:
            return "a summary of what was read"  # a collection, not a turn
        self.sizes.append(sum(message.tokens for message in request.messages))
        self.choices.append(request.tool_choice)
        assert "read all pages" in user_texts(request)[0], "the task is never collected"
        if request.tool_choice == "none":
            return f"handing over after {len(self.sizes)} calls"
        return calling(("read", {"page": len(self.sizes)}))


@pytest.mark.parametrize("strategy", ["truncate", "summarize", "hybrid"])
def test_500_turns_on_a_small_window_stay_below_it_and_max_turns_holds(strategy: str) -> None:
    window = 6_000
    reader = SubagentProfile("reader", plugins=["archive"], max_turns=500, gc={"type": strategy})
    model = _Reader()
    with staged(model, _Archive(), config=profiles(reader), context_window=window) as stage:
        result = stage.spawn("read all pages", profile="reader")
        assert (result["status"], result["reason"]) == ("partial", "max_turns")
        assert result["response"] == "handing over after 500 calls"
        assert result["turns_used"] == len(model.sizes) == 500
        assert max(model.sizes) < window
        assert model.choices.count("none") == 1
        session = agent_of(stage, result["agent_id"]).session
        assert session is not None
        assert len(session.get_gc_history()) > 5, "the window is small enough to need collecting"
        again = stage.call("continue_subagent", agent_id=result["agent_id"], message="go on")
        assert again["turns_used"] == 500, "another run has turns of its own"
        assert max(model.sizes) < window


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_last_turn_hands_over(limit: int) -> None:
    few = SubagentProfile("few", plugins=["lab"], max_turns=limit)

    def child(request: ModelRequest) -> Step:
        return calling(("add", {"a": 1})) if request.tool_choice == "auto" else "what I have"

    with staged(child, Lab(), config=profiles(few)) as stage:
        result = stage.spawn(profile="few")
        assert (result["response"], result["turns_used"]) == ("what I have", limit)
        assert len(stage.play.child_requests) == limit
        if limit > 1:
            assert (result["status"], result["reason"]) == ("partial", "max_turns")
            assert user_texts(stage.play.child_requests[-1])[-1] == HAND_OVER


def test_max_turns_bounds_calls_of_a_model_that_never_stops_asking() -> None:
    few = SubagentProfile("few", plugins=["lab"], max_turns=3)
    with staged(lambda request: calling(("add", {"a": 1})), Lab(), config=profiles(few)) as stage:
        assert stage.spawn(profile="few")["status"] == "partial"
        assert len(stage.play.child_requests) == 3


# -- what stays ----------------------------------------------------------------------------------------


def test_a_closed_agent_keeps_its_result_and_nothing_of_its_conversation() -> None:
    def child(request: ModelRequest) -> Step:
        here = int(task_of(request))
        return "done" if here == 3 or answers_in(request) else spawning(str(here + 1), profile="deep")

    with staged(child, config={"max_depth": 3, **profiles(DEEP)}) as stage:
        agent_id = stage.spawn("1", profile="deep")["agent_id"]
        agents = [agent_of(stage, agent_id), *tree_of(stage).below(agent_id)]
        sessions = [weakref.ref(agent.session) for agent in agents if agent.session is not None]
        assert len(sessions) == 3
        stage.play.child_requests.clear()
        stage.call("close_subagent", agent_id=agent_id)
        wait_for(lambda: gc.collect() >= 0 and not any(ref() is not None for ref in sessions))
        assert [agent.run.result.response for agent in agents if agent.run.result is not None] == ["done"] * 3


def test_closed_agents_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "KEPT_CLOSED", 5)
    with staged("done") as stage:
        ids = [stage.spawn(f"task {n}", name=f"name {n % 2}")["agent_id"] for n in range(12)]
        for agent_id in ids[:10]:
            stage.call("close_subagent", agent_id=agent_id)
            stage.call("close_subagent", agent_id=agent_id)
        known = [agent.agent_id for agent in tree_of(stage).below("main")]
        assert known == ids[5:]
        assert stage.result(ids[5])["response"] == "done"
        assert "no subagent" in stage.call("get_subagent_result", agent_id=ids[4])["error"]
        assert stage.call("get_subagent_result", agent_id="name 0")["agent_id"] == ids[10], "the only one not closed"
        assert tree_of(stage).spawned == 12, "those that are forgotten count all the same"


def test_earlier_runs_of_an_agent_are_let_go() -> None:
    with staged("done") as stage:
        agent_id = stage.spawn()["agent_id"]
        runs = []
        for _ in range(20):
            runs.append(weakref.ref(run_of(stage, agent_id)))
            stage.call("continue_subagent", agent_id=agent_id, message="more")
        wait_for(lambda: gc.collect() >= 0 and not any(ref() is not None for ref in runs))
        assert agent_of(stage, agent_id).turns == 21


def test_no_callback_and_no_child_token_stays_on_the_parents() -> None:
    with staged(lambda request: Reply("done", delay=0.001), config={"max_total_spawns": 1000}) as stage:
        session = stage.client.get_session()
        for number in range(50):
            stage.spawn(f"task {number}")
            agent_id = stage.launch(f"other {number}")
            stage.call("cancel_subagent", agent_id=agent_id)
        for agent in tree_of(stage).below("main"):
            stage.call("close_subagent", agent_id=agent.agent_id)
        assert_at_rest(stage)
        gc.collect()
        assert not session.cancel_token._callbacks
        live = [agent.run.cancel for agent in tree_of(stage).below("main")]
        assert all(not token._callbacks for token in live)


def test_the_plugins_of_a_child_are_shut_down_with_it_or_with_the_client() -> None:
    shut: list[str] = []

    class Own(Plugin):
        """A plugin that tells when it is shut down."""

        name = "own"

        def initialize(self, config: dict[str, Any] | None = None) -> None:
            """Remember whose it is."""
            self.owner = (config or {}).get("owner", "host")

        def shutdown(self) -> None:
            """Tell."""
            shut.append(self.owner)

        @tool
        def who(self) -> str:
            """Say whose it is."""
            return str(self.owner)

    def profile(name: str) -> SubagentProfile:
        return SubagentProfile(name, plugins=["own"], plugin_configs={"own": {"owner": name}})

    hold = Hold("done")

    def child(request: ModelRequest) -> Step:
        return hold(request) if task_of(request) == "hold" else "done"

    config = {"max_concurrent": 1, **profiles(profile("closed"), profile("waiting"), profile("queued"))}
    with staged(child, Own(), config=config) as stage:
        closed = stage.spawn("a", profile="closed")["agent_id"]
        stage.spawn("b", profile="waiting")
        stage.launch("hold")
        hold.wait_entered()
        queued = stage.launch("c", profile="queued")
        stage.call("cancel_subagent", agent_id=queued)
        assert shut == ["queued"], "it never began, and what was prepared for it is gone"
        stage.call("close_subagent", agent_id=closed)
        assert shut == ["queued", "closed"]
        hold.release()
        assert_at_rest(stage)
        stage.client.close()
        assert sorted(shut) == ["closed", "host", "queued", "waiting"]


def test_threads_are_used_again() -> None:
    with staged("done", config={"max_total_spawns": 1000}) as stage:
        for number in range(20):
            stage.spawn(f"warm up {number}")
        before = threading.active_count()
        for number in range(300):
            stage.spawn(f"task {number}")
        assert threading.active_count() <= before + 2


def test_a_caller_that_is_cancelled_leaves_when_its_child_has_ended() -> None:
    asked = threading.Event()

    def child(request: ModelRequest) -> Step:
        asked.set()
        return Reply("never", delay=600)

    with staged(Play(parent=[spawning(), "unused"], child=child)) as stage:
        turn = in_thread(stage.ask)
        assert asked.wait(20)
        stage.client.stop()
        assert turn() == "[cancelled]"
        (agent,) = tree_of(stage).below("main")
        assert agent.run.status is Status.CANCELLED, "the receipt is not ahead of the deed"
        assert [m.role for m in stage.client.get_history()][-1] is Role.MODEL
