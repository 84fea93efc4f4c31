"""Delivery: a message to a session, whether it works or waits, and the run that answers it."""

from __future__ import annotations

import time

from shared.errors import SubagentConfigError
from shared.subagents.agent import Subagent
from shared.subagents.engine import Engine
from shared.subagents.result import Status
from shared.subagents.run import Run
from shared.subagents.seat import Caller


def delivered(engine: Engine, caller: Caller, agent: Subagent, message: str, until: float) -> Run:
    """Tell a session something; the run that is given back has read it, or still works when time is up.

    One that works reads it before its next model call; one that comes to its end without that, or
    waits already, begins another run with it.
    """
    while True:
        run = agent.run
        if run.done.is_open:
            try:
                return engine.resume(caller, agent, message, background=True)
            except SubagentConfigError:
                if agent.run is run:
                    raise
                continue  # somebody else was quicker: it is at work again
        sent = agent.tell(message)
        if not engine.wait(caller, [run], timeout=max(0.0, until - time.monotonic())) or not agent.take_back(sent):
            return run
        if run.status not in (Status.COMPLETED, Status.PARTIAL):  # nobody who was killed comes back for a message
            raise SubagentConfigError(f"{agent.agent_id} ended as {run.status.value} before it read the message")
