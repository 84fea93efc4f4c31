"""Agents below agents: no deadlock at any depth, exact limits and budgets, duplicates, and news from far below."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.engine import Record, assert_at_rest, engine_of, in_thread, profiles, run_of, tree_of
from support.stress import rapid_switching, run_threads, wait_for
from support.subagents import Hold, Play, Stage, answers_in, calling, last_answer, spawning, staged, task_of, user_texts
from support.tools import Lab

from shared.events import PermissionAsked
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, Step
from shared.subagents.agent import Subagent
from shared.subagents.result import Status
from shared.types import Role, TokenUsage

DEEP = SubagentProfile("deep", plugins=["subagent"])
ASK = {"version": "1.0", "defaultPolicy": "ask", "channel": {"type": "queue"}}


def _depth(request: ModelRequest) -> int:
    return int(task_of(request).split()[0])


def _agents(stage: Stage) -> list[Subagent]:
    return tree_of(stage).below("main")


# -- no deadlock -------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("depth", [1, 4, 8])
def test_a_chain_of_waiting_parents_needs_one_slot(depth: int, slots: int) -> None:
    def child(request: ModelRequest) -> Step:
        here = _depth(request)
        if answers_in(request):
            return f"{here}:{last_answer(request)['response']}"
        return "bottom" if here == depth else spawning(f"{here + 1}", profile="deep")

    with staged(child, config={"max_depth": depth, "max_concurrent": slots, **profiles(DEEP)}) as stage:
        answer = stage.spawn("1", profile="deep")
        assert answer["response"] == "".join(f"{level}:" for level in range(1, depth)) + "bottom"
        assert_at_rest(stage)


@pytest.mark.parametrize("slots", [1, 3])
def test_many_parents_that_each_wait_for_many_children(slots: int) -> None:
    def child(request: ModelRequest) -> Step:
        here, found = _depth(request), answers_in(request)
        if here == 3:
            return "leaf"
        if not found:
            more = {"profile": "deep", "background": True}
            return calling(*(("spawn_subagent", {"task": f"{here + 1} {n}", **more}) for n in range(3)))
        if len(found) == 3:
            return calling(("wait_for_subagents", {}))
        return f"{found[-1]['count']} done"

    config = {"max_depth": 3, "max_concurrent": slots, "max_children": 30, **profiles(DEEP)}
    with staged(child, config=config) as stage:
        answers: list[Any] = []
        run_threads(6, lambda index: answers.append(stage.spawn(f"1 {index}", profile="deep")))
        assert [answer["response"] for answer in answers] == ["3 done"] * 6
        assert len(_agents(stage)) == 6 * (1 + 3 + 9)
        assert_at_rest(stage)


def test_parallel_calls_of_one_run_that_wait_and_work_in_turn() -> None:
    """One call goes on while another begins to wait: the run must never wait with the only slot in its hand."""
    lab = Lab()
    deep = SubagentProfile("deep", plugins=["subagent", "lab"])

    def child(request: ModelRequest) -> Step:
        if _depth(request) == 2:
            return "leaf"
        if len(answers_in(request)) >= 40:
            return "done"
        round_ = len(answers_in(request))
        spawn = [("spawn_subagent", {"task": f"2 {round_}.{n}"}) for n in range(3)]
        return calling(spawn[0], ("add", {"a": 1}), *spawn[1:])

    deep = SubagentProfile("deep", plugins=["subagent", "lab"], max_turns=20)
    config = {"max_depth": 2, "max_concurrent": 1, "max_children": 40, "max_total_spawns": 1000, **profiles(deep)}
    with rapid_switching(), staged(child, lab, config=config) as stage:
        answers: list[Any] = []
        run_threads(4, lambda index: answers.append(stage.spawn(f"1 {index}", profile="deep")))
        assert {answer["status"] for answer in answers} == {"completed"}
        assert_at_rest(stage)


def test_a_question_to_a_person_holds_no_slot() -> None:
    asked = threading.Event()
    ask_add = {"version": "1.0", "defaultPolicy": "allow", "channel": {"type": "queue"}}
    policy = {**ask_add, "whitelist": {"tools": ["spawn_subagent", "get_subagent_result"]}, "defaultPolicy": "ask"}

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "asks" and not answers_in(request):
            return calling(("add", {"a": 1}))
        return "done"

    with staged(child, Lab(), config={"max_concurrent": 1}, permissions=policy) as stage:
        runtime = stage.client.get_runtime()
        runtime.bus.subscribe(lambda event: asked.set(), interest=frozenset({PermissionAsked}))
        asking = stage.launch("asks")
        assert asked.wait(20)
        assert stage.spawn("another")["status"] == "completed"
        broker = runtime.broker
        assert broker is not None
        broker.answer(broker.pending()[0].id, "y")
        assert stage.result(asking)["status"] == "completed"
        assert_at_rest(stage)


def test_a_wait_for_state_lets_the_queued_sibling_write_it() -> None:
    def child(request: ModelRequest) -> Step:
        here, found = task_of(request), answers_in(request)
        if here.startswith("1"):
            if not found:
                spawns = [("spawn_subagent", {"task": f"2 {n}", "profile": "deep"}) for n in range(6)]
                return calling(*spawns)
            return "done"
        if found:
            return "done"
        number = int(here.split()[1])
        if number == 5:
            return calling(("set_shared_state", {"key": "go", "value": True}))
        return calling(("get_shared_state", {"key": "go", "wait_for_version": 1}))

    with staged(child, config={"max_depth": 2, "max_concurrent": 1, **profiles(DEEP)}) as stage:
        assert stage.spawn("1", profile="deep")["status"] == "completed"
        assert {agent.run.status for agent in _agents(stage)} == {Status.COMPLETED}
        assert_at_rest(stage)


# -- limits ------------------------------------------------------------------------------------------


def test_each_refusal_names_the_limit_and_how_to_raise_it() -> None:
    hold = Hold("done")
    narrow = SubagentProfile("narrow", plugins=["subagent"], max_children=1)

    def child(request: ModelRequest) -> Step:
        if task_of(request) != "narrow":
            return hold(request)
        if not answers_in(request):
            return calling(*(("spawn_subagent", {"task": f"{n}", "background": True}) for n in range(3)))
        return str(answers_in(request))

    config = {"max_children": 3, "max_total_spawns": 5, "max_depth": 2, **profiles(narrow, DEEP)}
    with staged(child, config=config) as stage:
        answer = stage.spawn("narrow", profile="narrow")
        assert answer["response"].count("max_children is 1") == 2, "the profile's own limit, within the settings'"
        for number in range(3):
            stage.launch(f"task {number}")
        refused = stage.spawn("too many")
        assert refused["success"] is False
        assert "max_children is 3" in refused["error"]
        assert "raise max_children" in refused["error"]
        hold.release()
        assert_at_rest(stage)
        refused = stage.spawn("one more")
        assert "max_total_spawns is 5" in refused["error"]
        assert "raise max_total_spawns" in refused["error"]
        assert len(_agents(stage)) == 5
        assert_at_rest(stage)


def test_no_more_than_max_children_and_max_total_whatever_the_fan_out() -> None:
    hold = Hold("done")
    with rapid_switching(), staged(hold, config={"max_children": 7, "max_total_spawns": 10}) as stage:
        answers: list[Any] = []
        lock = threading.Lock()

        def body(index: int) -> None:
            for number in range(5):
                answer = stage.spawn(f"{index}.{number}", background=True)
                with lock:
                    answers.append(answer)

        run_threads(8, body)
        assert sum(answer["success"] for answer in answers) == 7
        assert len(_agents(stage)) == 7
        hold.release()
        assert_at_rest(stage)
        run_threads(8, body)
        assert_at_rest(stage)
        assert len(_agents(stage)) == tree_of(stage).spawned == 10


def test_depth_is_refused_before_anything_starts() -> None:
    def child(request: ModelRequest) -> Step:
        if answers_in(request):
            return str(last_answer(request))
        return spawning(f"{_depth(request) + 1}", profile="deep")

    shallow = SubagentProfile("deep", plugins=["subagent"], max_depth=2)
    with staged(child, config={"max_depth": 5, **profiles(shallow)}) as stage:
        assert stage.spawn("1", profile="deep")["status"] in ("completed", "denied")
        assert max(agent.depth for agent in _agents(stage)) == 2
        assert_at_rest(stage)


# -- duplicates --------------------------------------------------------------------------------------


def test_an_equal_spawn_while_one_is_live_is_that_one() -> None:
    hold = Hold("done")
    with staged(hold, config=profiles(DEEP)) as stage:
        first = stage.spawn("task", context={"notes": "n", "files": ["f"]}, background=True)
        hold.wait_entered()
        again = stage.spawn("task", context={"files": ["f"], "notes": "n"}, background=True)
        assert (again["agent_id"], again["duplicate"]) == (first["agent_id"], True)
        joining = in_thread(lambda: stage.spawn("task", context={"notes": "n", "files": ["f"]}))
        other = [
            stage.launch("task"),
            stage.launch("task", context={"notes": "other"}),
            stage.launch("other task"),
            stage.launch("task", profile="deep", context={"notes": "n", "files": ["f"]}),
            stage.launch("task", name="second", context={"notes": "n", "files": ["f"]}),
            stage.launch("task", context={"notes": "n", "files": ["f"]}, inline_config={"max_turns": 3}),
        ]
        assert len({first["agent_id"], *other}) == 7
        wait_for(lambda: bool(run_of(stage, first["agent_id"]).done._listeners))  # the joining call has joined
        hold.release()
        joined = joining()
        assert (joined["agent_id"], joined["response"]) == (first["agent_id"], "done")
        assert_at_rest(stage)
        assert stage.launch("task", context={"notes": "n", "files": ["f"]}) != first["agent_id"], "it is over"
        assert_at_rest(stage)


def test_equal_spawns_of_two_parents_are_two() -> None:
    def child(request: ModelRequest) -> Step:
        return Reply("done", delay=0.1) if answers_in(request) or _depth(request) == 2 else spawning("2")

    with staged(child, config={"max_depth": 2, **profiles(DEEP)}) as stage:
        run_threads(3, lambda index: stage.spawn(f"1 {index}", profile="deep"))
        assert len(_agents(stage)) == 6


def test_an_agent_that_is_continued_is_a_duplicate_too() -> None:
    hold = Hold("done")

    def child(request: ModelRequest) -> Step:
        return hold(request) if len(user_texts(request)) > 1 else "first answer"

    with staged(child) as stage:
        first = stage.spawn("task")["agent_id"]
        stage.call("continue_subagent", agent_id=first, message="more", background=True)
        hold.wait_entered()
        assert stage.spawn("task", background=True)["agent_id"] == first
        hold.release()
        assert_at_rest(stage)


# -- budgets -----------------------------------------------------------------------------------------


def test_a_budget_of_spawns_holds_for_the_whole_subtree() -> None:
    def child(request: ModelRequest) -> Step:
        here, found = _depth(request), answers_in(request)
        if here == 3 or found:
            return f"{sum(each['success'] for each in found)} spawned; {[each.get('error') for each in found]}"
        more = {"profile": "deep", "background": True}
        return calling(*(("spawn_subagent", {"task": f"{here + 1} {n}", **more}) for n in range(4)))

    bounded = SubagentProfile("bounded", plugins=["subagent"], budget={"spawns": 9})
    config = {"max_depth": 3, "max_concurrent": 4, **profiles(DEEP, bounded)}
    for _ in range(5):
        with rapid_switching(), staged(child, config=config) as stage:
            stage.spawn("1", profile="bounded")
            assert_at_rest(stage)
            assert len(_agents(stage)) == 1 + 9, "four, and five more by those four; never ten"
            errors = " ".join(agent.run.result.response for agent in _agents(stage) if agent.run.result is not None)
            tries = 4 + 4 * len(tree_of(stage).children(_agents(stage)[0].agent_id))
            assert errors.count("raise budget.spawns") == tries - 9


def test_a_budget_of_tool_calls_is_exact_under_fan_out() -> None:
    deep = SubagentProfile("deep", plugins=["lab"], max_turns=100)

    def child(request: ModelRequest) -> Step:
        if _depth(request) == 2:
            return calling(*(("add", {"a": n}) for n in range(3)))
        if answers_in(request):
            return calling(("wait_for_subagents", {}))
        more = {"profile": "deep", "background": True}
        return calling(*(("spawn_subagent", {"task": f"2 {n}", **more}) for n in range(6)))

    bounded = SubagentProfile("bounded", plugins=["subagent", "lab"], budget={"tool_calls": 31})
    config = {"max_depth": 2, "max_concurrent": 6, **profiles(deep, bounded)}
    with rapid_switching(), staged(child, Lab(), config=config) as stage:
        result = stage.spawn("1", profile="bounded")
        assert_at_rest(stage)
        assert (result["status"], result["reason"]) == ("partial", "budget")
        histories = [agent.session.get_history() for agent in _agents(stage) if agent.session is not None]
        results = [each for history in histories for message in history for each in message.results]
        run = [each for each in results if each.error_kind != "budget"]
        assert len(histories) == 7
        assert len(run) == 31, "not one call more, and none of the budget lost"
        refused = [each.text for each in results if each.error_kind == "budget"]
        assert all("raise budget.tool_calls" in text for text in refused)
        assert {agent.run.status for agent in _agents(stage)} == {Status.PARTIAL}


@pytest.mark.parametrize("kind", ["total_tokens", "cost_usd"])
def test_tokens_and_cost_never_exceed_what_the_top_may_spend(kind: str) -> None:
    limit = 60_000 if kind == "total_tokens" else 0.5

    def child(request: ModelRequest) -> Step:
        if _depth(request) == 2:
            usage = TokenUsage.of(request.prompt_tokens, min(400, request.settings.max_output_tokens or 400))
            return Reply("", (("list_shared_state", {}),), usage=usage)
        if answers_in(request):
            return calling(("wait_for_subagents", {}))
        more = {"profile": "worker", "background": True}
        return calling(*(("spawn_subagent", {"task": f"2 {n}", **more}) for n in range(8)))

    worker = SubagentProfile("worker", model="claude-sonnet-4-5", max_turns=10_000)
    bounded = SubagentProfile("bounded", plugins=["subagent"], model="claude-sonnet-4-5", budget={kind: limit})
    with staged(child, config={"max_depth": 2, **profiles(worker, bounded)}) as stage:
        top = stage.spawn("1", profile="bounded")
        assert_at_rest(stage)
        session = tree_of(stage).children("main")[0].session
        assert session is not None
        totals = session.account.subtree
        spent = totals.usage.total_tokens if kind == "total_tokens" else float(totals.cost_usd)
        assert limit * 0.5 < spent <= limit
        reasons = {(agent.run.status, agent.run.result.reason) for agent in _agents(stage)[1:] if agent.run.result}
        assert reasons == {(Status.PARTIAL, "budget")}
        assert (top["status"], top["reason"]) == ("partial", "budget")
        errors = [agent.run.result.error or "" for agent in _agents(stage) if agent.run.result is not None]
        assert any(f"raise budget.{kind}" in error for error in errors)


# -- news from below ---------------------------------------------------------------------------------


def test_a_child_with_live_descendants_is_announced_when_the_last_has_ended() -> None:
    hold = Hold("bottom is done")

    def child(request: ModelRequest) -> Step:
        if _depth(request) == 3:
            return hold(request)
        if answers_in(request):
            return f"answer of {_depth(request)}"
        return spawning(f"{_depth(request) + 1}", profile="deep", background=True)

    with staged(Play(child=child), config={"max_depth": 3, **profiles(DEEP)}) as stage:
        record = Record(stage)
        top = stage.launch("1", profile="deep")
        hold.wait_entered()
        wait_for(lambda: run_of(stage, top).done.is_open)
        (middle,) = tree_of(stage).children(top)
        wait_for(lambda: middle.run.done.is_open)
        assert middle.run.status is run_of(stage, top).status is Status.COMPLETED
        assert tree_of(stage).has_live_below(top), "its child has finished, its grandchild has not"
        stage.ask("anything new?")
        assert not any(top in text for text in user_texts(stage.play.parent_requests[-1]))
        hold.release()
        assert_at_rest(stage)
        stage.ask("and now?")
        told = [text for text in user_texts(stage.play.parent_requests[-1]) if top in text]
        assert len(told) == 1
        stage.ask("again?")
        assert sum(top in text for text in user_texts(stage.play.parent_requests[-1])) == 1, "each exactly once"
        assert set(record.completions().values()) == {1}


def test_the_end_of_an_earlier_run_is_announced_though_the_agent_works_again() -> None:
    """A run that ended in the background is not forgotten because its agent was continued meanwhile."""
    with rapid_switching(), staged(Play(child="done"), config={"max_total_spawns": 1000}) as stage:
        for number in range(100):
            agent_id = stage.launch(f"task {number}")
            wait_for(lambda: run_of(stage, agent_id).status.is_final)  # noqa: B023
            first = run_of(stage, agent_id)
            stage.call("continue_subagent", agent_id=agent_id, message="more")
            assert_at_rest(stage)
            stage.ask("news?")
            assert first.told


def test_steering_and_results_go_to_the_run_they_are_meant_for() -> None:
    hold = Hold("first done")

    def child(request: ModelRequest) -> Step:
        said = sum(message.role is Role.MODEL for message in request.messages)
        return hold(request) if not said else f"heard {user_texts(request)[-1]}"

    with staged(child) as stage:
        agent_id = stage.launch("task")
        hold.wait_entered()
        assert stage.call("send_to_subagent", agent_id=agent_id, message="steer")["success"]
        hold.release()
        result = stage.result(agent_id)
        assert result["response"] == "heard steer"
        assert stage.call("continue_subagent", agent_id=agent_id, message="go on")["response"] == "heard go on"
        assert engine_of(stage).is_idle
