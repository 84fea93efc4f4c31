"""Numbers with the thing they count."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Such as 1 run, 2 runs."""
    return f"{number:,} {thing}{'s' if number != 1 else ''}"
