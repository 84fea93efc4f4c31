"""The JSON answers of the subagent tools: always `success`, and about a run always `agent_id` and `status`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.definitions.usable_tools import tool_notes
from shared.subagents.agent import Subagent
from shared.subagents.engine import Engine
from shared.subagents.result import Status
from shared.subagents.run import Run
from shared.toolbox import clip
from shared.types import TokenUsage

_SO_FAR = 500  # characters of a text that is still being written
_PARTIAL = 500  # characters of what a cancelled run had said
_PARTIALS = 20_000  # the same of all runs of one cancel


def running_answer(run: Run, engine: Engine) -> dict[str, Any]:
    """What there is to say of a run that has not ended."""
    turn = run.turn
    said = turn.text if turn is not None else ""
    return {
        "success": True,
        "complete": False,
        **still_running(run, engine),
        **({"text_so_far": said[-_SO_FAR:]} if said else {}),
        "message": f"{run.agent.name} has not finished; wait_for_subagents waits without using model calls",
    }


def still_running(run: Run, engine: Engine) -> dict[str, Any]:
    """The same in a list of many."""
    turn, position = run.turn, _position(run, engine)
    return {
        "agent_id": run.agent.agent_id,
        **_live(run),
        **({"queue_position": position} if position is not None else {}),
        "turn_count": turn.model_calls if turn is not None else 0,
    }


def _live(run: Run) -> dict[str, str]:
    """Status and phase of a run that had no result when somebody looked, though it may have one by now."""
    if run.status is Status.QUEUED:
        return {"status": Status.QUEUED.value, "phase": Status.QUEUED.value}
    turn = run.turn
    return {"status": Status.RUNNING.value, "phase": turn.phase if turn is not None else "model"}


def started_answer(run: Run, engine: Engine, *, fresh: bool) -> dict[str, Any]:
    """The answer to a background spawn or continue."""
    position = _position(run, engine)
    message = "started in the background; its result will be announced to you"
    if position is not None:
        message = f"queued at position {position}; its result will be announced to you"
    if not fresh:
        message = "an equal subagent is at work already: this is it; give another name to start a second one"
    return {
        "success": True,
        "background": True,
        "agent_id": run.agent.agent_id,
        "status": _live(run)["status"],
        **({"queue_position": position} if position is not None else {}),
        **({"notes": list(notes)} if (notes := tool_notes(run.agent.plan.profile)) else {}),
        "message": f"{run.agent.name}: {message}",
        **({} if fresh else {"duplicate": True}),
    }


def receipt(live: Sequence[Run], over: Sequence[Run], *, soft: bool) -> dict[str, Any]:
    """What a cancel did, run by run."""
    share = min(_PARTIAL, _PARTIALS // max(1, len(live)))
    return {
        "success": True,
        "cancelled": [
            {
                "agent_id": run.agent.agent_id,
                "status": run.status.value,
                "partial": clip(run.result.response, share) if run.result is not None else "",
            }
            for run in live
        ],
        "already_finished": [{"agent_id": run.agent.agent_id, "status": run.status.value} for run in over],
        "message": _receipt_text(live, soft=soft),
    }


def _receipt_text(live: Sequence[Run], *, soft: bool) -> str:
    if not live:
        return "nothing was running: nothing changed"
    asked = f"Cancellation requested for {', '.join(run.agent.agent_id for run in live)}"
    return f"{asked}; they hand over what they have, wait_for_subagents gives it to you" if soft else asked


def listing(agent: Subagent, engine: Engine) -> dict[str, Any]:
    """One entry of list_active_subagents."""
    run, status = agent.run, agent.status
    turn, position = run.turn, _position(run, engine)
    live = not status.is_final and agent.is_live
    return {
        "agent_id": agent.agent_id,
        "name": agent.name,
        "profile": agent.plan.label,
        "parent_id": agent.parent_id,
        "type": "background" if run.background else "interactive",
        "status": status.value,
        "phase": run.phase if live else status.value,
        **({"queue_position": position} if position is not None else {}),
        **({} if live else {"last_status": run.status.value}),
        "can_cancel": live,
        "turn_count": agent.turns + (turn.model_calls if turn is not None and live else 0),
        "max_turns": agent.plan.profile.max_turns,
        "created_at": _iso(agent.created_at),
        "last_activity": _iso(agent.last_activity),
        "token_usage": _used(agent).as_dict(),
    }


def _used(agent: Subagent) -> TokenUsage:
    """What an agent has used: since it was opened, or, if it rests, in its last run."""
    session, result = agent.session, agent.run.result  # read once: it may be put to rest, or continued
    if session is not None:
        return session.account.own.usage
    return result.token_usage if result is not None else TokenUsage()


def _position(run: Run, engine: Engine) -> int | None:
    ticket = run.ticket  # read once: the end of the run takes it away
    return engine.slots.position(ticket) if ticket is not None else None


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
