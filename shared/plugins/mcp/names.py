"""Tool names that every model provider accepts, the same in every run."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

MAX_LENGTH = 64
PREFIX_LENGTH = 32
_DIGEST = 8


def server_prefixes(servers: Iterable[str]) -> dict[str, str]:
    """A prefix for each server: distinct, without `__`, so that `prefix__tool` splits in one way only."""
    return _distinct({name: _prefix(name) for name in servers}, PREFIX_LENGTH)


def tool_names(prefix: str, tools: Iterable[str]) -> dict[str, str]:
    """The name the model uses for each tool of one server, at most 64 letters, digits, `_` and `-`."""
    return _distinct({tool: f"{prefix}__{_clean(tool) or 'tool'}" for tool in tools}, MAX_LENGTH)


def _prefix(server: str) -> str:
    plain = re.sub(r"_{2,}", "_", _clean(server)).rstrip("_") or "server"
    return plain if plain[0].isalpha() or plain[0] == "_" else f"_{plain}"


def _clean(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


def _distinct(wanted: dict[str, str], limit: int) -> dict[str, str]:
    """Names as wanted; one that is too long, or clashes and is not what its owner wrote, ends in a digest."""
    uses = Counter(wanted.values())
    return {
        original: name
        if len(name) <= limit and (uses[name] == 1 or name == original or name.endswith(f"__{original}"))
        else f"{name[: limit - _DIGEST - 1].rstrip('_')}_{_digest(original)}"
        for original, name in wanted.items()
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
