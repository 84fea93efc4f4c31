"""Cancel means stopped: wherever a child is blocked, softly or hard, with all below it, and with a receipt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.anthropic_wire import error
from support.engine import Record, agent_of, assert_at_rest, engine_of, in_thread, profiles, run_of, tree_of
from support.labs import ANTHROPIC, DIALECTS, Dialect, WireLab
from support.stress import wait_for
from support.subagents import (
    Hold,
    Play,
    Stage,
    answers_in,
    calling,
    last_answer,
    spawning,
    staged,
    task_of,
    user_texts,
)
from support.tools import Lab
from support.wire import Answer
from support.wire import Reply as WireReply

from shared import Plugin, ToolContext, tool
from shared.cancel import CancelToken
from shared.events import PermissionAsked, RetryScheduled
from shared.loop import HAND_OVER
from shared.plugins.cli import create_plugin
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest, OnChunk
from shared.providers.script import Reply, ScriptProvider, Step
from shared.subagents.result import Status
from shared.testing import check_history
from shared.types import ProviderResponse

ASK = {"version": "1.0", "defaultPolicy": "ask", "channel": {"type": "queue"}}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _cancel(stage: Stage, agent_id: str, **options: Any) -> Any:
    """Cancel, look at the receipt, and see that the agent is whole: valid history, can be continued or closed."""
    receipt = stage.call("cancel_subagent", agent_id=agent_id, **options)
    assert receipt["success"]
    assert [each["agent_id"] for each in receipt["cancelled"]] == [agent_id]
    assert [each["status"] for each in receipt["cancelled"]] == ["cancelled"]
    result = stage.result(agent_id)
    assert (result["status"], result["success"]) == ("cancelled", False)
    session = agent_of(stage, agent_id).session
    if session is not None:
        check_history(session.get_history())
    return result


# -- wherever it is blocked --------------------------------------------------------------------------


def test_in_a_model_call() -> None:
    asked = threading.Event()

    def child(request: ModelRequest) -> Step:
        asked.set()
        return Reply("never", delay=600)

    with staged(child) as stage:
        agent_id = stage.launch()
        assert asked.wait(20)
        assert _cancel(stage, agent_id, reason="not needed")["error"] == "not needed"
        assert_at_rest(stage)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_in_a_stream_of_a_real_service_the_text_so_far_is_kept(dialect: Dialect, stack: ExitStack) -> None:
    def half(request: Any) -> Answer:
        whole = dialect.render(WireReply("It was a dark and stormy night, said the child."), request)
        return whole.hang(len(whole.body) - 60)

    server = WireLab(dialect, stack).serve(half)
    child = SubagentProfile("child", provider=dialect.name, model=dialect.model)
    with staged(config=profiles(child)) as stage:
        stage.client.register_provider(dialect.name, dialect.config(server))
        agent_id = stage.launch(profile="child")
        server.wait_hanging(1)
        wait_for(lambda: "dark" in stage.call("get_subagent_result", agent_id=agent_id).get("text_so_far", ""))
        assert "It was a dark" in _cancel(stage, agent_id)["response"]
        assert_at_rest(stage)


@pytest.mark.parametrize("fault", [error("api_error", "oops", 500, retry_after="600"), ANTHROPIC.faults["overloaded"]])
def test_in_a_retry_sleep_and_in_the_queue_of_the_rate_gate(fault: Answer, stack: ExitStack) -> None:
    server = WireLab(ANTHROPIC, stack).serve(lambda request: fault)
    child = SubagentProfile("child", provider="anthropic", model=ANTHROPIC.model)
    with staged(config=profiles(child)) as stage:
        stage.client.register_provider("anthropic", ANTHROPIC.config(server))
        scheduled = threading.Event()
        runtime = stage.client.get_runtime()
        runtime.bus.subscribe(lambda event: scheduled.set(), interest=frozenset({RetryScheduled}))
        first, second = stage.launch("one", profile="child"), stage.launch("two", profile="child")
        assert scheduled.wait(20)
        _cancel(stage, first)
        _cancel(stage, second)
        assert_at_rest(stage)


def test_in_the_slot_queue_it_never_starts() -> None:
    hold = Hold()
    with staged(hold, config={"max_concurrent": 1}) as stage:
        stage.launch("first")
        hold.wait_entered()
        queued = stage.launch("second")
        _cancel(stage, queued)
        assert agent_of(stage, queued).session is None
        result = stage.call("get_subagent_result", agent_id=queued)
        assert (result["model"], result["provider"]) == ("script-model", "script"), "as it would have run"
        hold.release()
        assert_at_rest(stage)
        assert len(stage.play.child_requests) == 1


def test_at_a_permission_prompt_the_question_goes_away() -> None:
    asked = threading.Event()
    with staged([calling(("add", {"a": 1})), "done"], Lab(), permissions=ASK) as stage:
        runtime = stage.client.get_runtime()
        runtime.bus.subscribe(lambda event: asked.set(), interest=frozenset({PermissionAsked}))
        agent_id = stage.launch()
        assert asked.wait(20)
        assert stage.call("get_subagent_result", agent_id=agent_id)["phase"] == "awaiting_permission"
        assert engine_of(stage).slots.used == 0, "who waits for a person holds no slot"
        _cancel(stage, agent_id)
        assert runtime.broker is not None
        assert runtime.broker.pending() == []
        assert_at_rest(stage)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_in_a_command_its_processes_are_gone(tmp_path: Path) -> None:
    inner = "import os, time; open('inner', 'w').write(str(os.getpid())); time.sleep(600)"
    command = f'{sys.executable} -c "{inner}" & echo $$ > outer; wait'
    with staged([calling(("cli", {"command": command}))], create_plugin(), workspace=tmp_path) as stage:
        agent_id = stage.launch()
        inner_file, outer_file = tmp_path / "inner", tmp_path / "outer"
        wait_for(lambda: inner_file.exists() and bool(inner_file.read_text()) and outer_file.exists())
        pids = [int(inner_file.read_text()), int(outer_file.read_text())]
        assert all(map(_is_running, pids))
        _cancel(stage, agent_id)
        wait_for(lambda: not any(map(_is_running, pids)))
        assert_at_rest(stage)


def test_while_it_waits_for_its_children_they_end_with_it() -> None:
    deep = SubagentProfile("deep", plugins=["subagent"])

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "leaf":
            return Reply("never", delay=600)
        if not answers_in(request):
            return spawning("leaf", background=True)
        return calling(("wait_for_subagents", {}))

    with staged(child, config={"max_depth": 2, **profiles(deep)}) as stage:
        agent_id = stage.launch("top", profile="deep")
        wait_for(lambda: run_of(stage, agent_id).phase == "awaiting_child")
        (leaf,) = tree_of(stage).children(agent_id)
        receipt = stage.call("cancel_subagent", agent_id=agent_id)
        assert [(each["agent_id"], each["status"]) for each in receipt["cancelled"]] == [
            (agent_id, "cancelled"),
            (leaf.agent_id, "cancelled"),
        ]
        assert_at_rest(stage)


def test_while_it_waits_for_shared_state() -> None:
    with staged([calling(("get_shared_state", {"key": "k", "wait_for_version": 1}))]) as stage:
        agent_id = stage.launch()
        wait_for(lambda: run_of(stage, agent_id).phase == "awaiting_child")
        assert engine_of(stage).slots.used == 0
        _cancel(stage, agent_id)
        assert_at_rest(stage)


def test_in_a_tool_that_listens() -> None:
    lab = Lab()
    with staged([calling(("wait", {}), text="I wait now.")], lab) as stage:
        agent_id = stage.launch()
        assert lab.entered.acquire(timeout=20)
        assert _cancel(stage, agent_id)["response"] == "I wait now."
        assert_at_rest(stage)


# -- what does not listen ----------------------------------------------------------------------------


class _Late(Plugin):
    """A tool that ignores every cancel and then tries to do more, as if nothing had happened."""

    name = "late"

    def __init__(self, then: Callable[[ToolContext], object]) -> None:
        super().__init__()
        self.entered, self.release, self.over = threading.Event(), threading.Event(), threading.Event()
        self._then = then
        self.raised: BaseException | None = None

    @tool
    def hang(self, context: ToolContext) -> str:
        """Hang."""
        self.entered.set()
        self.release.wait(20)
        try:
            self._then(context)
        except BaseException as failed:
            self.raised = failed
        self.over.set()
        return "late"


def test_a_tool_that_ignores_cancel_is_fenced_and_the_agent_goes_on() -> None:
    late = _Late(lambda context: context.output("too late"))
    with staged([calling(("hang", {}), ("add", {"a": 1}), text="Working."), "fine"], late, Lab()) as stage:
        agent_id = stage.launch()
        assert late.entered.wait(20)
        assert _cancel(stage, agent_id)["response"] == "Working."
        session = agent_of(stage, agent_id).session
        assert session is not None
        before = session.get_history()
        assert engine_of(stage).slots.used == 0
        again = stage.call("continue_subagent", agent_id=agent_id, message="while it hangs")
        assert again["status"] == "completed"
        late.release.set()
        assert late.over.wait(20)
        assert stage.call("continue_subagent", agent_id=agent_id, message="after it")["status"] == "completed"
        assert session.get_history()[: len(before)] == before
        assert "late" not in [result.text for message in session.get_history() for result in message.results]
        check_history(session.get_history())
        assert_at_rest(stage)


def test_a_fenced_tool_starts_nothing_and_disturbs_no_later_run() -> None:
    """Its calls into the engine come from a turn that is over: they must not act for the run that works now."""
    holder: list[Stage] = []

    def spawn(context: ToolContext) -> None:
        plugin = holder[0].plugin
        with context.stand_by("awaiting_child"):
            assert run_of(holder[0], context.agent_id).phase != "awaiting_child", "the phase of another turn"
        plugin.spawn_subagent(context, "smuggled", background=True)

    late, hold = _Late(spawn), Hold("fine")
    deep = SubagentProfile("deep", plugins=["late", "subagent"])
    acts = [calling(("hang", {})), "the mark of the cancelled turn", hold]
    with staged(acts, late, config={"max_depth": 2, **profiles(deep)}) as stage:
        holder.append(stage)
        agent_id = stage.launch(profile="deep")
        assert late.entered.wait(20)
        _cancel(stage, agent_id)
        run = in_thread(lambda: stage.call("continue_subagent", agent_id=agent_id, message="go on"))
        hold.wait_entered()
        used = engine_of(stage).slots.used
        late.release.set()
        assert late.over.wait(20)
        assert type(late.raised).__name__ == "CancelledException"
        assert engine_of(stage).slots.used == used == 1
        hold.release()
        assert run()["status"] == "completed"
        assert tree_of(stage).children(agent_id) == []
        assert_at_rest(stage)


class _Deaf(ScriptProvider):
    """A provider that never looks at its cancel token, and answers when it is let go."""

    def __init__(self) -> None:
        super().__init__(["unused"])
        self.entered, self.release, self.over = threading.Event(), threading.Event(), threading.Event()

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        on_chunk("text", "a beginning")
        self.entered.set()
        self.release.wait(20)
        try:
            on_chunk("text", " and a late end")
            return ScriptProvider(["late"]).generate(request, cancel=CancelToken(), on_chunk=on_chunk)
        finally:
            self.over.set()


def test_a_provider_that_ignores_cancel_is_abandoned() -> None:
    deaf = _Deaf()
    child = SubagentProfile("child", provider="deaf")
    with staged(config=profiles(child), providers={"deaf": deaf}) as stage:
        record = Record(stage)
        agent_id = stage.launch(profile="child")
        assert deaf.entered.wait(20)
        assert _cancel(stage, agent_id)["response"] == "a beginning"
        session = agent_of(stage, agent_id).session
        assert session is not None
        before = session.get_history()
        deaf.release.set()
        assert deaf.over.wait(20)
        assert_at_rest(stage)
        assert session.get_history() == before
        assert record.completions() == {agent_id: 1}


# -- soft, trees, receipts ---------------------------------------------------------------------------


def test_soft_finishes_the_tool_hands_over_and_stops() -> None:
    late = _Late(lambda context: None)
    with staged([calling(("hang", {})), lambda request: f"handing over {last_answer(request)}"], late) as stage:
        agent_id = stage.launch()
        assert late.entered.wait(20)
        receipt = stage.call("cancel_subagent", agent_id=agent_id, mode="soft")
        assert [each["status"] for each in receipt["cancelled"]] == ["running"]
        late.release.set()
        result = stage.result(agent_id)
        assert (result["status"], result["success"]) == ("cancelled", False)
        assert result["response"] == "handing over late"
        last = stage.play.child_requests[-1]
        assert user_texts(last)[-1] == HAND_OVER
        assert last.tool_choice == "none"
        assert_at_rest(stage)


def test_soft_before_it_has_begun_starts_nothing() -> None:
    hold = Hold()
    with staged(hold, config={"max_concurrent": 1}) as stage:
        stage.launch("first")
        hold.wait_entered()
        queued = stage.launch("second")
        assert stage.call("cancel_subagent", agent_id=queued, mode="soft")["cancelled"][0]["status"] == "cancelled"
        hold.release()
        assert_at_rest(stage)


def test_hard_after_soft_stops_at_once() -> None:
    late = _Late(lambda context: None)
    with staged([calling(("hang", {})), "never"], late) as stage:
        agent_id = stage.launch()
        assert late.entered.wait(20)
        stage.call("cancel_subagent", agent_id=agent_id, mode="soft")
        _cancel(stage, agent_id, mode="hard")
        late.release.set()
        assert len(stage.play.child_requests) == 1
        assert_at_rest(stage)


def test_a_finished_run_is_not_changed_and_the_receipt_says_so() -> None:
    with staged("done") as stage:
        agent_id = stage.spawn()["agent_id"]
        before = run_of(stage, agent_id).result
        receipt = stage.call("cancel_subagent", agent_id=agent_id)
        assert receipt["success"]
        assert receipt["cancelled"] == []
        assert receipt["already_finished"] == [{"agent_id": agent_id, "status": "completed"}]
        assert "nothing changed" in receipt["message"]
        assert run_of(stage, agent_id).result is before
        assert stage.call("continue_subagent", agent_id=agent_id, message="more")["status"] == "completed"


def _family(request: ModelRequest) -> Step:
    """A parent that starts one child in the background and one it waits for, each of which has one below it."""
    depth, said = task_of(request).count("/"), len(answers_in(request))
    if depth == 3:
        return Reply("never", delay=600)
    if said == 0:
        here = task_of(request)
        background = {"task": f"{here}/b", "profile": "deep", "background": True}
        return calling(("spawn_subagent", background), ("spawn_subagent", {"task": f"{here}/f", "profile": "deep"}))
    return "done"


def test_a_cancelled_subagent_takes_all_below_it_along_in_the_background_or_not() -> None:
    deep = SubagentProfile("deep", plugins=["subagent"])
    with staged(_family, config={"max_depth": 4, "max_concurrent": 8, **profiles(deep)}) as stage:
        record = Record(stage)
        top, other = stage.launch("top", profile="deep"), stage.launch("other/x/x/x", profile="deep")
        wait_for(lambda: len(tree_of(stage).below(top)) == 2 + 4 + 8)
        receipt = stage.call("cancel_subagent", agent_id=top)
        assert len(receipt["cancelled"]) == 15
        assert {each["status"] for each in receipt["cancelled"]} == {"cancelled"}
        assert not run_of(stage, other).status.is_final, "it is no part of that tree"
        stage.call("cancel_subagent", agent_id=other)
        assert_at_rest(stage)
        assert set(record.completions().values()) == {1}
        assert len(record.completions()) == 16


def test_a_live_grandchild_is_cancelled_through_a_parent_that_has_finished() -> None:
    deep = SubagentProfile("deep", plugins=["subagent"])

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "leaf":
            return Reply("never", delay=600)
        return "gone" if answers_in(request) else spawning("leaf", background=True)

    with staged(child, config={"max_depth": 2, **profiles(deep)}) as stage:
        answer = stage.spawn("middle", profile="deep")
        assert answer["status"] == "completed"
        (leaf,) = tree_of(stage).children(answer["agent_id"])
        assert tree_of(stage).has_live_below("main")
        receipt = stage.call("cancel_subagent", agent_id=answer["agent_id"])
        assert [each["agent_id"] for each in receipt["cancelled"]] == [leaf.agent_id]
        assert receipt["already_finished"] == [{"agent_id": answer["agent_id"], "status": "completed"}]
        assert_at_rest(stage)


# -- the person at the keyboard ----------------------------------------------------------------------


def test_stop_ends_the_turn_and_the_children_it_waits_for_background_ones_go_on() -> None:
    hold = Hold("finished")
    asked = threading.Semaphore(0)

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "background":
            return hold(request)
        asked.release()
        return Reply("never", delay=600)

    both = calling(
        ("spawn_subagent", {"task": "background", "background": True}), ("spawn_subagent", {"task": "waited for"})
    )
    with staged(Play(parent=[both, "after"], child=child)) as stage:
        turn = in_thread(stage.ask)
        assert asked.acquire(timeout=20)
        hold.wait_entered()
        assert stage.client.stop()
        assert turn() == "[cancelled]"
        status = {agent.run.message.text: agent.run.status for agent in tree_of(stage).below("main")}
        assert status == {"background": Status.RUNNING, "waited for": Status.CANCELLED}
        check_history(stage.client.get_history())
        hold.release()
        assert_at_rest(stage)
        assert stage.ask("and now?") == "after"
        assert "finished" in user_texts(stage.play.parent_requests[-1])[-1], "its end is announced all the same"


def test_ctrl_c_is_like_stop() -> None:
    program = textwrap.dedent(
        """
        import sys, threading
        sys.path.insert(0, "tests")
        from support.engine import assert_at_rest, tree_of
        from support.subagents import Hold, Play, calling, staged, task_of
        from shared.providers.script import Reply
        from shared.testing import check_history
        hold, asked = Hold("finished"), threading.Semaphore(0)
        def child(request):
            if task_of(request) == "background":
                return hold(request)
            asked.release()
            return Reply("never", delay=600)
        both = calling(
            ("spawn_subagent", {"task": "background", "background": True}), ("spawn_subagent", {"task": "waited for"})
        )
        with staged(Play(parent=[both, "after"], child=child)) as stage:
            def tell():
                asked.acquire()
                hold.wait_entered()
                print("ready", flush=True)
            threading.Thread(target=tell, daemon=True).start()
            try:
                stage.ask()
                print("no interrupt")
            except KeyboardInterrupt:
                print(*sorted(f"{a.run.message.text}: {a.run.status.value}" for a in tree_of(stage).below("main")))
                check_history(stage.client.get_history())
            hold.release()
            assert_at_rest(stage)
            print(stage.ask("again"))
        """
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "background: running waited for: cancelled\n"
    assert process.stdout.read() == "after\n"
    assert process.wait(20) == 0


def test_closing_the_client_ends_everything() -> None:
    with staged(lambda request: Reply("never", delay=600), config={"max_concurrent": 2}) as stage:
        ids = [stage.launch(f"task {n}") for n in range(5)]
        stage.client.close()
        assert {stage.result(each)["status"] for each in ids} == {"cancelled"}
        assert_at_rest(stage)


def test_a_hundred_blocked_runs_are_cancelled_in_one_go() -> None:
    asked = threading.Semaphore(0)

    def child(request: ModelRequest) -> Step:
        if task_of(request) != "top":
            asked.release()
            return Reply("never", delay=600)
        if answers_in(request):
            return calling(("wait_for_subagents", {}))
        return calling(*(("spawn_subagent", {"task": f"{n}", "background": True}) for n in range(100)))

    deep = SubagentProfile("deep", plugins=["subagent"])
    config = {"max_depth": 2, "max_children": 100, "max_concurrent": 101, **profiles(deep)}
    with staged(child, config=config) as stage:
        agent_id = stage.launch("top", profile="deep")
        for _ in range(100):
            assert asked.acquire(timeout=20)
        receipt = stage.call("cancel_subagent", agent_id=agent_id)
        assert [each["status"] for each in receipt["cancelled"]] == ["cancelled"] * 101
        assert_at_rest(stage)


def test_a_cancel_callback_that_hangs_keeps_no_other_run_alive() -> None:
    """Foreign code hears of the cancel first and never returns: all others are ended by the watchdog."""
    release = threading.Event()

    class Hanging(Plugin):
        """A tool whose cancel callback hangs."""

        name = "hanging"

        @tool
        def hook(self, context: ToolContext) -> str:
            """Wait with a callback that never returns."""
            context.cancel.on_cancel(lambda: release.wait(60))
            context.cancel.wait(20)
            return "over"

    deep = SubagentProfile("deep", plugins=["subagent", "hanging"])

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "leaf":
            return Reply("never", delay=600)
        hook = ("hook", {})
        return calling(("spawn_subagent", {"task": "leaf", "background": True}), hook)

    with staged(child, Hanging(), config={"max_depth": 2, **profiles(deep)}) as stage:
        agent_id = stage.launch("top", profile="deep")
        wait_for(lambda: bool(tree_of(stage).children(agent_id)))
        wait_for(lambda: run_of(stage, agent_id).turn.calls != [])  # type: ignore[union-attr]
        leaf = tree_of(stage).children(agent_id)[0]
        wait_for(lambda: leaf.run.status is Status.RUNNING)
        cancelling = in_thread(lambda: stage.call("cancel_subagent", agent_id=agent_id))
        wait_for(lambda: leaf.run.done.is_open and run_of(stage, agent_id).done.is_open)
        release.set()
        cancelling()
        assert_at_rest(stage)
