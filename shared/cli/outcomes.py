"""How a run ended, as an exit code that scripts can rely on."""

from __future__ import annotations

from collections.abc import Iterable

#: The exit code for each final status; 2 is left to what was typed wrongly.
EXIT_CODES = {
    "completed": 0,
    "failed": 1,
    "partial": 3,
    "denied": 4,
    "timed_out": 124,
    "stalled": 124,
    "cancelled": 130,
    "interrupted": 130,
}


def exit_code(statuses: Iterable[str]) -> int:
    """The code of the worst of these: 0 only if every one is completed."""
    return max((EXIT_CODES.get(status, 1) for status in statuses), default=0)
