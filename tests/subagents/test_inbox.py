"""Completions of background subagents reach their parent's model once each, in one digest within a budget."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from support.subagents import (
    PATIENCE,
    Errands,
    Hold,
    Play,
    Stage,
    answers_in,
    calling,
    is_child,
    spawning,
    staged,
    task_of,
    user_texts,
)

from shared.errors import ServerFailed
from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.subagents.inbox import HEAD
from shared.types import Role, estimate_tokens

MANY = {"max_children": 1000, "max_total_spawns": 1000, "max_concurrent": 4}


def digests(stage: Stage) -> list[str]:
    """All digests in the parent's conversation, oldest first."""
    said = [message.text or "" for message in stage.client.get_history() if message.role is Role.USER]
    return [text for text in said if text.startswith(HEAD)]


def settle(stage: Stage, *agent_ids: str) -> None:
    """Wait until runs have ended, without reading their results."""
    tree = stage.client.get_session().extras["subagents"].tree
    for agent_id in agent_ids:
        agent = tree.get(agent_id)
        assert agent is not None
        assert agent.run.done.wait(PATIENCE)


def test_an_idle_parent_hears_of_it_in_its_next_turn() -> None:
    with staged(Play("noted", "42 is the answer")) as stage:
        agent_id = stage.launch(name="thinker")
        settle(stage, agent_id)
        stage.ask()
        [digest] = digests(stage)
        assert agent_id in digest
        assert "'thinker': completed" in digest
        assert "42 is the answer" in digest
        stage.ask()
        stage.ask()
        assert digests(stage) == [digest]


def test_a_busy_parent_hears_of_it_before_its_next_model_call() -> None:
    stages: list[Stage] = []

    def parent(request: ModelRequest) -> Step:
        answers = answers_in(request)
        if not answers:
            return spawning("x", background=True)
        if len(answers) == 1:
            settle(stages[0], answers[0]["agent_id"])
            return calling(("list_shared_state", {}))
        return user_texts(request)[-1]

    with staged(Play(parent, "found it")) as stage:
        stages.append(stage)
        assert "found it" in stage.ask()
        assert len(digests(stage)) == 1


def test_a_background_parent_is_told_at_its_own_next_call() -> None:
    """A child that may spawn hears of its own children, and the main session does not."""
    stages: list[Stage] = []

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "leaf":
            return "leaf's answer"
        answers = answers_in(request)
        if not answers:
            return spawning("leaf", background=True)
        if len(answers) == 1:
            settle(stages[0], answers[0]["agent_id"])
            return calling(("list_shared_state", {}))
        return f"heard: {user_texts(request)[-1]}"

    config = {"max_depth": 2, "profiles": {"boss": {"plugins": ["subagent"]}}}
    with staged(Play("noted", child), config=config) as stage:
        stages.append(stage)
        answer = stage.spawn("boss's task", profile="boss")
        assert "leaf's answer" in answer["response"]
        stage.ask()
        assert digests(stage) == []


def test_several_are_merged_into_one_digest() -> None:
    with staged(Play("noted", lambda request: f"answer to {task_of(request)}")) as stage:
        ids = [stage.launch(f"question {number}") for number in range(5)]
        settle(stage, *ids)
        stage.ask()
        [digest] = digests(stage)
        assert all(digest.count(agent_id) == 1 for agent_id in ids)
        assert all(f"answer to question {number}" in digest for number in range(5))


def test_failures_and_their_reasons_are_told() -> None:
    def child(request: ModelRequest) -> Step:
        return ServerFailed("the service is down") if task_of(request) == "bad" else calling(("list_shared_state", {}))

    with staged(Play("noted", child)) as stage:
        bad = stage.launch("bad", inline_config={"max_turns": 2})
        capped = stage.launch("capped", inline_config={"max_turns": 2})
        settle(stage, bad, capped)
        stage.ask()
        [digest] = digests(stage)
        assert f"{bad}: failed" in digest
        assert "the service is down" in digest
        assert f"{capped}: partial (max_turns)" in digest


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_RETRY_ATTEMPTS", "1")


@pytest.mark.parametrize("how", ["read", "awaited", "waited for", "cancelled", "spawned sync", "continued sync"])
def test_what_the_parent_knows_is_not_announced(how: str) -> None:
    hold = Hold()
    with staged(Play("noted", hold if how == "cancelled" else "ok")) as stage:
        if how == "spawned sync":
            stage.spawn()
        elif how == "continued sync":
            agent_id = stage.spawn()["agent_id"]
            stage.call("continue_subagent", agent_id=agent_id, message="more")
        else:
            agent_id = stage.launch()
            if how == "read":
                settle(stage, agent_id)
                assert stage.call("get_subagent_result", agent_id=agent_id)["complete"]
            elif how == "awaited":
                assert stage.result(agent_id)["complete"]
            elif how == "waited for":
                assert stage.call("wait_for_subagents")["count"] == 1
            else:
                hold.wait_entered()
                assert stage.call("cancel_subagent", agent_id=agent_id)["cancelled"]
        hold.release()
        stage.ask()
        assert digests(stage) == []


def test_each_background_run_of_one_agent_is_announced() -> None:
    with staged(Play("noted", lambda request: f"run {len(user_texts(request))}")) as stage:
        agent_id = stage.launch()
        settle(stage, agent_id)
        stage.ask()
        stage.call("continue_subagent", agent_id=agent_id, message="again", background=True)
        settle(stage, agent_id)
        stage.ask()
        first, second = digests(stage)
        assert "run 1" in first
        assert "run 2" in second


@pytest.mark.parametrize("count", [100, 150, 400])
@pytest.mark.parametrize("tokens", [300, 1000, 2000])
def test_many_completions_stay_within_the_budget(count: int, tokens: int) -> None:
    config = {**MANY, "digest_tokens": tokens}
    with staged(Play("noted", "an answer of some length " * 20), config=config) as stage:
        ids = [
            stage.launch(f"task {number}", name=f"a rather long name for number {number}") for number in range(count)
        ]
        settle(stage, *ids)
        for _ in range(count):
            before = len(digests(stage))
            stage.ask()
            if len(digests(stage)) == before:
                break
        found = digests(stage)
        assert all(estimate_tokens(digest) <= tokens + 1 for digest in found)
        told = Counter(agent_id for digest in found for agent_id in ids if agent_id in digest)
        assert told == Counter(ids), "each exactly once"
        if tokens == 2000 and count == 100:
            assert len(found) == 1, "a hundred fit into one digest"


def test_a_huge_answer_leaves_room_for_the_small_ones() -> None:
    def child(request: ModelRequest) -> Step:
        return "x" * 200_000 if task_of(request) == "huge" else "a small but important answer"

    with staged(Play("noted", child)) as stage:
        ids = [stage.launch("huge"), stage.launch("small")]
        settle(stage, *ids)
        stage.ask()
        [digest] = digests(stage)
        assert "a small but important answer" in digest
        assert estimate_tokens(digest) <= 2001


def test_long_errors_stay_within_the_budget() -> None:
    with staged(Play("noted", RuntimeError("e" * 50_000)), config={"digest_tokens": 400, **MANY}) as stage:
        ids = [stage.launch(f"{number}") for number in range(10)]
        settle(stage, *ids)
        stage.ask()
        [digest] = digests(stage)
        assert estimate_tokens(digest) <= 401
        assert all(agent_id in digest for agent_id in ids)


def test_a_child_is_announced_when_the_last_below_it_has_ended() -> None:
    hold = Hold("leaf's answer")

    def child(request: ModelRequest) -> Step:
        match task_of(request):
            case "leaf":
                return hold(request)
            case "middle":
                return "middle's answer" if answers_in(request) else spawning("leaf", background=True)
        return "top's answer" if answers_in(request) else spawning("middle", background=True, profile="boss")

    config = {"max_depth": 3, "profiles": {"boss": {"plugins": ["subagent"]}}}
    with staged(Play("noted", child), config=config) as stage:
        top = stage.launch("top", profile="boss")
        hold.wait_entered()
        settle(stage, top)
        stage.ask()
        assert digests(stage) == [], "something below still works"
        listed = {each["agent_id"]: each for each in stage.call("list_active_subagents")["active_sessions"]}
        leaf = next(key for key, each in listed.items() if each["status"] == "running")
        hold.release()
        settle(stage, *listed, leaf)
        stage.ask()
        [digest] = digests(stage)
        assert f"{top} 'boss': completed" in digest
        assert "top's answer" in digest
        assert leaf not in digest, "a grandchild is its own parent's affair"


def test_an_announcement_is_not_lost_with_a_cancelled_turn() -> None:
    """A turn that is stopped while it takes the digest leaves it to the next one."""
    stopped, gave_back = threading.Event(), threading.Event()
    with staged(Play("noted", "found it")) as stage:
        agent_id = stage.launch()
        settle(stage, agent_id)
        session = stage.client.get_session()

        def cut_off() -> list[str]:
            turn = session.turn
            if turn is not None and not stopped.is_set():
                stopped.set()
                turn.cancel.cancel("stopped at a bad moment")
                turn.fence.wait(PATIENCE)  # until the session has given the turn up
                keep = turn.give_back

                def give_back(unread: list[str]) -> None:
                    keep(unread)
                    gave_back.set()

                turn.give_back = give_back
            return []

        session.mail.sources.append(cut_off)
        stage.ask("first")
        assert stopped.is_set()
        assert gave_back.wait(PATIENCE)
        assert digests(stage) == []
        stage.ask("second")
        assert len(digests(stage)) == 1


def test_each_run_is_told_once_under_races() -> None:
    """Reads, waits and turns at once: of every run the parent hears by exactly one way, or by a read of its own."""
    count = 120
    play = Play(Errands(), lambda request: f"answer to {task_of(request)}")
    with staged(play, config={**MANY, "digest_tokens": 100_000}) as stage:
        errands = play.parent
        assert isinstance(errands, Errands)
        errands.orders = [("list_shared_state", {})]
        go = threading.Barrier(4, timeout=PATIENCE)
        ids: list[str] = []
        waited: list[str] = []

        def launch() -> None:
            go.wait()
            ids.extend(stage.launch(f"task {number}") for number in range(count))

        def wait() -> None:
            go.wait()
            for _ in range(count):
                answer = stage.call("wait_for_subagents", mode="any", timeout_seconds=0.001)
                waited.extend(each["agent_id"] for each in answer["results"])

        def talk() -> None:
            go.wait()
            for _ in range(count // 4):
                stage.ask()

        threads = [threading.Thread(target=work) for work in (launch, wait, talk)]
        for thread in threads:
            thread.start()
        go.wait()
        for thread in threads:
            thread.join(60)
        settle(stage, *ids)
        stage.ask()
        told = Counter(agent_id for digest in digests(stage) for agent_id in ids if agent_id in digest)
        assert set(told.values()) <= {1}
        assert set(told) | set(waited) == set(ids)
        assert not is_child(stage.play.parent_requests[-1])
        stage.ask()
        again = Counter(agent_id for digest in digests(stage) for agent_id in ids if agent_id in digest)
        assert again == told
