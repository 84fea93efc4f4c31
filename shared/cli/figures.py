"""Numbers as people read them at a glance: tokens, money, time."""

from __future__ import annotations

from decimal import Decimal


def count(number: int) -> str:
    """Such as 980, 9,900, 12.3k or 1.2M."""
    if number < 10_000:
        return f"{number:,}"
    size, unit = (1_000, "k") if number < 1_000_000 else (1_000_000, "M")
    return f"{number / size:.1f}{unit}" if number < 100 * size else f"{number // size:,}{unit}"


def money(cost: Decimal) -> str:
    """Dollars, with more digits where there are few of them."""
    return f"${cost:.2f}" if cost >= 1 or not cost else f"${cost:.4f}"


def duration(seconds: float) -> str:
    """Such as 4.2 s, 1 m 05 s or 2 h 10 m."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} m {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} m"


def precise(seconds: float) -> str:
    """The same for what is over, with milliseconds where they count."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else duration(seconds)
