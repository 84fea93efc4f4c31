"""Budgets that hold exactly under any fan-out: room is reserved before it is used and settled after."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from shared.cancel import CancelToken
from shared.errors import BudgetExceeded, ConfigError, unknown_name

KINDS = ("total_tokens", "cost_usd", "tool_calls", "spawns")
Amounts = Mapping[str, Decimal]


@dataclass(frozen=True)
class Limits:
    """Upper bounds for a run and everything below it; None is no bound."""

    total_tokens: int | None = None
    cost_usd: Decimal | None = None
    tool_calls: int | None = None
    spawns: int | None = None

    @staticmethod
    def of(given: Mapping[str, Any]) -> Limits:
        """Limits from a mapping, as in a profile's `budget`."""
        for key in given:
            if key not in KINDS:
                raise ConfigError(f"budget: {unknown_name('field', key, KINDS)}")
        made = {key: _amount(key, value) for key, value in given.items() if value is not None}
        cost = made.pop("cost_usd", None)
        return Limits(cost_usd=cost, **{key: int(value) for key, value in made.items()})

    def get(self, kind: str) -> Decimal | None:
        """The bound of one kind."""
        value = getattr(self, kind)
        return None if value is None else Decimal(value)


def _amount(key: str, value: Any) -> Decimal:
    try:
        amount = Decimal("NaN" if isinstance(value, bool) else str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise ConfigError(f"budget.{key}: expected a number of at least 0, got {value!r}")
    return amount


def _booked(amounts: Mapping[str, int | Decimal]) -> dict[str, Decimal]:
    """Amounts as they count: what a service reports as less than nothing is nothing, never a refund."""
    return {kind: max(Decimal(0), Decimal(value)) for kind, value in amounts.items()}


@dataclass(eq=False)
class Reservation:
    """Room held for one use; settle it exactly once."""

    budget: Budget
    amounts: dict[str, Decimal]
    settled: bool = False

    def settle(self, actual: Mapping[str, int | Decimal]) -> None:
        """Give the room back and book what was really used; a second call changes nothing."""
        self.budget._settle(self, _booked(actual))


@dataclass
class _Node:
    limits: Limits
    spent: dict[str, Decimal] = field(default_factory=lambda: dict.fromkeys(KINDS, Decimal(0)))
    held: dict[str, Decimal] = field(default_factory=lambda: dict.fromkeys(KINDS, Decimal(0)))


class Budget:
    """One node in the tree of budgets: what it uses counts for all its ancestors, under one lock.

    When room is merely reserved by others, `reserve` waits until they settle; when it is spent,
    it raises BudgetExceeded at once. Nobody holds a reservation while waiting, so none waits for ever.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        parent: Budget | None = None,
        name: str = "",
        spent: Mapping[str, int | Decimal] | None = None,
    ) -> None:
        """`spent` is what was used before, as by a run that is taken up again; it counts here, not for ancestors."""
        self.limits = limits or Limits()
        self.name = name
        self._node = _Node(self.limits)
        self._node.spent.update(_booked(spent or {}))
        self._chain: tuple[_Node, ...] = (self._node, *(parent._chain if parent else ()))
        self._names: tuple[str, ...] = (name, *(parent._names if parent else ()))
        self._settled: threading.Condition = parent._settled if parent else threading.Condition()

    @property
    def bounded(self) -> bool:
        """Whether any limit applies here or above; without one nothing need be reserved."""
        return any(node.limits != Limits() for node in self._chain)

    def spent(self, kind: str) -> Decimal:
        """What this node and all below it have used."""
        with self._settled:
            return self._node.spent[kind]

    def room(self, kind: str) -> Decimal | None:
        """What may still be spent, reservations of others not counted; None is no bound."""
        with self._settled:
            rooms = [limit - node.spent[kind] for node in self._chain if (limit := node.limits.get(kind)) is not None]
        return min(rooms) if rooms else None

    def reserve(self, *, cancel: CancelToken | None = None, **amounts: int | Decimal) -> Reservation:
        """Hold room for all amounts at once, here and in every ancestor."""
        wanted = _booked(amounts)
        forget = cancel.on_cancel(self._wake) if cancel is not None else None
        try:
            with self._settled:
                while not self._fits(wanted):
                    if cancel is not None:
                        cancel.raise_if_cancelled()
                    self._settled.wait()
                for node in self._chain:
                    for kind, value in wanted.items():
                        node.held[kind] += value
                return Reservation(self, wanted)
        finally:
            if forget is not None:
                forget()

    def charge(self, **amounts: int | Decimal) -> None:
        """Reserve and spend in one step."""
        self.reserve(cancel=None, **amounts).settle(amounts)

    def _fits(self, wanted: Amounts) -> bool:
        """Whether there is room now; raises when there never will be."""
        free = True
        for node, name in zip(self._chain, self._names, strict=True):
            for kind, value in wanted.items():
                limit = node.limits.get(kind)
                if limit is None:
                    continue
                if node.spent[kind] + value > limit:
                    raise BudgetExceeded(
                        f"budget {kind} of {name or 'this run'} is {limit}: {node.spent[kind]} spent, "
                        f"{value} more needed; raise budget.{kind} to go on",
                        limit=kind,
                    )
                free = free and node.spent[kind] + node.held[kind] + value <= limit
        return free

    def _settle(self, reservation: Reservation, actual: Amounts) -> None:
        with self._settled:
            if reservation.settled:
                return
            reservation.settled = True
            for node in self._chain:
                for kind, value in reservation.amounts.items():
                    node.held[kind] -= value
                for kind, value in actual.items():
                    node.spent[kind] += value
            self._settled.notify_all()

    def _wake(self) -> None:
        with self._settled:
            self._settled.notify_all()
