"""Long results: previews within a token budget, pages that lose nothing, parents that never overflow."""

from __future__ import annotations

import json
import random
import string
import threading
from typing import Any

import pytest
from support.subagents import (
    PATIENCE,
    Errands,
    Hold,
    Play,
    Stage,
    answers_in,
    calling,
    spawning,
    staged,
    task_of,
    user_texts,
)

from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.types import CHARS_PER_TOKEN, estimate_tokens

HUGE = 100_000 * CHARS_PER_TOKEN


def essay(seed: object, length: int = HUGE) -> str:
    """A long text in which no two places are alike."""
    words = random.Random(str(seed))
    line = "".join(words.choices(string.ascii_letters + ' \n"\\', k=997))
    return "".join(f"{number}:{line}\n" for number in range(length // 1000 + 1))[:length]


def read_all(stage: Stage, agent_id: str) -> str:
    """The whole response, page by page."""
    pages, offset = [], 0
    while offset is not None:
        answer = stage.call("get_subagent_result", agent_id=agent_id, offset=offset)
        pages.append(answer["response"])
        assert answer["response"], "a page has at least one character"
        offset = answer.get("next_offset")
    return "".join(pages)


TEXTS = {
    "letters": essay(1, 50_000),
    "quotes": '"' * 30_000,
    "control characters": "\x01\n" * 20_000,
    "emoji": "\N{GRINNING FACE}\N{COMBINING ACUTE ACCENT}" * 20_000,
    "exactly the budget": "x" * (300 * CHARS_PER_TOKEN),
    "one more": "x" * (300 * CHARS_PER_TOKEN + 1),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_pages_rebuild_the_whole_response(text: str) -> None:
    with staged(text, config={"result_tokens": 300}) as stage:
        answer = stage.spawn()
        assert answer["success"] is True
        assert len(json.dumps(answer["response"], ensure_ascii=False)) <= 300 * CHARS_PER_TOKEN + 2
        whole = len(json.dumps(text, ensure_ascii=False)) - 2 <= 300 * CHARS_PER_TOKEN
        assert ("next_offset" in answer) is not whole
        if not whole:
            assert answer["response_length"] == len(text)
        assert read_all(stage, answer["agent_id"]) == text


def test_a_short_response_has_no_pages() -> None:
    with staged("short") as stage:
        answer = stage.spawn()
        assert "next_offset" not in answer
        assert "response_length" not in answer


def test_an_offset_anywhere() -> None:
    text = essay(2, 5_000)
    with staged(text, config={"result_tokens": 200}) as stage:
        agent_id = stage.spawn()["agent_id"]
        middle = stage.call("get_subagent_result", agent_id=agent_id, offset=4_321)
        assert text[4_321:].startswith(middle["response"])
        beyond = stage.call("get_subagent_result", agent_id=agent_id, offset=5_001)
        assert (beyond["response"], beyond["response_length"]) == ("", 5_000)
        assert "next_offset" not in beyond
        assert "offset" in stage.call("get_subagent_result", agent_id=agent_id, offset=-1)["error"]


def test_the_newest_run_is_what_is_read() -> None:
    with staged(lambda request: essay(len(user_texts(request)), 3_000), config={"result_tokens": 200}) as stage:
        agent_id = stage.spawn()["agent_id"]
        stage.call("continue_subagent", agent_id=agent_id, message="again")
        assert read_all(stage, agent_id) == essay(2, 3_000)


# -- eight at once -----------------------------------------------------------------------------------


def check_parent(stage: Stage, window: int) -> None:
    """The parent's context never overflowed, and nothing had to be thrown out of it."""
    assert stage.client.get_session().get_gc_history() == []
    for request in stage.play.parent_requests:
        assert request.prompt_tokens < window * 0.7


def child(request: ModelRequest) -> Step:
    return essay(task_of(request))


TASKS = [f"task {number}" for number in range(8)]
WINDOWS = (16_000, 200_000)


@pytest.mark.parametrize("window", WINDOWS)
def test_eight_huge_results_of_parallel_spawns(window: int) -> None:
    spawn_all = calling(*(("spawn_subagent", {"task": task}) for task in TASKS))
    with staged(Play([spawn_all, "done"], child), context_window=window) as stage:
        assert stage.ask() == "done"
        check_parent(stage, window)
        answers = answers_in(stage.play.parent_requests[-1])
        assert [answer["success"] for answer in answers] == [True] * 8
        for task, answer in zip(TASKS, answers, strict=True):
            assert answer["next_offset"] == len(answer["response"])
            assert essay(task).startswith(answer["response"])
        assert read_all(stage, answers[3]["agent_id"]) == essay(TASKS[3])


@pytest.mark.parametrize("window", WINDOWS)
def test_eight_huge_results_awaited(window: int) -> None:
    spawn_all = calling(*(("spawn_subagent", {"task": task, "background": True}) for task in TASKS))
    at_work = threading.Event()

    def wait(request: ModelRequest) -> Step:
        at_work.set()
        return calling(("wait_for_subagents", {}))

    def late_child(request: ModelRequest) -> Step:
        assert at_work.wait(PATIENCE)
        return child(request)

    with staged(Play([spawn_all, wait, "done"], late_child), context_window=window) as stage:
        assert stage.ask() == "done"
        check_parent(stage, window)
        *spawned, answer = answers_in(stage.play.parent_requests[-1])
        tasks = {each["agent_id"]: task for each, task in zip(spawned, TASKS, strict=True)}
        assert (answer["complete"], answer["count"], len(answer["results"])) == (True, 8, 8)
        assert {result["agent_id"] for result in answer["results"]} == set(tasks)
        for result in answer["results"]:
            assert result["response"]
            assert essay(tasks[result["agent_id"]]).startswith(result["response"])
            assert result["response_length"] == HUGE
        assert len(user_texts(stage.play.parent_requests[-1])) == 1, "what was awaited is not announced"


@pytest.mark.parametrize("window", WINDOWS)
def test_eight_huge_results_announced(window: int) -> None:
    with staged(Play("done", child), context_window=window) as stage:
        ids = [stage.launch(task) for task in TASKS]
        for agent in stage.client.get_session().extras["subagents"].tree.below("main"):
            assert agent.run.done.wait(20)
        stage.ask()
        check_parent(stage, window)
        digest, _ = user_texts(stage.play.parent_requests[-1])[::-1]
        assert all(digest.count(agent_id) == 1 for agent_id in ids)
        assert estimate_tokens(digest) <= min(2000, window // 20) + 1
        assert read_all(stage, ids[0]) == essay(TASKS[0])


@pytest.mark.parametrize("count", [30, 100, 200])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_hundred_results_awaited_at_once(count: int, window: int) -> None:
    config = {"max_children": 300, "max_total_spawns": 300}
    limit = 600 if count == 200 else 3000

    def small(request: ModelRequest) -> Step:
        return essay(task_of(request), limit)

    with staged(Play("done", small), config=config, context_window=window) as stage:
        ids = [stage.launch(f"task {number}") for number in range(count)]
        answer = stage.call("wait_for_subagents")
        assert (answer["complete"], answer["count"]) == (True, count)
        shown = [result["agent_id"] for result in answer["results"]]
        assert [*shown, *answer.get("not_shown", [])] == ids
        text = json.dumps(answer, ensure_ascii=False)
        assert estimate_tokens(text) < window * 0.4
        assert len(text) < 60_000, "the answer is not cut by the cap on tool results"
        for result in answer["results"]:
            assert result["success"] is True
            whole = essay(f"task {ids.index(result['agent_id'])}", limit)
            assert whole.startswith(result["response"])
            assert result.get("next_offset", len(whole)) == len(result["response"])


def test_what_was_not_shown_is_announced_later() -> None:
    config = {"max_children": 300, "max_total_spawns": 300}
    with staged(Play("done", "short answer"), config=config, context_window=16_000) as stage:
        ids = [stage.launch(f"task {number}") for number in range(150)]
        answer = stage.call("wait_for_subagents")
        unshown = answer["not_shown"]
        assert unshown
        heard: list[str] = []
        for _ in range(10):
            stage.ask()
            heard += user_texts(stage.play.parent_requests[-1])
        announced = "\n".join(dict.fromkeys(heard))
        assert all(announced.count(agent_id) == 1 for agent_id in unshown)
        assert not any(agent_id in announced for agent_id in set(ids) - set(unshown))


# -- lists -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS)
def test_a_list_of_many_subagents_does_not_flood_the_model(window: int) -> None:
    config = {"max_children": 300, "max_total_spawns": 300, "max_concurrent": 1}
    hold = Hold("late")

    def busy(request: ModelRequest) -> Step:
        return hold(request) if task_of(request) == "busy" else "idle now"

    play = Play(Errands(), busy)
    with staged(play, config=config, context_window=window) as stage:
        for number in range(150):
            stage.spawn(f"task {number}", name=f"{number}")
        running = stage.launch("busy")
        hold.wait_entered()
        queued = [stage.launch("busy", name=f"queued {number}") for number in range(100)]
        [listed, awaited] = stage.by_model(
            ("list_active_subagents", {}), ("wait_for_subagents", {"timeout_seconds": 0.001})
        )
        assert (listed["success"], listed["count"]) == (True, 251)
        assert listed["not_shown"] == 251 - len(listed["active_sessions"]) > 0
        assert listed["active_sessions"][0]["agent_id"] == running, "what works comes first"
        assert [each["agent_id"] for each in awaited["still_running"]] == [running, *queued]
        for answer in (listed, awaited):
            text = json.dumps(answer, ensure_ascii=False)
            assert estimate_tokens(text) < window * 0.3
            assert len(text) < 60_000
        assert stage.call("list_active_subagents")["count"] == 251, "host code gets them all"
        assert len(stage.call("list_active_subagents")["active_sessions"]) == 251
        hold.release()


def test_a_list_of_many_keys_does_not_flood_the_model() -> None:
    with staged() as stage:
        for number in range(3_000):
            stage.call("set_shared_state", key=f"a key with a long name {number:05}", value=number)
        [listed] = stage.by_model(("list_shared_state", {}))
        assert listed["count"] == 3_000
        assert listed["not_shown"] == 3_000 - len(listed["keys"]) > 0
        assert len(json.dumps(listed)) < 60_000
        [few] = stage.by_model(("list_shared_state", {"prefix": "a key with a long name 0299"}))
        assert few == {"success": True, "keys": few["keys"], "count": 10}
        assert len(stage.call("list_shared_state")["keys"]) == 3_000


def test_the_receipt_of_a_big_cancel_is_short() -> None:
    def child(request: ModelRequest) -> Step:
        if request.messages[-1].results:
            return hold(request)
        return calling(("list_shared_state", {}), text="x" * 5_000)

    hold = Hold()
    config = {"max_children": 100, "max_total_spawns": 300, "max_depth": 2, "max_concurrent": 200}
    profiles = {"boss": {"plugins": ["subagent"], "idle_timeout_seconds": None}}

    def tree(request: ModelRequest) -> Step:
        if task_of(request) != "boss":
            return child(request)
        if request.messages[-1].results:
            return hold(request)
        return calling(*(("spawn_subagent", {"task": f"{number}", "background": True}) for number in range(90)))

    with staged(Play(Errands(), tree), config={**config, "profiles": profiles}) as stage:
        boss = stage.launch("boss", profile="boss")
        hold.wait_entered(91)
        [receipt] = stage.by_model(("cancel_subagent", {"agent_id": boss}))
        hold.release()
        assert len(receipt["cancelled"]) == 91
        assert {each["status"] for each in receipt["cancelled"]} == {"cancelled"}
        assert len(json.dumps(receipt)) < 60_000


# -- other parts of a result -------------------------------------------------------------------------


def test_a_structured_value_that_is_too_long_is_left_to_the_pages() -> None:
    value = {"rows": [essay(number, 100) for number in range(400)]}
    text = json.dumps(value)
    config = {"output_schema": {"type": "object"}}
    with staged(text, config={"result_tokens": 300}) as stage:
        answer = stage.spawn(inline_config=config)
        assert answer["status"] == "completed"
        assert "structured" not in answer
        assert "response" in answer["structured_left_out"]
        assert len(json.dumps(answer)) < 4_000
        assert json.loads(read_all(stage, answer["agent_id"])) == value


def test_a_structured_value_that_fits_takes_room_from_the_response() -> None:
    value = {"text": "x" * 600}
    with staged(json.dumps(value), config={"result_tokens": 300}) as stage:
        answer = stage.spawn(inline_config={"output_schema": {"type": "object"}})
        assert answer["structured"] == value
        assert len(answer["response"]) < 400
        assert read_all(stage, answer["agent_id"]) == json.dumps(value)


def test_long_errors_are_cut() -> None:
    with staged(RuntimeError("e" * 100_000)) as stage:
        answer = stage.spawn()
        assert answer["status"] == "failed"
        assert len(answer["error"]) <= 2_000


def test_a_parent_with_a_tiny_window_still_gets_something() -> None:
    with staged(Play([spawning("x"), "done"], essay("x")), context_window=4_000) as stage:
        stage.ask()
        [answer] = answers_in(stage.play.parent_requests[-1])
        assert answer["response"]
        assert estimate_tokens(json.dumps(answer)) < 600


def test_answers_are_whole_json_for_the_model() -> None:
    """The cap on tool results never cuts an answer: it would lose text and the way to the rest."""
    texts: dict[str, Any] = {"quotes": '"' * 90_000, "control": "\x01" * 90_000}
    with staged(Play(child=lambda request: texts[task_of(request)])) as stage:
        for task in texts:
            stage.launch(task)
        answer = stage.call("wait_for_subagents")
        assert len(json.dumps(answer, ensure_ascii=False)) < 60_000
    for task, text in texts.items():
        with staged(Play([spawning(task), "done"], text)) as stage:
            stage.ask()
            [answer] = answers_in(stage.play.parent_requests[-1])
            assert isinstance(answer, dict)
            assert answer["next_offset"] == len(answer["response"]) > 0
