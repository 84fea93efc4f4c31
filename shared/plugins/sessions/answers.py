"""What the session tools answer: statuses in four words, entries of a list, a history as text."""

from __future__ import annotations

import json
import time
from typing import Any, Literal

from shared.subagents.agent import Subagent
from shared.subagents.result import Status
from shared.subagents.run import Run
from shared.subagents.tree import Tree
from shared.toolbox import clip
from shared.types import Message, Part

SessionStatus = Literal["running", "done", "error", "timeout"]
HISTORY_CHARS = 10_000

_WORDS: dict[Status, SessionStatus] = {
    Status.QUEUED: "running",
    Status.RUNNING: "running",
    Status.COMPLETED: "done",
    Status.TIMED_OUT: "timeout",
    Status.STALLED: "timeout",
}


def word(run: Run) -> SessionStatus:
    """The status of a run: only a whole answer is `done`; what was cut off, denied or killed is an error."""
    return _WORDS.get(run.status, "error")


def about(run: Run) -> dict[str, Any]:
    """What every answer says of a session; `detail` is the status in our own words, where four are too few."""
    result = run.result
    reason = f" ({result.reason})" if result is not None and result.reason else ""
    known: dict[str, Any] = {"run_id": run.agent.agent_id, "status": word(run), "detail": run.status.value + reason}
    return known | ({"error": result.error} if result is not None and result.error else {})


def entry(agent: Subagent, tree: Tree) -> dict[str, Any]:
    """One session in a list."""
    run = agent.run
    ended = run.result.duration_seconds if run.result is not None else 0.0
    return {
        **about(run),
        "label": agent.name if agent.name != agent.plan.label else None,
        "agent_id": agent.plan.label,
        "runtime_seconds": round(ended or time.time() - run.created_at, 3),
        "depth": agent.depth,
        "parent": agent.parent_id,
        "children": [child.agent_id for child in tree.children(agent.agent_id)],
    }


def said_in(agent: Subagent, tree: Tree) -> list[Message]:
    """The messages of a session: in memory, in the store where it rests, or its task alone before it begins."""
    session, conversation = agent.session, tree.conversation
    if session is not None:
        found = session.get_history()
    elif agent.asleep and conversation is not None:
        found = [each.message for each in conversation.store.reader.history(agent.stored)]
    else:
        found = []
    return found or [agent.run.message]


def history_text(messages: list[Message]) -> str:
    """A conversation for reading, its beginning and its end where the whole is too long."""
    lines = [line for message in messages for part in message.parts if (line := _line(message, part))]
    return clip("\n".join(lines), HISTORY_CHARS)


def _line(message: Message, part: Part) -> str:
    if part.function_call is not None:
        call = part.function_call
        return f"[call] {call.name} {json.dumps(dict(call.args), ensure_ascii=False, default=str)}"
    if part.function_response is not None:
        return f"[result of {part.function_response.name}] {part.function_response.text}"
    return f"[{message.role.value}] {part.text}" if part.text else ""
