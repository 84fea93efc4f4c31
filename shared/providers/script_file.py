"""Script files for the scripted model: rules in YAML or JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from shared.errors import ConfigError, unknown_name
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, Script, Step, last_user_text
from shared.types import Role

FIELDS = ("when", "text", "calls", "thought", "delay")


@dataclass(frozen=True)
class Rule:
    """One line of a script file: replies to be given, in order, when the user's words fit."""

    when: re.Pattern[str]
    replies: tuple[Reply, ...]


def read_rules(path: Path) -> Script:
    """The script in a file; read again when the file changes."""
    try:
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        raise ConfigError(f"script file {path} cannot be read: {error.strerror}") from error
    rules = _parse(path, stamp)
    return lambda request: _play(rules, request)


def _play(rules: tuple[Rule, ...], request: ModelRequest) -> Step:
    """Stateless: how often the model spoke since the user did tells which reply is next."""
    text = last_user_text(request)
    spoken = 0
    for message in reversed(request.messages):
        if message.role is Role.USER:
            break
        spoken += message.role is Role.MODEL
    for rule in rules:
        if rule.when.search(text):
            return rule.replies[min(spoken, len(rule.replies) - 1)]
    return Reply(f"No rule of the script fits: {text[:80]}")


@lru_cache(maxsize=32)
def _parse(path: Path, stamp: int) -> tuple[Rule, ...]:
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"script file {path}: {str(error).splitlines()[0]}") from error
    if not isinstance(data, list) or not data:
        raise ConfigError(f"script file {path}: expected a list of rules, each with `when` and `replies`")
    return tuple(_rule(path, index, item) for index, item in enumerate(data))


def _rule(path: Path, index: int, item: Any) -> Rule:
    where = f"script file {path}, rule {index + 1}"
    if not isinstance(item, Mapping) or set(item) - {"when", "replies"} or not isinstance(item.get("replies"), list):
        raise ConfigError(f"{where}: expected `when` (a regular expression) and `replies` (a list)")
    try:
        return Rule(re.compile(str(item.get("when", ""))), tuple(_reply(where, each) for each in item["replies"]))
    except re.error as error:
        raise ConfigError(f"{where}: `when` is not a regular expression: {error}") from error


def _reply(where: str, item: Any) -> Reply:
    if isinstance(item, str):
        return Reply(item)
    if not isinstance(item, Mapping):
        raise ConfigError(f"{where}: a reply is a text or an object with {', '.join(FIELDS[1:])}")
    for key in item:
        if key not in FIELDS[1:]:
            raise ConfigError(f"{where}: {unknown_name('field', str(key), FIELDS[1:])}")
    calls = tuple((str(call["name"]), dict(call.get("args") or {})) for call in item.get("calls") or ())
    return Reply(str(item.get("text", "")), calls, item.get("thought"), float(item.get("delay", 0)))
