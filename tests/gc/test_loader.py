from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.histories import long_turn

from shared.errors import ConfigError
from shared.gc.base import GCConfig
from shared.gc.keeper import ContextKeeper
from shared.gc.loader import gc_config_from, known_strategies, load_strategy
from shared.history import History, problems

MODULE = """
from shared.gc.base import GCResult

class KeepLast:
    name = "keep-last"
    def initialize(self, config=None):
        self.config = config
    def shutdown(self):
        pass
    def should_collect(self, usage, config):
        return usage.turns > 7, None
    def collect(self, history, usage, config, reason):
        kept = [history[0], *history[-2:]]
        return kept, GCResult(True, usage.turns - 1, 0, 0, self.name, reason, "kept the last")

def create_plugin():
    return KeepLast()

def failing():
    raise RuntimeError("no licence")

def wrong():
    return object()

constant = 5
"""

ENTRY_POINTS = """
[jaato.gc_plugins]
keep-last = {module}:create_plugin
keep-last-class = {module}:KeepLast
failing = {module}:failing
wrong = {module}:wrong
constant = {module}:constant
missing = {module}_not_there:create_plugin
truncate = {module}:failing
"""


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A third-party package as an installer leaves it."""
    module = "jaato_gc_sample"
    (tmp_path / f"{module}.py").write_text(MODULE)
    info = tmp_path / "jaato_gc_sample-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jaato-gc-sample\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS.format(module=module))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop(module, None)


@pytest.mark.parametrize("name", ["truncate", "summarize", "hybrid"])
def test_built_in_strategies_are_made_anew_each_time(name: str) -> None:
    assert load_strategy(name).name == name
    assert load_strategy(name) is not load_strategy(name)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown gc strategy 'truncat'.*'truncate'.*hybrid, summarize, truncate"):
        load_strategy("truncat")


@pytest.mark.usefixtures("distribution")
def test_a_third_party_strategy_works_through_its_entry_point() -> None:
    assert "keep-last" in known_strategies()
    assert load_strategy("keep-last-class").name == "keep-last"
    keeper = ContextKeeper(load_strategy("keep-last"), GCConfig(type="keep-last"), 100_000)
    history = History(long_turn(7))
    assert keeper.before_call(history) is None
    for message in long_turn(1)[1:]:
        history.append(message)
    result = keeper.before_call(history)
    assert result is not None
    assert result.plugin_name == "keep-last"
    assert result.items_collected == 7
    assert len(history) == 3
    assert problems(history.messages) == []


@pytest.mark.usefixtures("distribution")
def test_a_third_party_cannot_take_a_built_in_name() -> None:
    assert type(load_strategy("truncate")).__module__ == "shared.gc.truncate"


@pytest.mark.usefixtures("distribution")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("failing", "no licence"),
        ("wrong", "lacks name, initialize, shutdown, should_collect, collect"),
        ("constant", "must be a function or class without arguments, not 5"),
        ("missing", "cannot be imported: ModuleNotFoundError"),
        ("kep-last", "Did you mean 'keep-last'"),
    ],
)
def test_a_broken_third_party_strategy_is_named(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        load_strategy(name)
    assert name in str(caught.value)
    if "kep" not in name:
        assert "of jaato-gc-sample" in str(caught.value)


def test_settings_from_a_profile() -> None:
    assert gc_config_from(None) == GCConfig()
    assert gc_config_from("hybrid") == GCConfig(type="hybrid")
    assert gc_config_from({}) == GCConfig()
    given = GCConfig(max_turns=3)
    assert gc_config_from(given) is given
    assert gc_config_from(
        {
            "type": "summarize",
            "threshold_percent": 75,
            "preserve_recent_turns": 3,
            "notify_on_gc": False,
            "summarize_middle_turns": None,
            "max_turns": 40,
            "plugin_config": {"model": "small"},
        }
    ) == GCConfig("summarize", 75, 3, False, None, 40, {"model": "small"})


def test_settings_are_copied() -> None:
    nested = {"model": "small"}
    config = gc_config_from({"plugin_config": nested})
    nested["model"] = "other"
    assert config.plugin_config == {"model": "small"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"treshold_percent": 80}, "unknown setting 'treshold_percent'.*Did you mean 'threshold_percent'"),
        ({"threshold_percent": 0}, "'threshold_percent' must be a number above 0 and up to 100, not 0"),
        ({"threshold_percent": 101}, "not 101"),
        ({"threshold_percent": True}, "not True"),
        ({"threshold_percent": float("nan")}, "not nan"),
        ({"threshold_percent": "80"}, "not '80'"),
        ({"preserve_recent_turns": 0}, "at least 1"),
        ({"preserve_recent_turns": 2.5}, "whole number"),
        ({"preserve_recent_turns": None}, "whole number"),
        ({"notify_on_gc": 1}, "true or false"),
        ({"summarize_middle_turns": -1}, "at least 0"),
        ({"max_turns": 0}, "at least 1, or null"),
        ({"max_turns": True}, "at least 1, or null"),
        ({"plugin_config": ["a"]}, "an object"),
        ({"plugin_config": {1: 2}}, "an object"),
        ({"type": ""}, "name of a strategy"),
        ({"type": None}, "name of a strategy"),
        ({3: 4}, "unknown setting '3'"),
        ("", "name of a strategy"),
        (["hybrid"], "an object or the name of a strategy"),
        (5, "an object or the name of a strategy"),
    ],
)
def test_wrong_settings_are_named(given: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^gc.*{why}"):
        gc_config_from(given)


def test_all_wrong_settings_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match=r"'max_turns'.*; 'notify_on_gc'"):
        gc_config_from({"max_turns": "x", "notify_on_gc": "y"})
