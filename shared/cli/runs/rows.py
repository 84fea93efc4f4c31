"""Rows: every agent of a conversation with its newest run and what it spent, in the order of the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shared.store.reader import Reader
from shared.store.records import AgentRecord, ConversationRecord, Cost, RunRecord

Wanted = Callable[["Row"], bool]


@dataclass(frozen=True)
class Row:
    """One agent; `level` is its place in the tree as it is shown."""

    agent: AgentRecord
    run: RunRecord | None
    cost: Cost
    is_led: bool  # whether a process that runs leads its conversation
    level: int = 0

    @property
    def status(self) -> str:
        """That of its newest run."""
        return self.run.status if self.run is not None else "idle"

    @property
    def since(self) -> float:
        """When it ended or, until then, when it was asked for."""
        if self.run is None:
            return self.agent.created_at
        return self.run.ended_at or self.run.created_at

    def as_dict(self) -> dict[str, Any]:
        """What the table shows and more, for programs."""
        agent, run = self.agent, self.run
        return {
            "agent_id": agent.agent_id,
            "name": agent.name,
            "profile": agent.profile,
            "parent_id": agent.parent_id,
            "conversation": agent.conversation,
            "depth": agent.depth,
            "status": self.status,
            "reason": (run.result or {}).get("reason") if run is not None else None,
            "model": agent.model,
            "provider": agent.provider,
            "turns": self.cost.calls,
            **spent(self.cost),
            "created_at": agent.created_at,
            "ended_at": run.ended_at if run is not None else None,
            "closed": agent.closed_at is not None,
            "owner_alive": self.is_led,
        }


@dataclass(frozen=True)
class Group:
    """A conversation and the agents below its main one."""

    conversation: ConversationRecord
    rows: tuple[Row, ...]

    @property
    def updated_at(self) -> float:
        """When something was last said, begun or ended in it."""
        return max([self.conversation.updated_at, *(row.since for row in self.rows)])


def spent(cost: Cost) -> dict[str, Any]:
    """Tokens and money as plain values; no price is known of a model that costs None."""
    priced = cost.calls > cost.unpriced_calls or not cost.calls
    return {
        "token_usage": cost.usage.as_dict(),
        "cost_usd": float(cost.cost_usd) if priced else None,
        "unpriced_calls": cost.unpriced_calls,
    }


def read_group(reader: Reader, conversation: ConversationRecord, wanted: Wanted) -> Group:
    """The agents of a conversation that are wanted, each below its parent, oldest first."""
    agents = [agent for agent in reader.agents(conversation.id) if not agent.is_main]
    newest = reader.newest_runs([agent.key for agent in agents])
    found: list[Row] = []
    shown: dict[str, int] = {}
    for agent in _in_order(agents):
        row = read_row(
            reader, agent, newest.get(agent.key), conversation, level=shown.get(agent.parent_id or "", -1) + 1
        )
        if wanted(row):
            found.append(row)
            shown[agent.agent_id] = row.level
        elif agent.parent_id in shown:
            shown[agent.agent_id] = row.level - 1  # whoever is below it moves up
    return Group(conversation, tuple(found))


def read_row(
    reader: Reader, agent: AgentRecord, run: RunRecord | None, conversation: ConversationRecord, *, level: int = 0
) -> Row:
    """One agent with what it spent."""
    return Row(agent, run, reader.cost([agent.key]), conversation.is_live, level)


def _in_order(agents: Sequence[AgentRecord]) -> Iterator[AgentRecord]:
    """Parents before their children, each followed by all below it; whoever has no known parent stands at the top."""
    children: dict[str | None, list[AgentRecord]] = {}
    known = {agent.agent_id for agent in agents}
    for agent in agents:
        children.setdefault(agent.parent_id if agent.parent_id in known else None, []).append(agent)
    waiting, seen = list(reversed(children.get(None, []))), set[int]()
    while waiting:
        agent = waiting.pop()
        seen.add(agent.key)
        yield agent
        waiting += reversed(children.get(agent.agent_id, []))
    yield from (agent for agent in agents if agent.key not in seen)  # a circle, which only a damaged file has
