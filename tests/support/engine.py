"""For tests of the subagent engine: what it reports, and whether anything is left when all is over."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from support.stress import wait_for
from support.subagents import Stage

from shared.events import AgentCompleted, AgentCreated, Event, StatusChanged
from shared.plugins.subagent import SubagentProfile
from shared.subagents.agent import Subagent
from shared.subagents.engine import Engine
from shared.subagents.run import Run
from shared.subagents.seat import Seat
from shared.subagents.tree import Tree
from shared.testing import check_history


def engine_of(stage: Stage) -> Engine:
    """The engine behind a stage's plugin."""
    engine = stage.plugin._engine
    assert engine is not None
    return engine


def tree_of(stage: Stage) -> Tree:
    """The agents below a stage's main session."""
    return Seat.of(stage.client.get_session(), digest_tokens=1000).tree


def agent_of(stage: Stage, agent_id: str) -> Subagent:
    """An agent by its id."""
    agent = tree_of(stage).get(agent_id)
    assert agent is not None
    return agent


def run_of(stage: Stage, agent_id: str) -> Run:
    """The newest run of an agent."""
    return agent_of(stage, agent_id).run


def assert_at_rest(stage: Stage) -> None:
    """Fail unless no run is live, no slot taken, nobody queued or watched, and every run has its one result."""
    engine, tree = engine_of(stage), tree_of(stage)
    wait_for(lambda: not tree.has_live_below(tree.root))
    agents = tree.below(tree.root)
    wait_for(lambda: all(agent.run.done.is_open for agent in agents))
    assert engine.slots.used == 0
    assert engine.slots.waiting == 0
    assert engine.is_idle
    for agent in agents:
        run = agent.run
        assert run.result is not None
        assert run.status is run.result.status
        assert run.status.is_final
        assert not tree.has_live_below(agent.agent_id)
        assert tree.live_children(agent.agent_id) == []
        assert agent.unannounced == ()
        if agent.session is not None:
            check_history(agent.session.get_history())


class Record:
    """All events of a stage, in the order in which they came."""

    def __init__(self, stage: Stage) -> None:
        self._bus = stage.client.get_runtime().bus
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._bus.subscribe(self._note, interest=frozenset({AgentCreated, StatusChanged, AgentCompleted}))

    def _note(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)

    @property
    def events(self) -> list[Event]:
        """What was reported until now."""
        assert self._bus.flush(20)
        with self._lock:
            return list(self._events)

    def completions(self) -> Counter[str]:
        """How many runs of each agent were reported as completed."""
        return Counter(event.agent_id for event in self.events if isinstance(event, AgentCompleted))

    def statuses(self, agent_id: str) -> list[str]:
        """The statuses of one agent, in order."""
        return [e.status for e in self.events if isinstance(e, StatusChanged) and e.agent_id == agent_id]


def profiles(*given: SubagentProfile) -> dict[str, Any]:
    """Settings with these profiles."""
    return {"profiles": {each.name: each for each in given}}


def in_thread(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start work on a thread of its own; the returned function waits for what it gives."""
    found: list[Any] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            found.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()

    def join() -> Any:
        thread.join(20)
        assert not thread.is_alive(), "it hangs"
        if errors:
            raise errors[0]
        return found[0]

    return join
