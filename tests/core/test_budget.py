"""Budgets hold exactly: whoever asks at the same time, at whatever depth."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest
from support.stress import rapid_switching, run_threads, wait_for

from shared.budget import Budget, Limits
from shared.cancel import CancelToken
from shared.errors import BudgetExceeded, CancelledException, ConfigError


def test_room_is_reserved_then_settled() -> None:
    budget = Budget(Limits(total_tokens=100))
    held = budget.reserve(total_tokens=60)
    assert budget.room("total_tokens") == 100, "what others merely hold is not spent"
    held.settle({"total_tokens": 25})
    assert budget.spent("total_tokens") == 25
    assert budget.room("total_tokens") == 75
    assert budget.room("spawns") is None


def test_what_is_spent_is_refused_at_once_and_the_limit_named() -> None:
    budget = Budget(Limits(cost_usd=Decimal("0.10")), name="reviewer")
    budget.charge(cost_usd=Decimal("0.07"))
    with pytest.raises(
        BudgetExceeded, match=r"budget cost_usd of reviewer is 0.10: 0.07 spent, 0.04 more needed"
    ) as info:
        budget.reserve(cost_usd=Decimal("0.04"))
    assert info.value.limit == "cost_usd"
    budget.charge(cost_usd=Decimal("0.03"))
    assert budget.room("cost_usd") == 0


def test_settling_twice_changes_nothing() -> None:
    budget = Budget(Limits(tool_calls=10))
    held = budget.reserve(tool_calls=4)
    held.settle({"tool_calls": 3})
    held.settle({"tool_calls": 3})
    assert budget.spent("tool_calls") == 3
    budget.charge(tool_calls=7)


def test_less_than_nothing_is_nothing() -> None:
    budget = Budget(Limits(total_tokens=10))
    budget.charge(total_tokens=10)
    held = budget.reserve(total_tokens=-50)
    held.settle({"total_tokens": -50})
    assert budget.spent("total_tokens") == 10
    with pytest.raises(BudgetExceeded):
        budget.charge(total_tokens=1)


def test_all_kinds_are_reserved_together_or_not_at_all() -> None:
    budget = Budget(Limits(total_tokens=100, tool_calls=1))
    with pytest.raises(BudgetExceeded, match="tool_calls"):
        budget.reserve(total_tokens=50, tool_calls=2)
    budget.charge(total_tokens=100, tool_calls=1)


def test_children_draw_on_all_their_ancestors() -> None:
    root = Budget(Limits(total_tokens=100), name="root")
    middle = Budget(parent=root, name="middle")
    left = Budget(Limits(total_tokens=60), parent=middle, name="left")
    right = Budget(Limits(total_tokens=60), parent=middle, name="right")
    left.charge(total_tokens=60)
    with pytest.raises(BudgetExceeded, match="of left is 60"):
        left.charge(total_tokens=1)
    with pytest.raises(BudgetExceeded, match="of root is 100"):
        right.charge(total_tokens=41)
    right.charge(total_tokens=40)
    assert [each.spent("total_tokens") for each in (root, middle, left, right)] == [100, 100, 60, 40]
    assert right.room("total_tokens") == 0
    assert middle.bounded
    assert not Budget().bounded


def waiting(budget: Budget, cancel: CancelToken | None = None, **amounts: int) -> tuple[threading.Thread, list[Any]]:
    """A thread that reserves; what it got or what it raised ends up in the list."""
    outcome: list[Any] = []

    def reserve() -> None:
        try:
            outcome.append(budget.reserve(cancel=cancel, **amounts))
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=reserve, daemon=True)
    thread.start()
    wait_for(lambda: bool(outcome) or bool(budget._settled._waiters))  # type: ignore[attr-defined]
    return thread, outcome


def test_room_that_is_only_held_is_waited_for() -> None:
    budget = Budget(Limits(total_tokens=100))
    held = budget.reserve(total_tokens=80)
    thread, outcome = waiting(budget, total_tokens=50)
    assert outcome == []
    held.settle({"total_tokens": 30})
    thread.join(60)
    assert outcome[0].amounts == {"total_tokens": Decimal(50)}


def test_waiting_ends_in_a_refusal_when_the_others_spend_it() -> None:
    budget = Budget(Limits(total_tokens=100))
    held = budget.reserve(total_tokens=80)
    thread, outcome = waiting(budget, total_tokens=50)
    held.settle({"total_tokens": 80})
    thread.join(60)
    assert isinstance(outcome[0], BudgetExceeded)


def test_a_cancel_ends_the_waiting_and_holds_nothing() -> None:
    budget, token = Budget(Limits(total_tokens=100)), CancelToken()
    held = budget.reserve(total_tokens=100)
    thread, outcome = waiting(budget, token, total_tokens=1)
    token.cancel("stop")
    thread.join(60)
    assert isinstance(outcome[0], CancelledException)
    held.settle({"total_tokens": 0})
    budget.charge(total_tokens=100)
    assert not token._callbacks


def test_sixty_four_threads_never_exceed_a_budget() -> None:
    limit, most = 10_000, 0
    root = Budget(Limits(total_tokens=limit, cost_usd=Decimal("1.00"), tool_calls=400))
    spent = Decimal(0)
    lock = threading.Lock()

    def work(index: int) -> None:
        nonlocal spent, most
        mine = Budget(Limits(total_tokens=400), parent=Budget(parent=root))
        for step in range(40):
            want = 50 + (index * 7 + step * 13) % 90
            try:
                held = mine.reserve(total_tokens=want, cost_usd=Decimal("0.001"), tool_calls=1)
            except BudgetExceeded:
                break
            used = want if step % 3 else want // 2
            with lock:
                spent += used
                most = max(most, int(root._node.spent["total_tokens"] + root._node.held["total_tokens"]))
            held.settle({"total_tokens": used, "cost_usd": Decimal("0.001"), "tool_calls": 1})
        assert mine.spent("total_tokens") <= 400

    with rapid_switching():
        run_threads(64, work)
    assert root.spent("total_tokens") == spent <= limit
    assert most <= limit
    assert root.spent("tool_calls") <= 400
    assert root.spent("cost_usd") <= 1
    assert set(root._node.held.values()) == {Decimal(0)}
    assert spent > limit * 9 // 10, "and the budget was really used"


def test_eight_at_once_never_get_nine_out_of_eight() -> None:
    with rapid_switching():
        for _ in range(100):
            budget, granted = Budget(Limits(spawns=8)), list[int]()

            def work(index: int, budget: Budget = budget, granted: list[int] = granted) -> None:
                try:
                    budget.charge(spawns=1)
                    granted.append(index)
                except BudgetExceeded:
                    pass

            run_threads(12, work)
            assert len(granted) == 8


def test_random_cancels_leave_nothing_held_and_nobody_waiting() -> None:
    budget = Budget(Limits(total_tokens=50))
    with rapid_switching():

        def work(index: int) -> None:
            for step in range(60):
                token = CancelToken()
                if (index + step) % 3 == 0:
                    threading.Thread(target=token.cancel, daemon=True).start()
                try:
                    budget.reserve(cancel=token, total_tokens=20).settle({"total_tokens": 0})
                except CancelledException:
                    pass

        run_threads(8, work)
    assert budget._node.held["total_tokens"] == 0
    assert not budget._settled._waiters  # type: ignore[attr-defined]


def test_limits_from_a_profile() -> None:
    limits = Limits.of({"total_tokens": 1000, "cost_usd": 0.1, "tool_calls": "5", "spawns": None})
    assert limits == Limits(1000, Decimal("0.1"), 5, None)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"total_token": 5}, "Did you mean 'total_tokens'"),
        ({"total_tokens": -1}, "budget.total_tokens: expected a number of at least 0, got -1"),
        ({"cost_usd": "cheap"}, "budget.cost_usd: expected a number"),
        ({"cost_usd": float("nan")}, "budget.cost_usd: expected a number"),
        ({"tool_calls": float("inf")}, "budget.tool_calls: expected a number"),
        ({"spawns": True}, "budget.spawns: expected a number"),
        ({"spawns": [1]}, "budget.spawns: expected a number"),
    ],
)
def test_wrong_limits_are_named(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Limits.of(given)
