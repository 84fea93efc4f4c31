"""Remote: cancel a run, or tell it something, that another process is at work on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.errors import StoreError
from shared.store.reader import Reader
from shared.store.requests import ask


def cancel_run(path: Path, name: str, *, soft: bool = False, reason: str | None = None, timeout: float = 10.0) -> str:
    """Have a run stopped by the process that owns it, and all below it; returns what became of it."""
    return _ask(path, name, "cancel", {"soft": soft, "reason": reason}, timeout)


def tell_run(path: Path, name: str, text: str, *, timeout: float = 10.0) -> str:
    """Leave a message that a running agent reads before its next model call."""
    return _ask(path, name, "message", {"text": text}, timeout)


def _ask(path: Path, name: str, kind: str, body: dict[str, Any], timeout: float) -> str:
    with Reader(path) as reader:
        agent = reader.agent(name)
        run = reader.newest_runs([agent.key]).get(agent.key)
    if run is None or not run.is_live:
        status = run.status if run is not None else "the main conversation"
        raise StoreError(f"{agent.agent_id} is {status}: nothing is running that could be reached")
    told = ask(path, owner=run.owner, agent=agent.key, kind=kind, body=body, timeout=timeout)
    if told is not None:
        return told
    with Reader(path) as reader:  # its process has ended in the meantime
        return f"{agent.agent_id} is {reader.newest_runs([agent.key])[agent.key].status}"
