"""Serving: what other processes ask of an engine through the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.cancel import CancelToken
from shared.store.records import Request
from shared.subagents.seat import Caller

if TYPE_CHECKING:
    from shared.subagents.engine import Engine


def serve(engine: Engine, request: Request) -> str:
    """Do what another process asks for; returns what became of it, in words for a person."""
    agent = engine.stored_agent(request.agent)
    if agent is None:
        return "it is not in memory any more"
    if request.kind == "message":
        if not agent.is_live:
            return f"{agent.agent_id} is {agent.status.value}: continue it instead"
        sent = agent.tell(str(request.body.get("text", "")))
        if not agent.is_live and agent.take_back(sent):
            return f"{agent.agent_id} is {agent.status.value}: continue it instead"
        return f"{agent.agent_id} reads it before its next model call"
    caller = Caller(agent.run.seat, CancelToken())
    reason = str(request.body.get("reason") or "cancelled from outside")
    live, _ = engine.cancel(caller, agent, soft=bool(request.body.get("soft")), reason=reason)
    return f"cancelled: {', '.join(run.agent.agent_id for run in live)}" if live else "nothing was running"
