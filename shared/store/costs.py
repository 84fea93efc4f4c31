"""Costs: what agents have spent, summed from the stored ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from decimal import Decimal

from shared.store.records import Cost
from shared.types import TokenUsage

_ROWS = "SELECT prompt, output, cache_read, cache_write, cost FROM ledger WHERE agent = ? AND at >= ?"


def spent_by(db: sqlite3.Connection, agents: Sequence[int], *, since: float = 0.0) -> Cost:
    """Sums over the model calls of these agents; costs are added exactly, as they were booked."""
    calls = unpriced = 0
    usage, cost = TokenUsage(), Decimal(0)
    for agent in agents:
        for prompt, output, read, write, price in db.execute(_ROWS, (agent, since)):
            calls += 1
            usage += TokenUsage.of(prompt, output, cache_read=read, cache_write=write)
            unpriced += price is None
            cost += _finite(Decimal(price or 0))
    return Cost(calls, usage, cost, unpriced)


def _finite(cost: Decimal) -> Decimal:
    if not cost.is_finite():
        raise ValueError(f"expected a cost, got {cost}")
    return cost
