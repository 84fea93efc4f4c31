"""The table of figures: ours as measured by benchmarks/run.py, those of others as they were measured once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from folding import folded

FIGURES = Path(__file__).with_name("figures.json")


def figures_table() -> str:
    """Our measurements beside those of others, the best of each column in bold."""
    data = json.loads(FIGURES.read_text())
    columns: list[str] = data["columns"]
    rows: dict[str, list[float | str | None]] = {f"**{data['us']}**": data["ours"], **data["peers"]}
    best = [_least(row[place] for row in rows.values()) for place in range(len(columns))]
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, row in {**rows, **data["floors"]}.items():
        cells = [_cell(value, best=name in rows and value == best[place]) for place, value in enumerate(row)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _least(values: Iterable[float | str | None]) -> float:
    return min(value for value in values if isinstance(value, int | float))


def _cell(value: float | str | None, *, best: bool) -> str:
    if not isinstance(value, int | float):
        return value or ""
    text = f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
    return f"**{text}**" if best else text


def take_over(path: Path) -> None:
    """Put a measurement of our own beside those of others."""
    results = json.loads(path.read_text())["results"]
    data = json.loads(FIGURES.read_text())
    data["ours"] = [round(results[workload][figure], 3) for workload, figure in data["measured_by"]]
    FIGURES.write_text(folded(data) + "\n")
