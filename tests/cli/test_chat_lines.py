"""Lines take effect in the order they were typed; one that hangs can be left behind."""

from __future__ import annotations

import logging
import sys
import threading
from functools import partial

import pytest
from support.subagents import PATIENCE

from shared.cli.chat.lines import Lines


def test_lines_take_effect_one_after_the_other() -> None:
    lines, at_work = Lines(), threading.Semaphore(1)
    seen: list[int] = []
    done = threading.Event()

    def work(number: int) -> None:
        assert at_work.acquire(blocking=False), "two at once"
        seen.append(number)
        at_work.release()

    for number in range(500):
        lines.submit(partial(work, number))
    lines.submit(done.set)
    assert done.wait(PATIENCE)
    assert seen == list(range(500))


def test_one_that_hangs_is_left_behind_and_takes_nothing_any_more() -> None:
    lines, hang, entered = Lines(), threading.Event(), threading.Event()
    left, after = threading.Event(), threading.Event()
    seen: list[str] = []

    def hanging() -> None:
        entered.set()
        hang.wait(PATIENCE)
        seen.append("late")
        left.set()

    lines.submit(hanging)
    assert entered.wait(PATIENCE)
    assert not lines.release(), "nobody waits"
    lines.submit(lambda: (seen.append("next"), after.set()))
    assert lines.is_busy
    assert not after.is_set()
    assert lines.release()
    assert after.wait(PATIENCE)
    hang.set()
    assert left.wait(PATIENCE)
    again = threading.Event()
    lines.submit(again.set)
    assert again.wait(PATIENCE)
    assert seen == ["next", "late"]


def test_a_line_that_fails_in_whatever_way_does_not_stop_those_below_it(caplog: pytest.LogCaptureFixture) -> None:
    lines, done = Lines(), threading.Event()
    with caplog.at_level(logging.CRITICAL):
        lines.submit(partial(sys.exit, 3))
        lines.submit(done.set)
        assert done.wait(PATIENCE)
