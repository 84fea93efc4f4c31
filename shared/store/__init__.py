"""The durable store: every run, message, tool call, result, cost and shared value, in one SQLite file.

Nothing is imported before it is used: a program that stores nothing does not load SQLite.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.store.reader import Reader
    from shared.store.store import Store

__all__ = ["Reader", "Store"]
_WHERE = {"Reader": "shared.store.reader", "Store": "shared.store.store"}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(name)
