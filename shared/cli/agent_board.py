"""AgentBoard: what is known of every agent, from the event stream alone, as of any moment."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import singledispatchmethod

from shared.bus import EventBus
from shared.events import (
    AgentCompleted,
    AgentCreated,
    AgentOutput,
    Event,
    ModelCallEnded,
    PermissionAsked,
    PermissionResolved,
    RetryScheduled,
    StatusChanged,
    ToolEnded,
    ToolStarted,
    TurnCompleted,
)
from shared.prices import PriceTable

LIVE = ("queued", "running")
#: What moves the board; output of agents only shows that they are at work.
EVENTS = frozenset(
    {
        *(AgentCreated, AgentCompleted, StatusChanged, TurnCompleted, AgentOutput, ModelCallEnded),
        *(ToolStarted, ToolEnded, PermissionAsked, PermissionResolved, RetryScheduled),
    }
)


@dataclass(eq=False)
class AgentNode:
    """One agent: who it is, where it stands, what it is busy with and what it has used."""

    agent_id: str
    name: str
    parent_id: str | None = None
    profile: str | None = None
    status: str = "idle"
    begun: float = 0.0
    ended: float | None = None
    turns: int = 0  # model calls
    tokens: int = 0
    cost: Decimal | None = None  # None: no call of it had a price
    retrying: str = ""
    tools: dict[str, str] = field(default_factory=dict)  # at work: call id → name
    asked: dict[str, str] = field(default_factory=dict)  # waiting for permission: request id → tool

    @property
    def is_live(self) -> bool:
        """Whether it is queued or at work."""
        return self.status in LIVE

    @property
    def phase(self) -> str:
        """What it is busy with: queued, model, tool, awaiting permission or retrying; empty when it is not."""
        if not self.is_live or self.status == "queued":
            return self.status if self.is_live else ""
        if self.asked:
            return "awaiting permission"
        return "tool" if self.tools else "retrying" if self.retrying else "model"

    @property
    def tool(self) -> str:
        """The tool it waits for, the newest if there are several."""
        return next(reversed((self.asked or self.tools).values()), "")

    def elapsed(self, now: float) -> float:
        """Seconds since its run began, until it ended."""
        return max(0.0, (now if self.ended is None else self.ended) - self.begun)


class AgentBoard:
    """Follows agents by their events; a given order of events and times always gives the same picture."""

    def __init__(self, *, prices: PriceTable | None = None, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._prices = prices or PriceTable()
        self._lock = threading.Lock()
        self._nodes: dict[str, AgentNode] = {}

    def follow(self, bus: EventBus) -> Callable[[], None]:
        """Take the events of a bus from now on; returns the way out."""
        return bus.subscribe(self.take, interest=EVENTS)

    def take(self, event: Event, at: float | None = None) -> None:
        """Note one event, which happened now or at a given time."""
        when = self.clock() if at is None else at
        with self._lock:
            node = self._nodes.get(event.agent_id)
            if node is None:
                node = self._nodes[event.agent_id] = AgentNode(event.agent_id, event.agent_id, begun=when)
            self._note(event, node, when)

    def nodes(self) -> list[AgentNode]:
        """All agents as they are now, in the order in which they came; copies."""
        with self._lock:
            return [replace(node, tools=dict(node.tools), asked=dict(node.asked)) for node in self._nodes.values()]

    def find(self, name: str) -> AgentNode | None:
        """The agent of that id, or the newest of that name."""
        nodes = self.nodes()
        by_id = next((node for node in nodes if node.agent_id == name), None)
        return by_id or next((node for node in reversed(nodes) if node.name == name), None)

    @singledispatchmethod
    def _note(self, event: Event, node: AgentNode, at: float) -> None:
        """Other events say nothing about where an agent stands."""

    @_note.register
    def _(self, event: AgentCreated, node: AgentNode, at: float) -> None:
        node.name, node.parent_id, node.profile = event.name, event.parent_id, event.profile

    @_note.register
    def _(self, event: StatusChanged, node: AgentNode, at: float) -> None:
        if event.status in LIVE and not node.is_live:  # a new run of an agent that may have had one
            node.begun, node.ended = at, None
        node.status = event.status
        if not node.is_live:
            _end(node, at)

    @_note.register
    def _(self, event: AgentCompleted, node: AgentNode, at: float) -> None:
        _end(node, at)

    @_note.register
    def _(self, event: TurnCompleted, node: AgentNode, at: float) -> None:
        if node.parent_id is None:
            node.status = "completed"
            _end(node, at)

    @_note.register
    def _(self, event: AgentOutput, node: AgentNode, at: float) -> None:
        _at_work(node, at)

    @_note.register
    def _(self, event: ModelCallEnded, node: AgentNode, at: float) -> None:
        _at_work(node, at)
        node.retrying = ""
        node.tokens += event.usage.total_tokens
        node.turns += event.purpose == "turn" and event.error is None
        cost = self._prices.cost(event.model, event.usage)
        if cost is not None:
            node.cost = (node.cost or Decimal(0)) + cost

    @_note.register
    def _(self, event: RetryScheduled, node: AgentNode, at: float) -> None:
        node.retrying = event.message

    @_note.register
    def _(self, event: ToolStarted, node: AgentNode, at: float) -> None:
        _at_work(node, at)
        node.tools[event.call_id] = event.tool_name

    @_note.register
    def _(self, event: ToolEnded, node: AgentNode, at: float) -> None:
        node.tools.pop(event.call_id, None)

    @_note.register
    def _(self, event: PermissionAsked, node: AgentNode, at: float) -> None:
        node.asked[event.request_id] = event.tool_name

    @_note.register
    def _(self, event: PermissionResolved, node: AgentNode, at: float) -> None:
        node.asked.pop(event.request_id, None)


def _at_work(node: AgentNode, at: float) -> None:
    """The main agent has no status events: what it does shows that a turn is under way."""
    if node.parent_id is None and not node.is_live:
        node.status, node.begun, node.ended = "running", at, None


def _end(node: AgentNode, at: float) -> None:
    node.ended = at if node.ended is None else node.ended
    node.retrying = ""
    node.tools.clear()
    node.asked.clear()


def summary(nodes: Iterable[AgentNode]) -> str:
    """How many agents stand where, such as `8 running, 34 queued, 6 completed`."""
    counted = Counter(node.status for node in nodes)
    order = [*reversed(LIVE), "completed", *sorted(set(counted) - {*LIVE, "completed"})]
    return ", ".join(f"{counted[status]} {status}" for status in order if counted[status])
