"""Tree: all agents below one main session, who is live among them, and what they share."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from shared.errors import SubagentConfigError, SubagentNestingError, SubagentNotFoundError
from shared.session import JaatoSession
from shared.subagents.agent import Subagent
from shared.subagents.run import Run
from shared.subagents.state import SharedState

if TYPE_CHECKING:
    from shared.store.conversations import Conversation

MAIN = "main"
NAMED_IN_ERRORS = 20  # how many agents an error message lists
KEPT_CLOSED = 1000  # closed agents whose results stay readable; older ones are forgotten


class Tree:
    """One lock over who exists and who is live; ids are minted here, once. No cost grows with the number of agents."""

    def __init__(self, root: str = MAIN) -> None:
        self.root = root
        self.state = SharedState()
        self.spawned = 0
        self.conversation: Conversation | None = None  # where it is stored
        self.recall: Callable[[str], Subagent | None] | None = None  # finds agents that left memory
        self._lock = threading.Lock()
        self._agents: dict[str, Subagent] = {}
        self._children: dict[str, dict[str, Subagent]] = {}  # by parent, oldest first
        self._closed: deque[Subagent] = deque()
        self._named: dict[str, dict[str, Subagent]] = {}
        self._live: dict[str, dict[str, Subagent]] = {}  # by parent: agents with a run that has not ended
        self._equal: dict[tuple[str, ...], list[Subagent]] = {}  # live agents by parent and key
        self._dice = random.Random(secrets.randbits(128))  # noqa: S311 - ids are names, not secrets; the system's own source is slow
        self._live_below: Counter[str] = Counter()  # by agent: how many below it, at any depth, are live

    # -- what is stored --------------------------------------------------------------------------

    def keep(self, conversation: Conversation) -> None:
        """Store this tree from now on."""
        self.state.sink = conversation.share
        self.conversation = conversation

    def told(self, run: Run) -> None:
        """A parent is being given a stored result: by the answer of a tool in its turn, else it has it now."""
        conversation, session = self.conversation, run.seat.session
        if session.recorder is not None and session.turn is not None:
            session.recorder.tells(run.stored)
        elif conversation is not None:
            conversation.tell(run.stored)

    def restore(self, agent: Subagent) -> Subagent:
        """Put an agent at rest back into its place; of two at once the first counts."""
        with self._lock:
            found = self._agents.setdefault(agent.agent_id, agent)
            if found is agent:
                self._place(agent)
            return found

    def rest(self, agent: Subagent) -> bool:
        """Let go of an agent that is in the store and idle, with nobody below it; False if it is needed."""
        with self._lock:
            needed = agent.is_live or not agent.run.told or not agent.stored or self._children.get(agent.agent_id)
            if needed or self._agents.get(agent.agent_id) is not agent or not agent.run.done.is_open:
                return False
            if agent in self._closed:
                self._closed.remove(agent)
            self._forget(agent)
            return True

    # -- what changes ----------------------------------------------------------------------------

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
            if (parent := self._agents.get(parent_id)) is not None and parent.closed:
                raise SubagentConfigError(f"{parent_id} is closed: it starts nothing any more")
            for each in self._equal.get((parent_id, *key), ()):
                if each.is_live:
                    return each, False
            if len(self._live.get(parent_id, ())) >= max_children:
                self._require_room(parent_id, max_children)
            if self.spawned >= max_total:
                raise SubagentNestingError(
                    f"{self.spawned} subagents were spawned in this conversation, max_total_spawns is {max_total}: "
                    "continue an existing one, or raise max_total_spawns"
                )
            agent = make(self._mint())
            self._agents[agent.agent_id] = agent
            self._place(agent)
            self._enlist(agent)
            self.spawned += 1
            return agent, True

    def resume(self, agent: Subagent, make: Callable[[], Run]) -> Run:
        """Begin another run of an agent that waits."""
        with self._lock:
            if agent.closed:
                raise SubagentConfigError(f"{agent.agent_id} is closed: spawn a new subagent")
            if not agent.run.done.is_open:
                raise SubagentConfigError(
                    f"{agent.agent_id} is {agent.run.status.value}: steer it with send_to_subagent, or wait for it"
                )
            run = agent.run = make()
            self._enlist(agent)
            return run

    def reuse(self, agent: Subagent, make: Callable[[], Run], *, key: tuple[str, ...], max_children: int) -> Run | None:
        """Begin a run of an idle agent for another task; None if it is not idle, or an equal task is under way."""
        with self._lock:
            live, equal = self._live.get(agent.parent_id, {}), self._equal.get((agent.parent_id, *key), ())
            there = self._agents.get(agent.agent_id) is agent and agent.run.done.is_open and not agent.closed
            if not there or agent.agent_id in live or any(each.is_live for each in equal):
                return None
            if len(live) >= max_children:
                self._require_room(agent.parent_id, max_children)
            agent.key = key
            run = agent.run = make()
            self._enlist(agent)
            return run

    def settle(self, run: Run, session: JaatoSession) -> bool:
        """Give an agent its session; False if the run is over or the agent closed, and so nobody wants it."""
        agent = run.agent
        with self._lock:
            if agent.closed or agent.run is not run or run.result is not None:
                return False
            agent.session = session
            return True

    def ended(self, run: Run) -> list[Run]:
        """A run has its result; returns the background runs that can be announced now, each once.

        One with live descendants is announced when the last of them has ended.
        """
        agent, ready = run.agent, list[Run]()
        with self._lock:
            agent.last_activity = time.time()
            agent.turns += run.result.turns_used if run.result is not None else 0
            if run.background:
                agent.unannounced += (run,)
            if not agent.is_live:
                self._discharge(agent)
            for each in (agent, *self.above(agent)):
                if self._live_below[each.agent_id]:
                    break
                ready += each.unannounced
                each.unannounced = ()
        return ready

    def close(self, agent: Subagent) -> list[tuple[Subagent, JaatoSession | None]]:
        """Let no further run of an agent, or of one below it, begin; returns them with the sessions they had."""
        with self._lock:
            closing = [agent, *self._walk(agent.agent_id)]
            found = [(each, each.session) for each in closing]
            for each in reversed(closing):  # children are forgotten before their parents
                if not each.closed:
                    self._closed.append(each)
                each.closed, each.session = True, None
            while len(self._closed) > KEPT_CLOSED and self._closed[0].run.done.is_open:
                self._forget(self._closed.popleft())
            return found

    # -- who is there ----------------------------------------------------------------------------

    def get(self, agent_id: str) -> Subagent | None:
        """The agent of that id."""
        return self._agents.get(agent_id)

    def find(self, caller_id: str, name: str) -> Subagent:
        """An agent below the caller, by id or by a name that only one of them has."""
        found = self._agents.get(name)
        if found is not None and self._is_below(found, caller_id):
            return found
        with self._lock:
            named = [agent for agent in self._named.get(name, {}).values() if self._is_below(agent, caller_id)]
        if len(named) == 1:
            return named[0]
        if len(still := [agent for agent in named if not agent.closed]) == 1:
            return still[0]
        found = self.recall(name) if self.recall is not None and not named else None
        if found is not None and self._is_below(found, caller_id):
            return found
        if named:
            raise SubagentNotFoundError(f"{len(named)} subagents are named '{name}': use an id: {_listed(named)}")
        raise SubagentNotFoundError(f"no subagent '{name}'. Known: {_listed(self.below(caller_id)) or 'none yet'}")

    def children(self, parent_id: str) -> list[Subagent]:
        """The agents that this one spawned, oldest first."""
        with self._lock:
            return list(self._children.get(parent_id, {}).values())

    def live_children(self, parent_id: str) -> list[Subagent]:
        """Agents that this one spawned and that still work."""
        with self._lock:
            return [agent for agent in self._live.get(parent_id, {}).values() if agent.is_live]

    def has_live_below(self, agent_id: str) -> bool:
        """Whether anything below an agent, at any depth, still works."""
        return self._live_below[agent_id] > 0

    def below(self, agent_id: str) -> list[Subagent]:
        """All agents below this one, parents before children."""
        with self._lock:
            return self._walk(agent_id)

    def above(self, agent: Subagent) -> Iterator[Subagent]:
        """The agents above this one, nearest first."""
        parent = self._agents.get(agent.parent_id)
        while parent is not None:
            yield parent
            parent = self._agents.get(parent.parent_id)

    # -- inside, under the lock ------------------------------------------------------------------

    def _place(self, agent: Subagent) -> None:
        self._children.setdefault(agent.parent_id, {})[agent.agent_id] = agent
        self._named.setdefault(agent.name, {})[agent.agent_id] = agent

    def _require_room(self, parent_id: str, max_children: int) -> None:
        """Look closer: some of those that count as live may just have ended."""
        live = sum(each.is_live for each in self._live[parent_id].values())
        if live >= max_children:
            raise SubagentNestingError(
                f"{parent_id} has {live} live subagents, max_children is {max_children}: wait for one or cancel it, "
                "or raise max_children"
            )

    def _enlist(self, agent: Subagent) -> None:
        """Count an agent as live; its former run may not have been discharged yet."""
        siblings = self._live.setdefault(agent.parent_id, {})
        if agent.agent_id not in siblings:
            siblings[agent.agent_id] = agent
            self._equal.setdefault((agent.parent_id, *agent.key), []).append(agent)
            self._count(agent, 1)

    def _discharge(self, agent: Subagent) -> None:
        siblings = self._live.get(agent.parent_id, {})
        if siblings.pop(agent.agent_id, None) is None:
            return
        self._count(agent, -1)
        if not siblings:
            del self._live[agent.parent_id]
        equal = self._equal[(agent.parent_id, *agent.key)]
        equal.remove(agent)
        if not equal:
            del self._equal[(agent.parent_id, *agent.key)]

    def _count(self, agent: Subagent, change: int) -> None:
        for each in (agent.parent_id, *(above.parent_id for above in self.above(agent))):
            self._live_below[each] += change
            if not self._live_below[each]:
                del self._live_below[each]

    def _walk(self, agent_id: str) -> list[Subagent]:
        found = list(self._children.get(agent_id, {}).values())
        for agent in found:  # grows while it is read: level by level
            found += self._children.get(agent.agent_id, {}).values()
        return found

    def _forget(self, agent: Subagent) -> None:
        del self._agents[agent.agent_id]
        for index, place in ((self._children, agent.parent_id), (self._named, agent.name)):
            del index[place][agent.agent_id]
            if not index[place]:
                del index[place]

    def _is_below(self, agent: Subagent, caller_id: str) -> bool:
        return caller_id == self.root or caller_id in (agent.parent_id, *(each.parent_id for each in self.above(agent)))

    def _mint(self) -> str:
        while True:
            agent_id = f"subagent_{self._dice.getrandbits(32):08x}"
            if agent_id not in self._agents:
                return agent_id


def _listed(agents: list[Subagent]) -> str:
    newest = agents[-NAMED_IN_ERRORS:]
    more = f" and {len(agents) - len(newest)} older ones" if len(agents) > len(newest) else ""
    return ", ".join(f"{agent.agent_id} ({agent.name})" for agent in newest) + more
