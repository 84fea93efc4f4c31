"""TokenLedger: one row for every model call, and sums that add up exactly over the tree of agents."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from shared.prices import PriceTable
from shared.types import TokenUsage


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One model call, with all its attempts."""

    agent_id: str
    provider: str
    model: str
    usage: TokenUsage
    cost_usd: Decimal | None = None
    purpose: str = "turn"  # or summary, classify …
    duration_seconds: float = 0.0
    retries: int = 0
    error: str | None = None
    at: float = field(default_factory=time.time)

    def as_dict(self) -> dict[str, Any]:
        """A plain dict, for JSON."""
        row = asdict(self)
        row["cost_usd"] = None if self.cost_usd is None else float(self.cost_usd)
        return row


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over calls. `unpriced_calls` counts those whose cost is not known."""

    calls: int = 0
    usage: TokenUsage = TokenUsage()
    cost_usd: Decimal = Decimal(0)
    unpriced_calls: int = 0
    retries: int = 0
    errors: int = 0


_NONE = Totals()


class _Tally:
    """Sums under way: changed in place for every call, under the ledger's lock."""

    __slots__ = ("cache_read", "cache_write", "calls", "cost", "errors", "output", "prompt", "retries", "unpriced")

    def __init__(self) -> None:
        self.calls = self.prompt = self.output = self.cache_read = self.cache_write = 0
        self.unpriced = self.retries = self.errors = 0
        self.cost = Decimal(0)

    def add(self, row: LedgerRow) -> None:
        usage = row.usage
        self.calls += 1
        self.prompt += usage.prompt_tokens
        self.output += usage.output_tokens
        self.cache_read += usage.cache_read_tokens
        self.cache_write += usage.cache_write_tokens
        self.retries += row.retries
        self.errors += row.error is not None
        if row.cost_usd is None:
            self.unpriced += 1
        else:
            self.cost += row.cost_usd

    def totals(self) -> Totals:
        usage = TokenUsage.of(self.prompt, self.output, cache_read=self.cache_read, cache_write=self.cache_write)
        return Totals(self.calls, usage, self.cost, self.unpriced, self.retries, self.errors)


class Account:
    """The sums of one agent: its own calls, and those of its whole subtree."""

    __slots__ = ("_ledger", "_own", "_parent", "_subtree", "agent_id", "sink")

    def __init__(self, ledger: TokenLedger, agent_id: str, parent: Account | None) -> None:
        self._ledger, self._parent = ledger, parent
        self.agent_id = agent_id
        self.sink: Callable[[LedgerRow], object] | None = None  # who keeps the rows besides
        self._own = _Tally()
        self._subtree = _Tally()

    @property
    def own(self) -> Totals:
        """Sums over this agent's own calls."""
        return self._ledger._read(self._own)

    @property
    def subtree(self) -> Totals:
        """Sums over the calls of this agent and all below it."""
        return self._ledger._read(self._subtree)

    def totals(self) -> tuple[Totals, Totals]:
        """Both sums as of one moment: its own calls, and those of the whole subtree."""
        return self._ledger._read_both(self._own, self._subtree)

    def record(self, row: LedgerRow) -> None:
        """Book a call here and in the subtree of every ancestor."""
        self._ledger._book(self, row)
        if self.sink is not None:
            self.sink(row)

    def lineage(self) -> Iterator[Account]:
        """This account and all above it."""
        account: Account | None = self
        while account is not None:
            yield account
            account = account._parent


class TokenLedger:
    """All model calls of a runtime. The newest rows stay in memory; sums are exact over all of them."""

    KEPT_ROWS = 10_000

    def __init__(self, prices: PriceTable | None = None) -> None:
        self.prices = prices or PriceTable()
        self._lock = threading.Lock()
        self._rows: deque[LedgerRow] = deque(maxlen=self.KEPT_ROWS)
        self._total = _Tally()

    def open(self, agent_id: str, *, parent: Account | None = None) -> Account:
        """An account for an agent; it lives as long as somebody holds it."""
        return Account(self, agent_id, parent)

    @property
    def total(self) -> Totals:
        """Sums over everything."""
        return self._read(self._total)

    def rows(self, agent_id: str | None = None) -> list[LedgerRow]:
        """The newest rows, of all agents or of one."""
        with self._lock:
            return [row for row in self._rows if agent_id is None or row.agent_id == agent_id]

    def summarize(self) -> dict[str, Any]:
        """The sums as a plain dict."""
        total = self.total
        return {
            "calls": total.calls,
            "total_prompt_tokens": total.usage.prompt_tokens,
            "total_output_tokens": total.usage.output_tokens,
            "total_tokens": total.usage.total_tokens,
            "cache_read_tokens": total.usage.cache_read_tokens,
            "cache_write_tokens": total.usage.cache_write_tokens,
            "cost_usd": float(total.cost_usd),
            "unpriced_calls": total.unpriced_calls,
            "retry_attempts": total.retries,
            "errors": total.errors,
        }

    def write_ledger(self, path: str | Path) -> None:
        """Write the rows in memory as JSON lines, readable by the owner only."""
        text = "".join(json.dumps(row.as_dict()) + "\n" for row in self.rows())
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            os.chmod(path, 0o600)  # a file that was there before may have been open to others
            file.write(text)

    def _book(self, account: Account, row: LedgerRow) -> None:
        with self._lock:
            self._rows.append(row)
            self._total.add(row)
            account._own.add(row)
            for each in account.lineage():
                each._subtree.add(row)

    def _read_both(self, own: _Tally, subtree: _Tally) -> tuple[Totals, Totals]:
        with self._lock:
            alone = own.totals() if own.calls else _NONE
            return alone, alone if subtree.calls == own.calls else subtree.totals()

    def _read(self, tally: _Tally) -> Totals:
        with self._lock:
            return tally.totals()
