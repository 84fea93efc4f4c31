"""From settings to a strategy: names, third-party entry points, and checks of a `gc` object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shared.errors import ConfigError, unknown_name
from shared.gc.base import GCConfig, GCPlugin

ENTRY_POINT_GROUP = "jaato.gc_plugins"

_BUILT_IN = {
    "truncate": "shared.gc.truncate:TruncateGC",
    "summarize": "shared.gc.summarize:SummarizeGC",
    "hybrid": "shared.gc.hybrid:HybridGC",
}
_MEMBERS = ("name", "initialize", "shutdown", "should_collect", "collect")


def known_strategies() -> list[str]:
    """Names of all strategies, built in or installed."""
    return sorted({*_BUILT_IN, *(point.name for point in _published())})


def load_strategy(name: str) -> GCPlugin:
    """A new strategy of that name; built-in names cannot be taken over by an installed package."""
    if name in _BUILT_IN:
        return _built_in(name)()  # ours need no check, which would cost every new session
    return _made(*_third_party(name))


@cache
def _built_in(name: str) -> Callable[[], GCPlugin]:
    module, _, attribute = _BUILT_IN[name].partition(":")
    made: Callable[[], GCPlugin] = getattr(import_module(module), attribute)
    return made


def gc_config_from(value: Mapping[str, Any] | str | GCConfig | None) -> GCConfig:
    """Settings from a profile's `gc` object, or from the name of a strategy alone; None gives the defaults."""
    if value is None or isinstance(value, GCConfig):
        return value or GCConfig()
    given: Any = {"type": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise ConfigError(f"gc must be an object or the name of a strategy, not {_shown(value)}")
    wrong = [problem for key, entry in given.items() if (problem := _problem(key, entry))]
    if wrong:
        raise ConfigError(f"gc: {'; '.join(wrong)}")
    settings: dict[str, Any] = {**given, "plugin_config": dict(given.get("plugin_config", {}))}
    return GCConfig(**settings)


def _published() -> list[EntryPoint]:
    return list(entry_points(group=ENTRY_POINT_GROUP))


@cache
def _third_party(name: str) -> tuple[Any, str]:
    """The factory behind an entry point and how to call it in errors; looked for once, since that reads files."""
    point = next((point for point in _published() if point.name == name), None)
    if point is None:
        raise ConfigError(unknown_name("gc strategy", name, known_strategies()))
    where = f"gc strategy '{name}' ({point.value}{f' of {point.dist.name}' if point.dist else ''})"
    try:
        return point.load(), where
    except Exception as error:  # importing foreign code may raise anything
        raise ConfigError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error


def _made(factory: Any, where: str) -> GCPlugin:
    if not callable(factory):
        raise ConfigError(f"{where} must be a function or class without arguments, not {_shown(factory)}")
    try:
        strategy = factory()
    except Exception as error:  # so may calling it
        raise ConfigError(f"{where} cannot be made: {type(error).__name__}: {error}") from error
    missing = [member for member in _MEMBERS if not hasattr(strategy, member)]
    if missing or not isinstance(strategy, GCPlugin):
        raise ConfigError(f"{where} is no gc strategy: it lacks {', '.join(missing)}")
    return strategy


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_percent(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 100


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


_RULES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "type": ("the name of a strategy", lambda value: isinstance(value, str) and bool(value.strip())),
    "threshold_percent": ("a number above 0 and up to 100", _is_percent),
    "preserve_recent_turns": ("a whole number of at least 1", _whole(1)),
    "notify_on_gc": ("true or false", lambda value: isinstance(value, bool)),
    "summarize_middle_turns": ("a whole number of at least 0, or null", _whole(0)),
    "max_turns": ("a whole number of at least 1, or null", _whole(1)),
    "plugin_config": ("an object", _is_table),
}
_NULLABLE = {field.name for field in fields(GCConfig) if field.default is None}


def _problem(key: Any, value: Any) -> str | None:
    if key not in _RULES:
        return unknown_name("setting", str(key), _RULES)
    expected, fits = _RULES[key]
    if (value is None and key in _NULLABLE) or fits(value):
        return None
    return f"'{key}' must be {expected}, not {_shown(value)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
