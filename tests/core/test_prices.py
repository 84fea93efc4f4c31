"""Prices: the longest fitting name wins, the user's table before ours, and sums are exact."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.stress import rapid_switching, run_threads

from shared.errors import ConfigError
from shared.prices import LIST_PRICES, Price, PriceTable
from shared.types import TokenUsage


def test_the_longest_prefix_wins() -> None:
    table = PriceTable()
    assert table.get("gemini-2.5-flash-lite-001") == LIST_PRICES["gemini-2.5-flash-lite"]
    assert table.get("gemini-2.5-flash-002") == LIST_PRICES["gemini-2.5-flash"]
    assert table.get("models/gemini-2.5-pro") == LIST_PRICES["gemini-2.5-pro"]
    assert table.get("unheard-of") is None
    assert table.cost("unheard-of", TokenUsage.of(1, 1)) is None


def test_the_users_table_comes_first() -> None:
    table = PriceTable()
    before = table.get("claude-sonnet-4-5")
    table.add("claude", {"input": 1, "output": 2})
    assert table.get("claude-sonnet-4-5") == Price(Decimal(1), Decimal(2))
    table.add("claude-sonnet-4-5", Price(Decimal(7), Decimal(8)))
    assert table.get("claude-sonnet-4-5") == Price(Decimal(7), Decimal(8))
    assert PriceTable().get("claude-sonnet-4-5") == before


def test_costs_are_exact_and_cached_input_has_its_own_price() -> None:
    price = Price.of({"input": "3", "output": 15, "cache_read": 0.3, "cache_write": "3.75"})
    usage = TokenUsage.of(1000, 100, cache_read=600, cache_write=300)
    assert price.cost(usage) == (100 * 3 + 600 * Decimal("0.3") + 300 * Decimal("3.75") + 100 * 15) / Decimal(10**6)
    plain = Price.of({"input": 3, "output": 15})
    assert plain.cost(usage) == Decimal("0.0045")
    assert price.cost(TokenUsage.of(10, 0, cache_read=20)) >= 0


def test_a_file_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    assert PriceTable.load(path).get("my-model") is None
    path.write_text(json.dumps({"my-model": {"input": 1, "output": 2, "cache_read": None}}))
    assert PriceTable.load(path).get("my-model-2") == Price(Decimal(1), Decimal(2))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "cannot read the price table"),
        ("[1]", "expected an object of prices"),
        ('{"m": 3}', "expected an object of prices"),
        ('{"m": {"input": 1}}', "price of 'm': expected numbers for input and output"),
        ('{"m": {"input": "cheap", "output": 1}}', "price of 'm': expected numbers"),
        ('{"m": {"input": -1, "output": 1}}', "price of 'm': expected numbers"),
        ('{"m": {"input": NaN, "output": 1}}', "price of 'm': expected numbers"),
        ('{"m": {"input": 1, "outptu": 1}}', "Did you mean 'output'"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=text):
        PriceTable.load(path)


def test_an_unreadable_file_is_an_error_not_an_empty_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the price table"):
        PriceTable.load(tmp_path)
    (tmp_path / "latin").write_bytes(b'{"m\xff": {}}')
    with pytest.raises(ConfigError, match="cannot read the price table"):
        PriceTable.load(tmp_path / "latin")


def test_prices_may_change_while_they_are_looked_up() -> None:
    table = PriceTable()

    def work(index: int) -> None:
        for step in range(500):
            given: Any = {"input": step, "output": 1}
            if index == 0:
                table.add("m", given)
            else:
                table.get("m")

    with rapid_switching():
        run_threads(4, work)
    assert table.get("m") == Price(Decimal(499), Decimal(1))
