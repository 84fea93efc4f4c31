"""The ledger: one row for every call, and sums that add up exactly over the tree of agents."""

from __future__ import annotations

import json
import random
import stat
from decimal import Decimal
from pathlib import Path

import pytest
from support.stress import rapid_switching, run_threads

from shared import TokenLedger
from shared.ledger import Account, LedgerRow, Totals
from shared.types import TokenUsage


def row(agent: str, prompt: int = 10, output: int = 5, cost: str | None = "0.1", **more: object) -> LedgerRow:
    usage = TokenUsage.of(prompt, output, cache_read=prompt // 2, cache_write=1)
    return LedgerRow(agent, "script", "m", usage, None if cost is None else Decimal(cost), **more)  # type: ignore[arg-type]


def test_a_call_counts_for_its_agent_and_all_above() -> None:
    ledger = TokenLedger()
    main = ledger.open("main")
    child = ledger.open("child", parent=main)
    leaf = ledger.open("leaf", parent=child)
    other = ledger.open("other", parent=main)
    main.record(row("main"))
    leaf.record(row("leaf", 100, 50, retries=2))
    other.record(row("other", cost=None, error="boom"))
    assert leaf.own == leaf.subtree == Totals(1, TokenUsage(100, 50, 150, 50, 1), Decimal("0.1"), 0, 2, 0)
    assert child.own == Totals()
    assert child.subtree == leaf.subtree
    assert main.own.calls == 1
    assert main.subtree == ledger.total
    assert ledger.total == Totals(3, TokenUsage(120, 60, 180, 60, 3), Decimal("0.2"), 1, 2, 1)
    assert [each.agent_id for each in leaf.lineage()] == ["leaf", "child", "main"]


def test_cents_do_not_get_lost() -> None:
    ledger = TokenLedger()
    account = ledger.open("main")
    for _ in range(1000):
        account.record(row("main", cost="0.0001"))
    assert ledger.total.cost_usd == Decimal("0.1")


def test_sums_are_exact_over_a_tree_under_threads() -> None:
    ledger = TokenLedger()
    main = ledger.open("main")
    children = [ledger.open(f"child{number}", parent=main) for number in range(4)]
    leaves = [ledger.open(f"leaf{number}", parent=children[number % 4]) for number in range(16)]
    chance = random.Random(7)
    plan = [
        [(chance.randrange(1000), chance.randrange(100), f"0.{chance.randrange(10**9):09d}") for _ in range(60)]
        for _ in leaves
    ]

    def work(index: int) -> None:
        for prompt, output, cost in plan[index]:
            leaves[index].record(row(leaves[index].agent_id, prompt, output, cost))
            main.subtree  # somebody looks in the meantime

    with rapid_switching():
        run_threads(16, work)

    def expected(indexes: list[int]) -> tuple[int, int, Decimal]:
        rows = [each for index in indexes for each in plan[index]]
        return sum(r[0] for r in rows), sum(r[1] for r in rows), sum((Decimal(r[2]) for r in rows), Decimal(0))

    def found(account: Account) -> tuple[int, int, Decimal]:
        totals = account.subtree
        return totals.usage.prompt_tokens, totals.usage.output_tokens, totals.cost_usd

    for number, child in enumerate(children):
        assert found(child) == expected([index for index in range(16) if index % 4 == number])
    assert found(main) == expected(list(range(16)))
    assert main.subtree == ledger.total
    assert main.own == Totals()


def test_rows_are_bounded_and_sums_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TokenLedger, "KEPT_ROWS", 10)
    ledger = TokenLedger()
    account = ledger.open("main")
    for number in range(25):
        account.record(row("main", prompt=number))
    assert [each.usage.prompt_tokens for each in ledger.rows()] == list(range(15, 25))
    assert ledger.total.calls == 25
    assert account.own.usage.prompt_tokens == sum(range(25))
    assert ledger.rows("nobody") == []


def test_the_summary_is_plain() -> None:
    ledger = TokenLedger()
    ledger.open("main").record(row("main", retries=1))
    summary = ledger.summarize()
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["calls"], summary["total_tokens"], summary["cost_usd"], summary["retry_attempts"]) == (
        1,
        15,
        0.1,
        1,
    )


def test_it_is_written_as_json_lines_for_the_owner_only(tmp_path: Path) -> None:
    ledger, path = TokenLedger(), tmp_path / "ledger.jsonl"
    path.write_text("what was there before\n" * 100)
    path.chmod(0o644)
    account = ledger.open("main")
    account.record(row("main", purpose="summary"))
    account.record(row("main", cost=None, error="bröken"))
    ledger.write_ledger(path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(each["purpose"], each["cost_usd"], each["error"]) for each in rows] == [
        ("summary", 0.1, None),
        ("turn", None, "bröken"),
    ]
    assert rows[0]["usage"]["total_tokens"] == 15
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
