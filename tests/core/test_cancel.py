"""Cancel tokens: linked, waitable, with callbacks that run once, under any interleaving."""

from __future__ import annotations

import gc
import logging
import threading

import pytest
from support.stress import rapid_switching, run_threads

from shared import CancelledException, CancelToken


def test_cancel_reaches_all_below_and_none_above() -> None:
    root = CancelToken()
    left, right = root.child(), root.child()
    leaf = left.child()
    assert left.cancel("enough")
    assert leaf.is_cancelled
    assert leaf.reason == "enough"
    assert not root.is_cancelled
    assert not right.is_cancelled
    assert root.cancel("all")
    assert right.reason == "all"
    assert left.reason == "enough", "the first reason stays"


def test_a_second_cancel_changes_nothing() -> None:
    token = CancelToken()
    assert token.cancel("first")
    assert not token.cancel("second")
    assert token.reason == "first"


def test_a_child_of_a_cancelled_token_is_born_cancelled() -> None:
    token = CancelToken()
    token.cancel("over")
    child = token.child()
    assert child.is_cancelled
    with pytest.raises(CancelledException, match="over"):
        child.raise_if_cancelled()


def test_a_very_deep_tree_is_cancelled_to_its_end() -> None:
    root = CancelToken()
    chain = [root]
    for _ in range(20_000):
        chain.append(chain[-1].child())
    root.cancel()
    assert all(token.is_cancelled for token in chain)


def test_children_that_are_gone_leave_nothing_behind() -> None:
    root = CancelToken()
    kept = [root.child() for _ in range(10)]
    for _ in range(10_000):
        root.child()
    gc.collect()
    assert sum(isinstance(each, CancelToken) and each._parent is root for each in gc.get_objects()) == len(kept)
    assert root._children is not None
    assert len(root._children) == len(kept)


def test_callbacks_that_were_taken_back_leave_nothing_behind() -> None:
    token = CancelToken()
    for _ in range(10_000):
        token.on_cancel(lambda: None)()
    assert not token._callbacks


def test_callbacks_run_once_and_their_errors_do_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    token = CancelToken()
    ran: list[str] = []
    token.on_cancel(lambda: ran.append("a"))
    token.on_cancel(lambda: 1 / 0)
    token.child().on_cancel(lambda: ran.append("unreachable: nobody holds that child"))
    child = token.child()
    child.on_cancel(lambda: ran.append("child"))
    token.on_cancel(lambda: ran.append("b"))
    taken_back = token.on_cancel(lambda: ran.append("taken back"))
    taken_back()
    with caplog.at_level(logging.ERROR):
        token.cancel()
        token.cancel()
    assert sorted(ran) == ["a", "b", "child"]
    assert "a cancel callback failed" in caplog.text


def test_a_callback_added_after_cancel_runs_at_once() -> None:
    token = CancelToken()
    token.cancel()
    ran: list[int] = []
    forget = token.on_cancel(lambda: ran.append(1))
    assert ran == [1]
    forget()


def test_callbacks_may_use_the_token_they_hang_on() -> None:
    token = CancelToken()
    seen: list[object] = []

    def curious() -> None:
        seen.append(token.wait(0))
        seen.append(token.child().is_cancelled)
        token.on_cancel(lambda: seen.append("nested"))
        seen.append(token.cancel())

    token.on_cancel(curious)
    token.cancel()
    assert seen == [True, True, "nested", False]


def test_a_blocking_callback_does_not_keep_the_rest_of_the_tree_waiting() -> None:
    root = CancelToken()
    child = root.child()
    release, reached = threading.Event(), threading.Event()

    def block() -> None:
        reached.set()
        release.wait(60)

    root.on_cancel(block)
    canceller = threading.Thread(target=root.cancel, daemon=True)
    canceller.start()
    assert reached.wait(60)
    assert child.wait(60)
    release.set()
    canceller.join(60)
    assert not canceller.is_alive()


def test_wait_returns_false_when_the_time_is_up_and_true_on_cancel() -> None:
    token = CancelToken()
    assert token.wait(0) is False
    waiters = [threading.Thread(target=token.wait, daemon=True) for _ in range(20)]
    for waiter in waiters:
        waiter.start()
    token.cancel()
    for waiter in waiters:
        waiter.join(60)
    assert not any(waiter.is_alive() for waiter in waiters)
    assert token.wait(0) is True


def test_cancel_against_registration_loses_no_callback_and_runs_none_twice() -> None:
    with rapid_switching():
        for _ in range(400):
            token = CancelToken()
            counts = [0] * 6
            children: list[CancelToken] = []

            def work(
                index: int,
                token: CancelToken = token,
                counts: list[int] = counts,
                children: list[CancelToken] = children,
            ) -> None:
                if index == 0:
                    token.cancel("race")
                elif index < 4:

                    def count() -> None:
                        counts[index] += 1

                    token.on_cancel(count)
                elif index == 4:
                    children.extend(token.child() for _ in range(3))
                else:
                    assert token.wait(60)

            run_threads(6, work)
            assert counts[1:4] == [1, 1, 1]
            assert all(child.is_cancelled for child in children)


def test_two_cancels_at_once_agree_on_who_was_first() -> None:
    with rapid_switching():
        for _ in range(300):
            token = CancelToken()
            child = token.child()
            won: list[str] = []

            def work(index: int, token: CancelToken = token, won: list[str] = won) -> None:
                if token.cancel(f"reason {index}"):
                    won.append(f"reason {index}")

            run_threads(4, work)
            assert won == [token.reason]
            assert child.is_cancelled
