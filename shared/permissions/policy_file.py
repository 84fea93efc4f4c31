"""Reading policies: from a dict, a word or a file, strictly, with errors that name file and field."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shared.errors import PolicyError, unknown_name
from shared.permissions.call import SHELL_TOOLS
from shared.permissions.policy import ACTIONS, Action, ChannelSettings, Policy
from shared.permissions.rules import Rules

CHANNEL_TYPES = ("console", "file", "queue", "webhook")
MAX_BYTES = 1_000_000
_KEYS = ("version", "defaultPolicy", "blacklist", "whitelist", "channel", "shellTools")
_RULE_KEYS = ("tools", "patterns", "arguments")
_CHANNEL_KEYS = ("type", "endpoint", "timeout", "headers")


def parse_policy(given: object, *, where: str = "permissions") -> Policy:
    """A policy from "allow", "ask", "deny" or a mapping; raises PolicyError for anything doubtful."""
    if isinstance(given, str):
        return Policy(default=_action(given, where))
    data = _object(given, where, _KEYS)
    _check_version(data.get("version", "1.0"), f"{where}: version")
    channel = data.get("channel")
    return Policy(
        default=_action(data.get("defaultPolicy", "ask"), f"{where}: defaultPolicy"),
        blacklist=_rules(data.get("blacklist", {}), f"{where}: blacklist"),
        whitelist=_rules(data.get("whitelist", {}), f"{where}: whitelist"),
        channel=None if channel is None else _channel(channel, f"{where}: channel"),
        shell_tools={**SHELL_TOOLS, **_texts_by_name(data.get("shellTools", {}), f"{where}: shellTools")},
        states_default="defaultPolicy" in data,
    )


def read_policy_data(path: Path) -> dict[str, Any]:
    """The JSON object in a policy file; raises PolicyError with the file and what is wrong."""
    try:
        data = json.loads(_bytes(path).decode("utf-8-sig"), object_pairs_hook=_no_duplicates)
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise PolicyError(f"{path}: line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}") from error
    except _Duplicate as error:
        raise PolicyError(f"{path}: field '{error}' is written twice; keep one") from error
    except RecursionError as error:
        raise PolicyError(f"{path}: is nested too deeply for a policy") from error
    if not isinstance(data, dict):
        raise PolicyError(f"{path}: expected an object with defaultPolicy, got {_kind(data)}")
    return data


def load_policy(path: Path) -> Policy:
    """The policy in a file; a missing or broken file gives a policy that denies everything."""
    try:
        policy = parse_policy(read_policy_data(path), where=str(path))
    except PolicyError as error:
        return Policy.broken(str(error))
    return replace(policy, source=path)


def _bytes(path: Path) -> bytes:
    """The file's bytes; opened without waiting, because a pipe of that name must not hang the start."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PolicyError(f"{path}: is not a regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise PolicyError(f"{path}: is larger than {MAX_BYTES:,} bytes")
    return data


class _Duplicate(Exception):
    """A key stands twice in one object; which one counts would be a guess."""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise _Duplicate(key)
        seen[key] = value
    return seen


def _action(value: object, where: str) -> Action:
    if not isinstance(value, str):
        raise PolicyError(f"{where}: expected one of {', '.join(ACTIONS)}, got {_kind(value)}")
    if value not in ACTIONS:
        raise PolicyError(f"{where}: {unknown_name('policy', value, ACTIONS)}")
    return value


def _check_version(value: object, where: str) -> None:
    if isinstance(value, bool) or str(value).split(".")[0] != "1":
        raise PolicyError(
            f"{where}: expected '1.0', got {value!r}: this file is for another version of the policy format"
        )


def _object(value: object, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PolicyError(f"{where}: expected an object with {', '.join(keys)}, got {_kind(value)}")
    for key in value:
        if key == "sanitization":
            raise PolicyError(f"{where}: 'sanitization' is not supported; write blacklist patterns instead")
        if key not in keys:
            raise PolicyError(f"{where}: {unknown_name('field', str(key), keys)}")
    return value


def _rules(value: object, where: str) -> Rules:
    data = _object(value, where, _RULE_KEYS)
    arguments = data.get("arguments", {})
    if not isinstance(arguments, Mapping):
        raise PolicyError(
            f"{where}.arguments: expected an object {{tool: {{argument: [prefix]}}}}, got {_kind(arguments)}"
        )
    return Rules(
        tools=_texts(data.get("tools", []), f"{where}.tools"),
        patterns=_texts(data.get("patterns", []), f"{where}.patterns"),
        arguments={str(tool): _prefixes(named, f"{where}.arguments.{tool}") for tool, named in arguments.items()},
    )


def _prefixes(value: object, where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping) or not value:
        raise PolicyError(f"{where}: expected an object {{argument: [prefix]}}, got {_kind(value)}")
    return {str(name): _texts(prefixes, f"{where}.{name}") for name, prefixes in value.items()}


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise PolicyError(f"{where}: expected a list of strings, got {_kind(value)}")
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item.strip():
            raise PolicyError(f"{where}[{index}]: expected a non-empty string, got {_kind(item)}")
    return tuple(value)


def _texts_by_name(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) and item for item in value.values()):
        raise PolicyError(f"{where}: expected an object of strings, got {_kind(value)}")
    return {str(key): str(item) for key, item in value.items()}


def _channel(value: object, where: str) -> ChannelSettings:
    data = _object(value, where, _CHANNEL_KEYS)
    kind, endpoint, timeout = data.get("type", "console"), data.get("endpoint"), data.get("timeout")
    if not isinstance(kind, str) or kind not in CHANNEL_TYPES:
        raise PolicyError(f"{where}.type: {unknown_name('channel', str(kind), CHANNEL_TYPES)}")
    if endpoint is not None and not isinstance(endpoint, str):
        raise PolicyError(f"{where}.endpoint: expected a string, got {_kind(endpoint)}")
    if timeout is not None and not _is_seconds(timeout):
        raise PolicyError(f"{where}.timeout: expected seconds above 0, got {timeout!r}")
    if kind == "webhook" and not is_http_url(endpoint or ""):
        raise PolicyError(f"{where}.endpoint: a webhook needs an http or https URL, got {endpoint!r}")
    if kind == "file" and not endpoint:
        raise PolicyError(f"{where}.endpoint: a file channel needs the folder for its requests")
    headers = _texts_by_name(data.get("headers", {}), f"{where}.headers")
    return ChannelSettings(kind, endpoint, None if timeout is None else float(timeout), headers)


def is_http_url(text: str) -> bool:
    """Whether a text is an http or https address with a host."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _is_seconds(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value > 0


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "a boolean", type(None): "null", str: "a string"}
    name = names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
    return f"{name} {value!r:.60}" if not isinstance(value, dict | list) else name
