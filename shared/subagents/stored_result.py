"""Results as the store has them: as JSON text, and back without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any

from shared.store.codec import encoded
from shared.subagents.result import Hop, Status, SubagentResult
from shared.types import TokenUsage

_DEFAULTS = {each.name: each.default for each in fields(SubagentResult)}
_NAMES = tuple(_DEFAULTS)


def encode(result: SubagentResult) -> str:
    """A result as JSON text; what has its default is left out."""
    found: dict[str, Any] = {}
    for name in _NAMES:
        value = getattr(result, name)
        if value is not _DEFAULTS[name] and value != _DEFAULTS[name]:
            found[name] = _plain(value)
    return encoded(found)


def decode(found: Mapping[str, Any]) -> SubagentResult:
    """The result that a text was made from; what an older or newer version wrote besides is left out."""
    values = {name: found[name] for name in _NAMES if found.get(name) is not None}
    for name in ("token_usage", "subtree_usage"):
        if name in values:
            values[name] = TokenUsage(**values[name])
    if "cost_usd" in values:
        values["cost_usd"] = Decimal(values["cost_usd"])
    for name in ("findings", "notes"):
        if name in values:
            values[name] = tuple(values[name])
    values["hops"] = tuple(Hop(**hop) for hop in found.get("hops", ()))
    return SubagentResult(**{**values, "status": Status(found["status"])})


def _plain(value: Any) -> Any:
    match value:
        case TokenUsage():
            return value.as_dict()
        case Decimal():
            return str(value)
        case tuple():
            return [dict(vars(each)) if isinstance(each, Hop) else each for each in value]
    return value
