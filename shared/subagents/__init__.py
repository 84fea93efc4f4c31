"""The engine behind subagents: runs, slots, shared state, inbox; and delegation for host code.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.definitions.profile import SubagentProfile as SubagentProfile
    from shared.subagents.config import SubagentConfig as SubagentConfig
    from shared.subagents.handle import DelegationHandle as DelegationHandle
    from shared.subagents.manager import SubagentManager as SubagentManager
    from shared.subagents.result import SubagentResult as SubagentResult

_HOMES = {
    "DelegationHandle": "shared.subagents.handle",
    "SubagentConfig": "shared.subagents.config",
    "SubagentManager": "shared.subagents.manager",
    "SubagentProfile": "shared.definitions.profile",
    "SubagentResult": "shared.subagents.result",
}

__all__ = ["DelegationHandle", "SubagentConfig", "SubagentManager", "SubagentProfile", "SubagentResult"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
