"""What models cost: a table in dollars per million tokens that a user can extend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from shared.errors import ConfigError, unknown_name
from shared.types import TokenUsage

MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens; cached input defaults to the price of plain input."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None

    @staticmethod
    def of(given: Mapping[str, Any], *, model: str = "") -> Price:
        """A price from a mapping such as {"input": 3, "output": 15, "cache_read": 0.3}."""
        known = ("input", "output", "cache_read", "cache_write")
        for key in given:
            if key not in known:
                raise ConfigError(f"price of '{model}': {unknown_name('field', key, known)}")
        try:
            made = {key: Decimal(str(value)) for key, value in given.items() if value is not None}
            if any(not value.is_finite() or value < 0 for value in made.values()):
                raise InvalidOperation
            return Price(**made)
        except (InvalidOperation, TypeError) as error:
            raise ConfigError(
                f"price of '{model}': expected numbers for input and output, got {dict(given)}"
            ) from error

    def cost(self, usage: TokenUsage) -> Decimal:
        """What a call with this usage costs, exactly."""
        plain = max(0, usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        total = plain * self.input + usage.cache_read_tokens * read + usage.cache_write_tokens * write
        return (total + usage.output_tokens * self.output) / MILLION


def _p(inp: str, out: str, read: str | None = None, write: str | None = None) -> Price:
    return Price(Decimal(inp), Decimal(out), Decimal(read) if read else None, Decimal(write) if write else None)


# List prices known when this was written, by prefix of the model name. They change: a user's own
# table (`prices.json` in the jaato home folder, or `PriceTable.add`) wins.
LIST_PRICES: dict[str, Price] = {
    "claude-opus-4": _p("5", "25", "0.5", "6.25"),
    "claude-sonnet-4": _p("3", "15", "0.3", "3.75"),
    "claude-haiku-4": _p("1", "5", "0.1", "1.25"),
    "gemini-2.5-pro": _p("1.25", "10", "0.125"),
    "gemini-2.5-flash": _p("0.30", "2.50", "0.03"),
    "gemini-2.5-flash-lite": _p("0.10", "0.40", "0.01"),
    "gpt-5": _p("1.25", "10", "0.125"),
    "gpt-5-mini": _p("0.25", "2", "0.025"),
    "smollm2-135m": _p("0", "0"),  # the embedded model
}


class PriceTable:
    """Prices by prefix of the model name; the longest prefix wins, the user's table before ours."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = dict(own or {})
        self._found: dict[str, Price | None] = {}

    @staticmethod
    def load(path: Path) -> PriceTable:
        """The table with a user's file on top; a missing file is an empty one."""
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return PriceTable()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: cannot read the price table: {error}") from error
        if not isinstance(given, dict) or not all(isinstance(value, dict) for value in given.values()):
            raise ConfigError(
                f'{path}: expected an object of prices, such as {{"my-model": {{"input": 1, "output": 2}}}}'
            )
        return PriceTable({model: Price.of(value, model=model) for model, value in given.items()})

    def add(self, model: str, price: Price | Mapping[str, Any]) -> None:
        """Set the price of a model, or of all whose name begins with this."""
        self._own = {**self._own, model: price if isinstance(price, Price) else Price.of(price, model=model)}
        self._found = {}

    def get(self, model: str) -> Price | None:
        """The price of a model, or None if it is not known."""
        found = self._found  # `add` puts a fresh one in its place
        if model not in found:
            found[model] = self._look_up(model)
        return found[model]

    def _look_up(self, model: str) -> Price | None:
        bare = model.rsplit("/", 1)[-1]
        for table in (self._own, LIST_PRICES):
            for name in (model, bare):
                fitting = [prefix for prefix in table if name.startswith(prefix)]
                if fitting:
                    return table[max(fitting, key=len)]
        return None

    def cost(self, model: str, usage: TokenUsage) -> Decimal | None:
        """What a call costs, or None where the price is not known."""
        price = self.get(model)
        return None if price is None else price.cost(usage)
