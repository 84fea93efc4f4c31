"""Ages: how long ago, in a few letters; and spans of time that are typed, such as 30d."""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_TYPED = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def age(seconds: float) -> str:
    """Such as 12s, 5m, 3h, 40d."""
    whole = max(0, int(seconds))
    for unit in ("d", "h", "m"):
        if whole >= _UNITS[unit]:
            return f"{int(whole // _UNITS[unit])}{unit}"
    return f"{whole}s"


class Span(click.ParamType[float]):
    """A span of time as seconds."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a number with its unit; 0 needs none."""
        if isinstance(value, float):
            return value
        if str(value).strip() == "0":
            return 0.0
        found = _TYPED.fullmatch(str(value).strip().lower())
        if found is None:
            self.fail(f"'{value}': expected a number with s, m, h, d or w, such as 30d or 12h", param, ctx)
        return float(found[1]) * _UNITS[found[2]]
