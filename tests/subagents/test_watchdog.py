"""Time limits: deadlines that cascade, runs that stand still, and all that counts as movement."""

from __future__ import annotations

import threading

import pytest
from support.engine import Record, agent_of, assert_at_rest, engine_of, profiles, run_of, tree_of
from support.stress import wait_for
from support.subagents import Hold, Play, answers_in, calling, last_answer, spawning, staged, task_of, user_texts
from support.tools import Lab

from shared import Plugin, ToolContext, tool
from shared.cancel import CancelToken
from shared.events import PermissionAsked
from shared.history import History
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest, OnChunk
from shared.providers.script import Reply, ScriptProvider, Step
from shared.subagents import watchdog
from shared.subagents.result import Status
from shared.turn import Turn
from shared.types import ProviderResponse

ASK = {"version": "1.0", "defaultPolicy": "ask", "channel": {"type": "queue"}}


@pytest.fixture(autouse=True)
def _no_look_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found late because somebody happened to look: whatever is due wakes the watchdog itself."""
    monkeypatch.setattr(watchdog, "LOOK_SECONDS", 600.0)


class _Dripping(ScriptProvider):
    """Says a word, waits, says the next; never longer between two than it is told."""

    def __init__(self, words: int, pause: float) -> None:
        super().__init__(["".join(f"word{n} " for n in range(words))])
        self._words, self._pause = words, pause

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        for number in range(self._words):
            on_chunk("text", f"word{number} ")
            if cancel.wait(self._pause):
                cancel.raise_if_cancelled()
        return super().generate(request, cancel=cancel, on_chunk=lambda kind, text: None)


class _Busy(Plugin):
    """Tools that take their time."""

    name = "busy"

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    @tool
    def mutter(self, context: ToolContext, times: int, pause: float) -> str:
        """Say something now and then."""
        for number in range(times):
            context.output(f"{number}")
            if context.cancel.wait(pause):
                context.cancel.raise_if_cancelled()
        return "muttered"

    @tool
    def ponder(self, context: ToolContext) -> str:
        """Do nothing until the test goes on."""
        forget = context.cancel.on_cancel(self.go_on.set)
        self.go_on.wait(20)
        forget()
        context.cancel.raise_if_cancelled()
        return "pondered"


# -- deadlines ---------------------------------------------------------------------------------------


def test_a_run_whose_time_is_up_is_timed_out_and_keeps_its_text() -> None:
    slow = SubagentProfile("slow", provider="dripping", timeout_seconds=1)
    with staged(config=profiles(slow), providers={"dripping": _Dripping(1000, 0.02)}) as stage:
        stage.launch("watched already", inline_config={"provider": "dripping"})
        result = stage.spawn(profile="slow")
        assert (result["status"], result["success"]) == ("timed_out", False)
        assert result["response"].startswith("word0 ")
        assert "timeout_seconds is 1" in result["error"]


def test_time_in_the_queue_is_not_the_runs_own() -> None:
    hold = Hold("done")
    quick = SubagentProfile("quick", timeout_seconds=1.5)

    def child(request: ModelRequest) -> Step:
        return hold(request) if task_of(request) == "first" else "done"

    with staged(child, config={"max_concurrent": 1, **profiles(quick)}) as stage:
        stage.launch("first")
        hold.wait_entered()
        queued = stage.launch("second", profile="quick")
        assert not run_of(stage, queued).done.wait(2)
        hold.release()
        assert stage.result(queued)["status"] == "completed"
        assert_at_rest(stage)


@pytest.mark.parametrize("own", [None, 500])
@pytest.mark.parametrize("background", [True, False])
def test_no_descendant_outlives_the_deadline_of_a_run_above_it(own: float | None, background: bool) -> None:
    top = SubagentProfile("top", plugins=["subagent"], timeout_seconds=2)
    deep = SubagentProfile("deep", plugins=["subagent"], timeout_seconds=own)

    def child(request: ModelRequest) -> Step:
        depth = int(task_of(request))
        if depth == 3:
            return Reply("never", delay=600)
        if answers_in(request):
            return Reply("never", delay=600)
        return spawning(str(depth + 1), profile="deep", background=background)

    with staged(child, config={"max_depth": 3, **profiles(top, deep)}) as stage:
        assert stage.spawn("1", profile="top")["status"] == "timed_out"
        assert_at_rest(stage)
        agents = tree_of(stage).below("main")
        assert len(agents) == 3
        assert [agent.run.status for agent in agents] == [Status.TIMED_OUT] * 3, "each for its own reason"
        assert len({agent.run.deadline for agent in agents}) == 1


def test_a_queued_child_ends_with_its_parents_time() -> None:
    hold = Hold("done")
    top = SubagentProfile("top", plugins=["subagent"], timeout_seconds=2)

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "top" and not answers_in(request):
            return spawning("below")
        return hold(request)

    with staged(child, config={"max_depth": 2, "max_concurrent": 1, **profiles(top)}) as stage:
        agent_id = stage.launch("top", profile="top")
        wait_for(lambda: bool(tree_of(stage).children(agent_id)))
        stage.launch("takes the slot")
        assert stage.result(agent_id)["status"] == "timed_out"
        hold.release()
        assert_at_rest(stage)
        (below,) = tree_of(stage).children(agent_id)
        assert below.run.status is Status.TIMED_OUT


def test_a_child_in_the_background_keeps_the_deadline_of_a_parent_that_has_ended() -> None:
    top = SubagentProfile("top", plugins=["subagent"], timeout_seconds=2)

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "below":
            return Reply("never", delay=600)
        return "gone" if answers_in(request) else spawning("below", background=True)

    with staged(child, config={"max_depth": 2, **profiles(top)}) as stage:
        answer = stage.spawn("top", profile="top")
        assert answer["status"] == "completed"
        (below,) = tree_of(stage).children(answer["agent_id"])
        assert stage.result(below.agent_id)["status"] == "timed_out"
        assert "the run that asked for it" in str(below.run.result)


# -- standing still ----------------------------------------------------------------------------------


def test_a_model_that_says_nothing_is_stalled_without_a_warning() -> None:
    still = SubagentProfile("still", idle_timeout_seconds=0.2)
    with staged(lambda request: Reply("never", delay=600), config=profiles(still)) as stage:
        result = stage.spawn(profile="still")
        assert (result["status"], result["success"]) == ("stalled", False)
        assert "idle_timeout_seconds is 0.2" in result["error"]
        assert "phase model" in result["error"]
        assert_at_rest(stage)


def test_a_stream_that_stops_is_stalled_and_keeps_its_text() -> None:
    still = SubagentProfile("still", provider="dripping", idle_timeout_seconds=1)
    with staged(config=profiles(still), providers={"dripping": _Dripping(2, 600)}) as stage:
        result = stage.spawn(profile="still")
        assert (result["status"], result["response"]) == ("stalled", "word0 ")


def test_a_tool_that_stands_still_is_stalled_and_its_run_keeps_the_text() -> None:
    lab = Lab()
    still = SubagentProfile("still", plugins=["lab"], idle_timeout_seconds=1)
    with staged([calling(("wait", {}), text="I try."), "never"], lab, config=profiles(still)) as stage:
        result = stage.spawn(profile="still")
        assert (result["status"], result["response"]) == ("stalled", "I try.")
        assert "phase tool" in result["error"]
        assert run_of(stage, result["agent_id"]).warned
        assert_at_rest(stage)


def test_one_warning_is_heard_before_the_next_model_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "WARNED_SHARE", 600.0)  # whoever is warned has the time to hear it
    busy = _Busy()
    still = SubagentProfile("still", plugins=["busy"], idle_timeout_seconds=1)
    acts = [calling(("ponder", {})), calling(("ponder", {})), "I finish."]
    with staged(acts, busy, config=profiles(still)) as stage:
        agent_id = stage.launch(profile="still")
        wait_for(lambda: run_of(stage, agent_id).warned)
        busy.go_on.set()
        result = stage.result(agent_id)
        assert (result["status"], result["response"]) == ("completed", "I finish.")
        texts = user_texts(stage.play.child_requests[-1])
        assert [text for text in texts if "Nothing has moved for 1 s" in text] == texts[1:2]


def test_a_warning_that_nobody_heard_is_not_read_by_the_next_run() -> None:
    lab = Lab()
    still = SubagentProfile("still", plugins=["lab"], idle_timeout_seconds=1)
    with staged([calling(("wait", {})), "unused", "fine"], lab, config=profiles(still)) as stage:
        agent_id = stage.spawn(profile="still")["agent_id"]
        assert stage.call("continue_subagent", agent_id=agent_id, message="again")["status"] == "completed"
        assert not any("Nothing has moved" in text for text in user_texts(stage.play.child_requests[-1]))


# -- what counts as movement -------------------------------------------------------------------------


def test_pieces_of_an_answer_keep_a_run_alive() -> None:
    lively = SubagentProfile("lively", provider="dripping", idle_timeout_seconds=2)
    with staged(config=profiles(lively), providers={"dripping": _Dripping(24, 0.1)}) as stage:
        assert stage.spawn(profile="lively")["status"] == "completed"


def test_output_of_a_tool_keeps_a_run_alive() -> None:
    lively = SubagentProfile("lively", plugins=["busy"], idle_timeout_seconds=2)
    acts = [calling(("mutter", {"times": 24, "pause": 0.1})), "done"]
    with staged(acts, _Busy(), config=profiles(lively)) as stage:
        result = stage.spawn(profile="lively")
        assert result["status"] == "completed"
        assert not run_of(stage, result["agent_id"]).warned


@pytest.mark.parametrize("tools", [1, 2])
def test_a_child_at_work_keeps_its_parent_alive(tools: int) -> None:
    """Also when one of two calls has ended and the other still waits for its child."""
    patient = SubagentProfile("patient", plugins=["subagent"], idle_timeout_seconds=2)
    worker = SubagentProfile("worker", provider="dripping")

    def child(request: ModelRequest) -> Step:
        if answers_in(request):
            return "done"
        long = ("spawn_subagent", {"task": "long", "profile": "worker"})
        short = ("spawn_subagent", {"task": "short", "profile": "quick"})
        return calling(*(long, short)[:tools])

    config = {"max_depth": 2, **profiles(patient, worker, SubagentProfile("quick", provider="quick"))}
    providers = {"dripping": _Dripping(24, 0.1), "quick": ScriptProvider(lambda request: Reply("done", delay=0.1))}
    with staged(child, config=config, providers=providers) as stage:
        result = stage.spawn("parent", profile="patient")
        assert result["status"] == "completed"
        assert not run_of(stage, result["agent_id"]).warned
        assert_at_rest(stage)


def test_calls_that_wait_at_the_same_time_show_what_the_others_wait_for() -> None:
    turn = Turn(History(), CancelToken(), lambda *output: None)
    turn.stage = "tool"
    first, second = turn.busy_with("awaiting_permission"), turn.busy_with("awaiting_child")
    with first:
        assert turn.phase == "awaiting_permission"
        second.__enter__()
        assert turn.phase == "awaiting_child"
    assert turn.phase == "awaiting_child", "the first has ended, the second still waits"
    second.__exit__(None, None, None)
    assert turn.phase == "tool"


def test_a_person_who_takes_time_stalls_nobody() -> None:
    asked = threading.Event()
    still = SubagentProfile("still", plugins=["lab"], idle_timeout_seconds=1)
    with staged([calling(("add", {"a": 1})), "done"], Lab(), config=profiles(still), permissions=ASK) as stage:
        runtime = stage.client.get_runtime()
        runtime.bus.subscribe(lambda event: asked.set(), interest=frozenset({PermissionAsked}))
        agent_id = stage.launch(profile="still")
        assert asked.wait(20)
        assert not run_of(stage, agent_id).done.wait(1.5)
        broker = runtime.broker
        assert broker is not None
        (question,) = broker.pending()
        broker.answer(question.id, "y")
        assert stage.result(agent_id)["status"] == "completed"


def test_a_run_that_waits_for_its_slot_to_go_on_is_not_stalled() -> None:
    inner, outer = Hold("done"), Hold("done")
    still = SubagentProfile("still", plugins=["subagent"], idle_timeout_seconds=1.5)

    def child(request: ModelRequest) -> Step:
        match task_of(request):
            case "parent":
                return "done" if answers_in(request) else spawning("child")
            case "child":
                return inner(request)
        return outer(request)

    with staged(child, config={"max_depth": 2, "max_concurrent": 1, **profiles(still)}) as stage:
        parent = stage.launch("parent", profile="still")
        inner.wait_entered()
        stage.launch("other")
        inner.release()
        outer.wait_entered()  # it got the slot of the child that ended
        ticket = run_of(stage, parent).ticket
        wait_for(lambda: ticket is not None and ticket.is_resuming)
        assert not run_of(stage, parent).done.wait(2)
        outer.release()
        assert stage.result(parent)["status"] == "completed"
        assert_at_rest(stage)


def test_a_wait_for_state_that_nobody_writes_is_stalled() -> None:
    still = SubagentProfile("still", idle_timeout_seconds=1)
    wait = calling(("get_shared_state", {"key": "k", "wait_for_version": 1}))
    with staged([wait], config=profiles(still)) as stage:
        result = stage.spawn(profile="still")
        assert result["status"] == "stalled"
        assert "awaiting_child" in result["error"]
        assert_at_rest(stage)


# -- robust ------------------------------------------------------------------------------------------


def test_time_limits_hold_for_a_run_that_ignores_its_cancel() -> None:
    lab = Lab()
    late = SubagentProfile("late", plugins=["lab"], timeout_seconds=1)
    with staged([calling(("stubborn", {}), text="Trying."), "unused", "fine"], lab, config=profiles(late)) as stage:
        record = Record(stage)
        result = stage.spawn(profile="late")
        assert (result["status"], result["response"]) == ("timed_out", "Trying.")
        assert engine_of(stage).is_idle
        lab.release.set()
        wait_for(lambda: lab.ran == ["stubborn"])
        assert record.completions() == {result["agent_id"]: 1}
        assert agent_of(stage, result["agent_id"]).run.status is Status.TIMED_OUT


def test_a_cancel_callback_that_hangs_does_not_stop_the_watch_over_others() -> None:
    release, entered = threading.Event(), threading.Event()

    class Hanging(Plugin):
        """A tool whose cancel callback hangs."""

        name = "hanging"

        @tool
        def hook(self, context: ToolContext) -> str:
            """Wait with a callback that does not return."""

            def hang() -> None:
                entered.set()
                release.wait(60)

            context.cancel.on_cancel(hang)
            context.cancel.wait(20)
            return "over"

    quick = SubagentProfile("quick", plugins=["hanging"], timeout_seconds=1)
    with staged([calling(("hook", {}))], Hanging(), config=profiles(quick)) as stage:
        first = stage.launch("first", profile="quick")
        assert entered.wait(20)
        second = stage.launch("second", profile="quick")
        assert stage.result(second)["status"] == "timed_out"
        assert stage.result(first)["status"] == "timed_out"
        release.set()
        assert_at_rest(stage)


def test_limits_of_an_odd_size_harm_nobody() -> None:
    huge = SubagentProfile("huge", timeout_seconds=1e9, idle_timeout_seconds=1e9)
    tiny = SubagentProfile("tiny", timeout_seconds=1e-9)
    with staged(lambda request: Reply("done", delay=0.05), config=profiles(huge, tiny)) as stage:
        assert stage.spawn("one", profile="huge")["status"] == "completed"
        assert stage.spawn("two", profile="tiny")["status"] == "timed_out"
        answer = stage.call("wait_for_subagents", ids=[stage.launch("three")], timeout_seconds=1e300)
        assert answer["complete"]
        assert_at_rest(stage)


def test_a_timed_out_child_is_one_to_the_model_too() -> None:
    slow = SubagentProfile("slow", timeout_seconds=0.1)
    acts = [spawning(profile="slow"), lambda request: f"it {last_answer(request)['status']}"]
    with staged(Play(acts, lambda request: Reply("never", delay=600)), config=profiles(slow)) as stage:
        assert stage.ask() == "it timed_out"
