"""Letting an agent go by itself: closed when its work, and all the work below it, has ended."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from shared.executors.threads import workers
from shared.subagents.agent import Subagent
from shared.subagents.engine import Engine
from shared.subagents.seat import Caller


def retire(engine: Engine, caller: Caller, agent: Subagent) -> None:
    """Close an agent as soon as nothing of it runs; its result stays with whoever holds it."""
    family = (agent, *caller.tree.below(agent.agent_id))
    busy = next((each.run for each in family if not each.run.done.is_open), None)
    if busy is None:
        engine.close(caller, agent)
    else:
        busy.done.listen(partial(_later, engine, caller, agent))


def _later(engine: Engine, caller: Caller, agent: Subagent) -> None:
    """In a thread of its own: whoever ends a run must not be held up."""
    with suppress(RuntimeError):  # no thread to be had: it stays open, and goes with its parent
        workers.submit(partial(retire, engine, caller, agent))
