"""The tree of agents: from a stream of events to a frame that fits, the same for the same events and time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rich.cells import cell_len
from rich.console import Console

from shared.bus import EventBus
from shared.cli.agent_board import AgentBoard
from shared.cli.agent_tree import AgentTree
from shared.cli.figures import count, duration, precise
from shared.events import (
    AgentCompleted,
    AgentCreated,
    AgentOutput,
    Event,
    ModelCallEnded,
    PermissionAsked,
    PermissionResolved,
    RetryScheduled,
    StatusChanged,
    ToolEnded,
    ToolStarted,
    TurnCompleted,
)
from shared.types import TokenUsage

MODEL = "claude-sonnet-4-5"


def board(*events: tuple[float, Event]) -> AgentBoard:
    """A board that has seen these events, each at its time."""
    made = AgentBoard(clock=lambda: 1000.0)
    made.take(AgentCreated("main", name="main"), 0.0)
    for at, event in events:
        made.take(event, at)
    return made


def born(agent_id: str, *, name: str = "", parent: str = "main", at: float = 0.0) -> list[tuple[float, Event]]:
    """An agent that works."""
    return [
        (at, AgentCreated(agent_id, name=name or agent_id, kind="subagent", parent_id=parent)),
        (at, StatusChanged(agent_id, "queued")),
        (at, StatusChanged(agent_id, "running")),
    ]


def ended(agent_id: str, status: str, at: float) -> list[tuple[float, Event]]:
    return [(at, StatusChanged(agent_id, status)), (at, AgentCompleted(agent_id, status == "completed"))]


def drawn(made: AgentBoard, *, width: int = 100, height: int | None = None, now: float = 10.0) -> list[str]:
    return [line.plain for line in AgentTree(made, root=False).frame(width=width, height=height, now=now)]


def test_an_agent_shows_what_it_is_busy_with() -> None:
    made = board(*born("a"))
    seen = [drawn(made)[0]]
    steps: Sequence[Event] = (
        ModelCallEnded("a", "anthropic", MODEL, usage=TokenUsage.of(1_000_000, 0)),
        ToolStarted("a", "read_file", {}, "c1"),
        ToolStarted("a", "write_file", {}, "c2"),
        PermissionAsked("a", "r1", "write_file"),
        PermissionResolved("a", "r1", "write_file", True, "user_approved"),
        ToolEnded("a", "write_file", True, 0.1, None, "c2"),
        ToolEnded("a", "read_file", True, 0.1, None, "c1"),
        RetryScheduled("a", "busy", 1, 3, 2.0),
    )
    for step in steps:
        made.take(step, 5.0)
        seen.append(drawn(made)[0])
    used = "1 turn · 1.0M tokens · $3.00 · 10.0 s"
    assert seen == [
        "● a running, thinking  10.0 s",
        f"● a running, thinking  {used}",
        f"● a running read_file  {used}",
        f"● a running write_file  {used}",
        f"● a asks for write_file  {used}",
        f"● a running write_file  {used}",
        f"● a running read_file  {used}",
        f"● a running, thinking  {used}",
        f"● a running, retrying  {used}",
    ]


@pytest.mark.parametrize(
    ("status", "mark"), [("completed", "✓"), ("failed", "✗"), ("cancelled", "■"), ("partial", "◐"), ("timed_out", "✗")]
)
def test_an_agent_that_has_ended_stays_as_it_was(status: str, mark: str) -> None:
    made = board(*born("a"), (1, ToolStarted("a", "cli", {}, "c")), *ended("a", status, 4.0))
    assert drawn(made, now=99) == [f"{mark} a {status}  4.0 s"]


def test_an_agent_that_is_continued_works_again() -> None:
    made = board(*born("a"), *ended("a", "completed", 4.0), (20, StatusChanged("a", "queued")))
    assert drawn(made, now=21) == ["… a queued  1.0 s"]
    made.take(StatusChanged("a", "running"), 22)
    assert drawn(made, now=23) == ["● a running, thinking  3.0 s"]


def test_the_main_agent_is_at_work_while_its_turn_is() -> None:
    made = board((1, AgentOutput("main", text="Hi")))
    tree = AgentTree(made)
    assert [line.plain for line in tree.frame(width=80, now=3)] == ["● main running, thinking  2.0 s"]
    made.take(TurnCompleted("main", 1), 4)
    assert [line.plain for line in tree.frame(width=80, now=9)] == ["✓ main completed  3.0 s"]


def test_a_model_call_that_failed_is_no_turn() -> None:
    made = board(*born("a"), (1, ModelCallEnded("a", "anthropic", MODEL, error="Overloaded: busy")))
    assert drawn(made) == ["● a running, thinking  10.0 s"]


def test_the_tree_has_branches() -> None:
    made = board(*born("a"), *born("b", parent="a"), *born("c", parent="b"), *born("d"))
    frame = AgentTree(made).frame(width=60, now=0)
    assert [line.plain.split(" running")[0] for line in frame[1:]] == ["├─ ● a", "│  └─ ● b", "│     └─ ● c", "└─ ● d"]


def crowd(count: int) -> AgentBoard:
    """Many agents: of every ten four have completed, one has failed, three work and two are queued."""
    events: list[tuple[float, Event]] = []
    for number in range(count):
        agent = f"worker-{number}"
        begin = born(agent)
        match number % 10:
            case 0 | 1 | 2 | 3:
                events += [*begin, *ended(agent, "completed", 2.0)]
            case 4:
                events += [*begin, *ended(agent, "failed", 2.0)]
            case 5 | 6 | 7:
                events += begin
            case _:
                events += begin[:2]
    return board(*events)


def test_fifty_agents_are_folded_until_they_fit() -> None:
    made = crowd(50)
    assert len(drawn(made)) == 50
    without_completed = drawn(made, height=31)
    assert without_completed[-1] == "… 20 completed"
    assert sum("failed" in line for line in without_completed) == 5, "a failure is worth a line while there is room"
    only_live = drawn(made, height=26)
    assert only_live[-1] == "… 20 completed, 5 failed"
    only_running = drawn(made, height=16)
    assert len(only_running) == 16
    assert only_running[-1] == "… 10 queued, 20 completed, 5 failed"
    cut = drawn(made, height=4)
    assert len(cut) == 4
    assert cut[-1] == "… 12 running, 10 queued, 20 completed, 5 failed"
    assert drawn(made, height=1) == ["… 15 running, 10 queued, 20 completed, 5 failed"]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 50, 200])
@pytest.mark.parametrize("width", [1, 8, 20, 40, 79, 200])
@pytest.mark.parametrize("height", [1, 2, 5, 12, 24])
def test_a_frame_never_leaves_its_bounds(count: int, width: int, height: int) -> None:
    lines = drawn(crowd(count), width=width, height=height)
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)
    assert bool(lines) is bool(count)


def test_a_narrow_frame_keeps_names() -> None:
    made = board(*born("a", name="analyst"), (1, ToolStarted("a", "search_files", {}, "c")))
    assert drawn(made, width=40) == ["● analyst running search_files  10.0 s"]
    assert drawn(made, width=20)[0].startswith("● analyst running")


def test_names_cannot_hurt_the_terminal() -> None:
    made = board(*born("a", name="\x1b[2Jevil\nname 名前"), (1, ToolStarted("a", "to\x1b]0;ol", {}, "c")))
    assert drawn(made) == ["● [2Jevil name 名前 running to]0;ol  10.0 s"]


def test_the_same_events_and_time_give_the_same_frame() -> None:
    console = Console(width=80, force_terminal=True, color_system="standard")
    pictures = set()
    for _ in range(2):
        with console.capture() as captured:
            console.print(*AgentTree(crowd(30)).frame(width=80, height=20, now=33.3), sep="\n")
        pictures.add(captured.get())
    assert len(pictures) == 1


def test_agents_that_ended_long_ago_can_be_left_out_but_not_their_children() -> None:
    made = board(*born("old"), *born("child", parent="old"), *ended("old", "completed", 2.0), *born("new", at=5.0))
    frame = AgentTree(made, root=False).frame(width=80, now=6.0, since=4.0)
    assert [line.plain.split(" running")[0] for line in frame] == ["● new", "● child"]


def test_a_board_follows_a_bus() -> None:
    bus, made = EventBus(), AgentBoard()
    stop = made.follow(bus)
    bus.emit(AgentCreated("main", name="main"))
    bus.emit(AgentCreated("a", name="anna", kind="subagent", parent_id="main"))
    assert bus.flush(20.0)
    found = made.find("anna")
    assert found is not None
    assert found.agent_id == "a"
    stop()
    bus.emit(StatusChanged("a", "running"))
    assert bus.flush(20.0)
    assert not made.nodes()[1].is_live


def test_figures() -> None:
    assert [count(n) for n in (0, 999, 9_999, 10_000, 123_456, 1_234_567, 123_456_789)] == [
        "0", "999", "9,999", "10.0k", "123k", "1.2M", "123M"
    ]  # fmt: skip
    assert [duration(s) for s in (0, 59.94, 60, 3599, 7260)] == ["0.0 s", "59.9 s", "1 m 00 s", "59 m 59 s", "2 h 01 m"]
    assert [precise(s) for s in (0.0123, 1.5)] == ["12 ms", "1.5 s"]
