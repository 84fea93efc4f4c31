"""Accounting: what each turn of a session took."""

from __future__ import annotations

import threading
from typing import Any

from shared.turn import Turn


class Accounting:
    """One row per turn, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[dict[str, Any]] = []

    def add(self, turn: Turn) -> int:
        """Book a turn; returns its number, from 1."""
        row = _row(turn)
        with self._lock:
            self._rows.append(row)
            return len(self._rows)

    def rows(self) -> list[dict[str, Any]]:
        """All rows, as a copy."""
        with self._lock:
            return list(self._rows)

    @property
    def last(self) -> dict[str, Any]:
        """The newest row; zeros when there is none."""
        with self._lock:
            return self._rows[-1] if self._rows else {"prompt": 0, "output": 0, "total": 0}

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        """Begin anew."""
        with self._lock:
            self._rows.clear()


def _row(turn: Turn) -> dict[str, Any]:
    return {
        "prompt": turn.last_usage.prompt_tokens,
        "output": turn.last_usage.output_tokens,
        "total": turn.last_usage.total_tokens,
        "usage": turn.usage.as_dict(),
        "model_calls": turn.model_calls,
        "start_time": turn.started_at,
        "end_time": turn.started_at + turn.elapsed,
        "duration_seconds": turn.elapsed,
        "function_calls": list(turn.calls),
    }
