"""The JSON answers of the subagent tools: always `success`, and about a run always `agent_id` and `status`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.session import JaatoSession
from shared.subagents.agent import Subagent
from shared.subagents.engine import Engine
from shared.subagents.result import SubagentResult
from shared.subagents.run import Run
from shared.types import CHARS_PER_TOKEN

SMALLEST_SHARE = 600  # characters of one result, however many there are
ALL_RESULTS = 45_000  # characters of all results in one answer: below what a tool result may have


def share(session: JaatoSession, tokens: int, count: int = 1) -> int:
    """Characters that one of so many results may take in this session's context."""
    fitting = min(tokens, session.get_context_limit() // 40) * CHARS_PER_TOKEN
    return max(SMALLEST_SHARE, min(fitting, ALL_RESULTS // max(1, count)))


def result_answer(result: SubagentResult, *, room: int, offset: int = 0) -> dict[str, Any]:
    """A result with as much of its response as fits from `offset` on; `next_offset` leads to the rest."""
    answer = {**result.as_dict(), "complete": True}
    end = offset + room
    answer["response"] = result.response[offset:end]
    if offset or len(result.response) > end:
        answer["response_length"] = len(result.response)
    if len(result.response) > end:
        answer["next_offset"] = end
    return answer


def running_answer(run: Run) -> dict[str, Any]:
    """What there is to say of a run that has not ended."""
    said = run.turn.text if run.turn is not None else ""
    return {
        "success": True,
        "complete": False,
        "agent_id": run.agent.agent_id,
        "status": run.status.value,
        "phase": run.phase,
        "message": f"{run.agent.name} has not finished; wait_for_subagents waits without using model calls",
        **({"text_so_far": said[-500:]} if said else {}),
    }


def started_answer(run: Run, *, fresh: bool) -> dict[str, Any]:
    """The answer to a background spawn or continue."""
    message = "started in the background; its result will be announced to you"
    if not fresh:
        message = "an equal subagent is at work already: this is it; give another name to start a second one"
    return {
        "success": True,
        "background": True,
        "agent_id": run.agent.agent_id,
        "status": run.status.value,
        "message": f"{run.agent.name}: {message}",
        **({} if fresh else {"duplicate": True}),
    }


def receipt(live: Sequence[Run], over: Sequence[Run]) -> dict[str, Any]:
    """What a cancel did, run by run."""
    return {
        "success": True,
        "cancelled": [
            {
                "agent_id": run.agent.agent_id,
                "status": run.status.value,
                "partial": (run.result.response if run.result is not None else "")[:500],
            }
            for run in live
        ],
        "already_finished": [{"agent_id": run.agent.agent_id, "status": run.status.value} for run in over],
        "message": _receipt_text(live),
    }


def _receipt_text(live: Sequence[Run]) -> str:
    if not live:
        return "nothing was running: nothing changed"
    return f"Cancellation requested for {', '.join(run.agent.agent_id for run in live)}"


def listing(agent: Subagent, engine: Engine) -> dict[str, Any]:
    """One entry of list_active_subagents."""
    run = agent.run
    entry: dict[str, Any] = {
        "agent_id": agent.agent_id,
        "name": agent.name,
        "profile": agent.plan.label,
        "parent_id": agent.parent_id,
        "type": "background" if run.background else "interactive",
        "status": agent.status.value,
        "phase": run.phase,
        "can_cancel": agent.is_live,
        "turn_count": agent.turns + (run.turn.model_calls if run.turn is not None else 0),
        "max_turns": agent.plan.profile.max_turns,
        "created_at": _iso(agent.created_at),
        "last_activity": _iso(agent.last_activity),
        "token_usage": agent.session.account.own.usage.as_dict() if agent.session is not None else None,
    }
    position = engine.slots.position(run.ticket) if run.ticket is not None else None
    return entry if position is None else {**entry, "queue_position": position}


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
