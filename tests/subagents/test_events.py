"""What hooks and subscribers hear of subagents: everything once, in order, under the right id, and never in the way."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from support.subagents import PATIENCE, Errands, Hold, Play, Stage, calling, spawning, staged, task_of
from support.tools import Lab

from shared.errors import ServerFailed
from shared.events import AgentCompleted, AgentCreated, Event, StatusChanged
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, Step

HOOKS = (
    *("on_agent_created", "on_agent_output", "on_agent_status_changed", "on_agent_completed"),
    *("on_agent_turn_completed", "on_agent_context_updated", "on_agent_history_updated"),
    *("on_tool_call_start", "on_tool_call_end", "on_tool_output"),
)


class Recorder:
    """Hooks of every kind that keep what they hear."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in HOOKS:
            raise AttributeError(name)
        return lambda **given: self.heard.append((name, given))

    def of(self, agent_id: str) -> list[tuple[str, dict[str, Any]]]:
        return [(name, given) for name, given in self.heard if given["agent_id"] == agent_id]

    def named(self, hook: str, agent_id: str | None = None) -> list[dict[str, Any]]:
        return [given for name, given in self.heard if name == hook and agent_id in (None, given["agent_id"])]


def flush(stage: Stage) -> None:
    assert stage.client.get_runtime().bus.flush(PATIENCE, everyone=True)


def listening(stage: Stage) -> Recorder:
    recorder = Recorder()
    stage.plugin.set_ui_hooks(recorder)
    return recorder


def test_the_life_of_one_subagent() -> None:
    with staged([calling(("add", {"a": 1}), text="I add."), "Two."], Lab()) as stage:
        hooks = listening(stage)
        answer = stage.spawn("add", name="adder")
        flush(stage)
        agent_id = answer["agent_id"]
        assert {given["agent_id"] for _, given in hooks.heard} == {agent_id}
        names = [name for name, _ in hooks.heard]
        assert names[0] == "on_agent_created"
        assert names[-1] == "on_agent_completed"
        [created] = hooks.named("on_agent_created")
        assert (created["agent_name"], created["agent_type"], created["parent_agent_id"]) == (
            *("adder", "subagent"),
            "main",
        )
        statuses = [given["status"] for given in hooks.named("on_agent_status_changed")]
        assert statuses == ["queued", "running", "completed"]
        [completed] = hooks.named("on_agent_completed")
        assert (completed["success"], completed["turns_used"]) == (True, 2)
        assert completed["token_usage"] == answer["token_usage"]
        assert [given["tool_name"] for given in hooks.named("on_tool_call_start")] == ["add"]
        assert [given["success"] for given in hooks.named("on_tool_call_end")] == [True]
        said = "".join(each["text"] for each in hooks.named("on_agent_output") if each["source"] == "model")
        assert said == "I add.Two."
        assert len(hooks.named("on_agent_turn_completed")) == len(hooks.named("on_agent_history_updated")) == 1


def test_a_profile_and_its_icon_are_told() -> None:
    icon = ["/-\\", "| |", "\\-/"]
    with staged(config={"profiles": {"p": {"icon": icon}}}) as stage:
        hooks = listening(stage)
        stage.spawn(profile="p")
        flush(stage)
        [created] = hooks.named("on_agent_created")
        assert (created["profile_name"], created["icon_lines"]) == ("p", icon)


ENDINGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "completed": ("fine", {}),
    "failed": (RuntimeError("a bug"), {}),
    "partial": ([calling(("add", {"a": 1}))], {"max_turns": 2}),
    "timed_out": (Reply("never", delay=600), {"timeout_seconds": 0.02}),
}


@pytest.mark.parametrize("status", ENDINGS)
def test_exactly_one_completion_however_it_ends(status: str) -> None:
    child, inline = ENDINGS[status]
    with staged(child, Lab()) as stage:
        hooks = listening(stage)
        answer = stage.spawn(inline_config=inline or None)
        assert answer["status"] == status
        flush(stage)
        [completed] = hooks.named("on_agent_completed")
        assert (completed["agent_id"], completed["success"]) == (answer["agent_id"], status == "completed")
        statuses = [given["status"] for given in hooks.named("on_agent_status_changed")]
        assert statuses == ["queued", "running", status]


def test_a_run_that_is_cancelled_in_the_queue() -> None:
    hold = Hold()
    with staged(hold, config={"max_concurrent": 1}) as stage:
        hooks = listening(stage)
        stage.launch("first")
        hold.wait_entered()
        queued = stage.launch("second")
        stage.call("cancel_subagent", agent_id=queued)
        flush(stage)
        statuses = [given["status"] for given in hooks.named("on_agent_status_changed", queued)]
        assert statuses == ["queued", "cancelled"]
        assert len(hooks.named("on_agent_completed", queued)) == 1
        hold.release()


def test_each_run_of_an_agent_completes_once() -> None:
    with staged() as stage:
        hooks = listening(stage)
        agent_id = stage.spawn()["agent_id"]
        stage.call("continue_subagent", agent_id=agent_id, message="more")
        stage.call("close_subagent", agent_id=agent_id)
        flush(stage)
        assert len(hooks.named("on_agent_created")) == 1
        assert len(hooks.named("on_agent_completed", agent_id)) == 2


def test_many_at_once_are_ordered_and_told_apart() -> None:
    def child(request: ModelRequest) -> Step:
        return f"I am {task_of(request)}" if request.messages[-1].results else calling(("add", {"a": 1}))

    config = {"max_children": 200, "max_concurrent": 16}
    with staged(child, Lab(), config=config) as stage:
        hooks = listening(stage)
        tasks = {stage.launch(f"task {number}"): f"task {number}" for number in range(100)}
        stage.call("wait_for_subagents")
        flush(stage)
        for agent_id, task in tasks.items():
            heard = hooks.of(agent_id)
            names = [name for name, _ in heard]
            assert names[0] == "on_agent_created"
            assert names[-1] == "on_agent_completed"
            assert Counter(names)["on_agent_completed"] == 1
            assert [given["status"] for name, given in heard if name == "on_agent_status_changed"] == [
                *("queued", "running"),
                "completed",
            ]
            assert names.index("on_tool_call_start") < names.index("on_tool_call_end")
            said = [given["text"] for name, given in heard if name == "on_agent_output" and given["text"]]
            assert said == [f"I am {task}"]


def test_results_are_stored_before_anyone_is_told() -> None:
    seen: list[tuple[str, str]] = []
    with staged() as stage:

        def look(event: Event) -> None:
            answer = stage.call("get_subagent_result", agent_id=event.agent_id)
            seen.append((type(event).__name__, answer["status"]))

        stage.client.get_runtime().bus.subscribe(look, interest=frozenset({AgentCompleted}))
        for number in range(20):
            stage.launch(f"task {number}")
            stage.call("wait_for_subagents")
        flush(stage)
        assert seen == [("AgentCompleted", "completed")] * 20


def test_a_hook_may_call_every_tool() -> None:
    """No lock is held while hooks run, so a hook that goes back into the plugin cannot stand still."""
    answers: list[Any] = []

    class Meddler:
        def __init__(self, stage: Stage) -> None:
            self.stage = stage
            self.spawned = threading.Event()

        def on_agent_status_changed(self, agent_id: str, status: str, **_: Any) -> None:
            call = self.stage.call
            answers.append(call("list_active_subagents"))
            answers.append(call("get_subagent_result", agent_id=agent_id))
            answers.append(call("set_shared_state", key=agent_id, value=status))
            answers.append(call("list_subagent_profiles"))
            if status == "completed" and not self.spawned.is_set():
                self.spawned.set()
                answers.append(self.stage.spawn("a child of a hook"))
                answers.append(call("cancel_subagent", agent_id=agent_id))
                answers.append(call("close_subagent", agent_id=agent_id))

    with staged() as stage:
        meddler = Meddler(stage)
        stage.plugin.set_ui_hooks(meddler)
        stage.spawn("first")
        assert meddler.spawned.wait(PATIENCE)
        flush(stage)
        assert len(answers) == 4 * 6 + 3, "three changes of status for each of two runs"
        assert all(answer["success"] for answer in answers)


def test_a_hook_that_raises_harms_nobody() -> None:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            if name not in HOOKS:
                raise AttributeError(name)

            def fail(**given: Any) -> None:
                raise SystemExit("a hook from hell")

            return fail

    with staged([calling(("add", {"a": 1})), "fine"], Lab()) as stage:
        stage.plugin.set_ui_hooks(Broken())
        good = listening(stage)
        assert stage.spawn()["response"] == "fine"
        flush(stage)
        assert len(good.named("on_agent_completed")) == 1


def test_a_hook_that_blocks_harms_nobody() -> None:
    let_go, entered = threading.Event(), threading.Event()

    class Slow:
        def on_agent_created(self, **given: Any) -> None:
            entered.set()
            let_go.wait(PATIENCE)

    with staged(Play(Errands(), "fine")) as stage:
        stage.plugin.set_ui_hooks(Slow())
        good = listening(stage)
        assert stage.spawn("one")["response"] == "fine"
        assert entered.wait(PATIENCE)
        assert [stage.spawn(f"more {number}")["status"] for number in range(5)] == ["completed"] * 5
        [answer] = stage.by_model(("spawn_subagent", {"task": "by the model"}))
        assert answer["status"] == "completed"
        assert not let_go.is_set()
        let_go.set()
        stage.client.get_runtime().bus.flush(PATIENCE)  # the slow one is not waited for any more
        assert len(good.named("on_agent_completed")) == 7


def test_hooks_can_be_taken_back() -> None:
    with staged() as stage:
        recorder = Recorder()
        end = stage.plugin.set_ui_hooks(recorder)
        stage.spawn("heard")
        flush(stage)
        heard = len(recorder.heard)
        assert heard
        end()
        stage.spawn("unheard")
        flush(stage)
        assert len(recorder.heard) == heard


@pytest.mark.parametrize("manner", ["raises", "is fine"])
def test_the_retry_callback_hears_of_children_too(manner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_RETRY_BASE_DELAY", "0.001")
    heard: list[str] = []
    troubles: list[Step] = [ServerFailed("first"), ServerFailed("second"), "done"]

    def callback(message: str, attempt: int, most: int, delay: float) -> None:
        heard.append(message)
        if manner == "raises":
            raise RuntimeError("a callback from hell")

    with staged(lambda request: troubles.pop(0)) as stage:
        stage.plugin.set_retry_callback(callback)
        assert stage.spawn()["response"] == "done"
        assert ["first" in heard[0], "second" in heard[1]] == [True, True]
        assert len(heard) == 2


def test_children_of_children_name_their_parents() -> None:
    def child(request: ModelRequest) -> Step:
        if task_of(request) == "leaf" or request.messages[-1].results:
            return "ok"
        return spawning("leaf")

    config = {"max_depth": 2, "profiles": {"boss": {"plugins": ["subagent"]}}}
    with staged(child, config=config) as stage:
        events: list[Event] = []
        kinds = frozenset({AgentCreated, StatusChanged, AgentCompleted})
        stage.client.get_runtime().bus.subscribe(events.append, interest=kinds)
        boss = stage.spawn("boss", profile="boss")["agent_id"]
        flush(stage)
        created = {event.agent_id: event for event in events if isinstance(event, AgentCreated)}
        assert created[boss].parent_id == "main"
        [leaf] = set(created) - {boss}
        assert created[leaf].parent_id == boss
        assert [event.agent_id for event in events if isinstance(event, AgentCompleted)] == [leaf, boss]
