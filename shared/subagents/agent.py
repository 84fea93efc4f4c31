"""Subagent and Tree: the agents below one main session, and what they share."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from shared.errors import SubagentConfigError, SubagentNestingError, SubagentNotFoundError
from shared.session import JaatoSession
from shared.subagents.plan import Plan
from shared.subagents.result import Status
from shared.subagents.run import Run
from shared.subagents.state import SharedState

MAIN = "main"


@dataclass(eq=False)
class Subagent:
    """An agent outlives its runs: between them it waits, with its history, until it is closed."""

    agent_id: str
    name: str
    plan: Plan
    parent_id: str
    depth: int
    path: str
    key: tuple[str, ...]  # what makes a second spawn a duplicate of this one
    created_at: float = field(default_factory=time.time)
    last_activity: float = field(default_factory=time.time)
    session: JaatoSession | None = None
    runs: list[Run] = field(default_factory=list)
    tools: frozenset[str] | None = None  # what it may call; rights can narrow, never grow
    turns: int = 0
    closed: bool = False
    _mail: deque[str] = field(default_factory=deque)

    def tell(self, message: str) -> None:
        """Leave a message for its next model call."""
        self._mail.append(message)

    def take_mail(self) -> list[str]:
        """The messages that wait, each once."""
        mail: list[str] = []
        while self._mail:
            mail.append(self._mail.popleft())
        return mail

    @property
    def run(self) -> Run:
        """The newest run."""
        return self.runs[-1]

    @property
    def is_live(self) -> bool:
        """Whether a run is queued or running."""
        return not self.run.status.is_final

    @property
    def status(self) -> Status:
        """Where the agent stands: its run's status, or waiting for the next one."""
        if self.is_live or self.closed:
            return self.run.status
        return Status.WAITING


class Tree:
    """All agents below one main session, under one lock; ids are minted here, once."""

    def __init__(self, root: str = MAIN) -> None:
        self.root = root
        self.state = SharedState()
        self.spawned = 0
        self._lock = threading.Lock()
        self._agents: dict[str, Subagent] = {}
        self._live: dict[str, dict[str, Subagent]] = {}  # by parent: agents with a run that has not ended

    def add(
        self,
        make: Callable[[str], Subagent],
        *,
        parent_id: str,
        key: tuple[str, ...],
        max_children: int,
        max_total: int,
    ) -> tuple[Subagent, bool]:
        """Register a new agent if the limits allow; an equal live one is given back instead (False)."""
        with self._lock:
            siblings = [each for each in self._live.get(parent_id, {}).values() if each.is_live]
            for each in siblings:
                if each.key == key:
                    return each, False
            if len(siblings) >= max_children:
                raise SubagentNestingError(
                    f"{parent_id} has {len(siblings)} live subagents, max_children is {max_children}: wait for one or "
                    "cancel it, or raise max_children"
                )
            if self.spawned >= max_total:
                raise SubagentNestingError(
                    f"{self.spawned} subagents were spawned in this conversation, max_total_spawns is {max_total}: "
                    "continue an existing one, or raise max_total_spawns"
                )
            agent = make(self._mint())
            self._agents[agent.agent_id] = agent
            self._live.setdefault(parent_id, {})[agent.agent_id] = agent
            self.spawned += 1
            return agent, True

    def resume(self, agent: Subagent, make: Callable[[], Run]) -> Run:
        """Begin another run of an agent that waits."""
        with self._lock:
            if agent.closed:
                raise SubagentConfigError(f"{agent.agent_id} is closed: spawn a new subagent")
            if agent.is_live:
                raise SubagentConfigError(
                    f"{agent.agent_id} is {agent.run.status.value}: steer it with send_to_subagent, or wait for it"
                )
            run = make()
            agent.runs.append(run)
            self._live.setdefault(agent.parent_id, {})[agent.agent_id] = agent
            return run

    def close(self, agent: Subagent) -> list[Subagent]:
        """Let no further run of an agent, or of one below it, begin; returns them."""
        closing = [agent, *self.below(agent.agent_id)]
        with self._lock:
            for each in closing:
                each.closed = True
        return closing

    def ended(self, agent: Subagent) -> None:
        """The newest run of an agent has its result."""
        with self._lock:
            siblings = self._live.get(agent.parent_id, {})
            if not agent.is_live:
                siblings.pop(agent.agent_id, None)
                if not siblings:
                    self._live.pop(agent.parent_id, None)

    def get(self, agent_id: str) -> Subagent | None:
        """The agent of that id."""
        return self._agents.get(agent_id)

    def find(self, caller_id: str, name: str) -> Subagent:
        """An agent below the caller, by id or by a name that only one of them has."""
        found = self._agents.get(name)
        if found is not None and self._is_below(found, caller_id):
            return found
        below = self.below(caller_id)
        named = [agent for agent in below if agent.name == name]
        if len(named) == 1:
            return named[0]
        if named:
            ids = ", ".join(agent.agent_id for agent in named)
            raise SubagentNotFoundError(f"{len(named)} subagents are named '{name}': use an id: {ids}")
        ids = ", ".join(f"{agent.agent_id} ({agent.name})" for agent in below) or "none yet"
        raise SubagentNotFoundError(f"no subagent '{name}'. Known: {ids}")

    def children(self, parent_id: str) -> list[Subagent]:
        """The agents that this one spawned, oldest first."""
        with self._lock:
            return [agent for agent in self._agents.values() if agent.parent_id == parent_id]

    def has_live_below(self, agent_id: str) -> bool:
        """Whether anything below an agent still works."""
        with self._lock:
            pending = [agent_id]
            while pending:
                for each in self._live.get(pending.pop(), {}).values():
                    if each.is_live:
                        return True
            return False

    def live_children(self, parent_id: str) -> list[Subagent]:
        """Agents that this one spawned and that still work."""
        with self._lock:
            return [agent for agent in self._live.get(parent_id, {}).values() if agent.is_live]

    def below(self, agent_id: str) -> list[Subagent]:
        """All agents below this one, parents before children."""
        with self._lock:
            agents = list(self._agents.values())
        found: list[Subagent] = []
        known = {agent_id}
        for agent in agents:  # in order of creation, so a parent comes before its children
            if agent.parent_id in known:
                known.add(agent.agent_id)
                found.append(agent)
        return found

    def above(self, agent: Subagent) -> Iterator[Subagent]:
        """The agents above this one, nearest first."""
        parent = self._agents.get(agent.parent_id)
        while parent is not None:
            yield parent
            parent = self._agents.get(parent.parent_id)

    def _is_below(self, agent: Subagent, caller_id: str) -> bool:
        return caller_id == self.root or caller_id in (agent.parent_id, *(each.parent_id for each in self.above(agent)))

    def _mint(self) -> str:
        while True:
            agent_id = f"subagent_{secrets.token_hex(4)}"
            if agent_id not in self._agents:
                return agent_id
