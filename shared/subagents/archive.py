"""Archive: what the engine keeps in the store, step by step; where there is no store, each step is nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from shared.session import JaatoSession
from shared.store import writes
from shared.store.conversations import Conversation, keep, take_up
from shared.store.recorder import Recorder
from shared.store.records import AgentRecord, RunRecord
from shared.subagents.agent import Subagent
from shared.subagents.plan import Plan
from shared.subagents.restoring import keep_tree
from shared.subagents.result import SubagentResult
from shared.subagents.run import Run
from shared.subagents.stored_result import encode
from shared.types import Message

if TYPE_CHECKING:
    import sqlite3

    from shared.subagents.seat import Caller
    from shared.subagents.tree import Tree


Asked = tuple[str | None, Mapping[str, Any] | None, frozenset[str]]  # profile, inline settings, tools


class Archive:
    """One per engine. Everything is put into a queue; only `entered` and `ended` wait until it is on disk."""

    def __init__(self) -> None:
        self.agents: WeakValueDictionary[int, Subagent] = WeakValueDictionary()  # by their keys in the store

    def prepare(self, caller: Caller) -> Conversation | None:
        """See that what is to be started will be stored; raises where the host insists on it and it cannot be."""
        found = caller.tree.conversation
        if found is not None:
            found.store.open()
            return found
        store = caller.session.runtime.store
        if store is None or caller.agent is not None:  # begun unstored, a tree stays so
            return None
        made = keep(caller.session, store)
        if made is not None:
            keep_tree(caller.seat, made)
        return made

    def spawned(self, tree: Tree, agent: Subagent, *, profile: str | None, inline: Mapping[str, Any] | None) -> None:
        """An agent and its first run exist, queued."""
        conversation = tree.conversation
        if conversation is None:
            return
        store, run = conversation.store, agent.run
        agent.stored, run.stored = store.mint(), store.mint()
        self.agents[agent.stored] = agent
        asked = profile, inline, agent.tools
        store.put(partial(_add_agent, conversation.id, agent, agent.plan, agent.stored, asked))
        self._add_run(conversation, run)

    def queued(self, tree: Tree, run: Run) -> None:
        """Another run of an agent exists."""
        conversation = tree.conversation
        if conversation is not None and run.agent.stored:
            run.stored = conversation.store.mint()
            self._add_run(conversation, run)

    def entered(self, run: Run) -> None:
        """A run is about to be queued: it is on disk before anybody works on it, or hears of it."""
        conversation = run.seat.tree.conversation
        if conversation is not None and run.stored:
            conversation.store.commit()

    def began(self, run: Run) -> None:
        """A run is at work."""
        conversation = run.seat.tree.conversation
        if conversation is not None and run.stored:
            conversation.store.put(partial(writes.begin_run, run.stored, time.time()))

    def keep_session(self, run: Run, session: JaatoSession) -> None:
        """Keep what an agent's session says and spends; one that was here before gets its history back."""
        agent, conversation = run.agent, run.seat.tree.conversation
        if conversation is None or not agent.stored:
            return
        if agent.asleep:
            take_up(session, conversation.store, agent.stored, run=run.stored, at_hand=agent.letters)
        else:
            session.keep(Recorder(conversation.store, agent.stored))

    def narrowed(self, run: Run) -> None:
        """An agent may call fewer tools than before: it never gets them back."""
        agent, conversation = run.agent, run.seat.tree.conversation
        if conversation is not None and agent.stored:
            conversation.store.put(partial(writes.narrow_agent, agent.stored, sorted(agent.tools)))

    def ended(self, run: Run, result: SubagentResult) -> None:
        """A run has its result: it is on disk before anybody is told."""
        conversation = run.seat.tree.conversation
        if conversation is None or not run.stored:
            return
        store, plan = conversation.store, run.agent.plan
        if result.model and (result.model, result.provider) != (plan.model.value, plan.provider.value):
            store.put(partial(writes.set_model, run.agent.stored, result.model, result.provider))
        store.put(partial(_end_run, run.stored, result, time.time()))
        store.commit()

    def closed(self, tree: Tree, agents: Sequence[Subagent]) -> None:
        """Agents are closed for good."""
        keys = [agent.stored for agent in agents if agent.stored]
        if tree.conversation is not None and keys:
            tree.conversation.store.put(partial(writes.close_agents, keys))

    @staticmethod
    def _add_run(conversation: Conversation, run: Run) -> None:
        run_of = run.stored, run.agent.stored, conversation.store.owner, run.background
        conversation.store.put(partial(_add_run, *run_of, run.message, run.created_at))


# What follows runs when the queue is written: nothing of it holds up the run.


def _add_agent(conversation: str, agent: Subagent, plan: Plan, key: int, asked: Asked, db: sqlite3.Connection) -> None:
    record = AgentRecord(
        key=key,
        conversation=conversation,
        agent_id=agent.agent_id,
        parent_id=agent.parent_id,
        name=agent.name,
        depth=agent.depth,
        path=agent.path,
        profile=plan.label,
        model=plan.model.value,
        provider=plan.provider.value,
        spec=_origin(plan, agent.key, *asked),
        created_at=agent.created_at,
        cleanup=int(agent.cleanup),
    )
    writes.add_agent(record, db)


def _add_run(
    key: int, agent: int, owner: int, background: bool, message: Message, at: float, db: sqlite3.Connection
) -> None:
    writes.add_run(RunRecord(key, agent, owner, "queued", background, message, at), db)


def _end_run(key: int, result: SubagentResult, at: float, db: sqlite3.Connection) -> None:
    writes.end_run(key, result.status.value, encode(result), at, db)


def _origin(
    plan: Plan, key: tuple[str, ...], profile: str | None, inline: Mapping[str, Any] | None, tools: frozenset[str]
) -> dict[str, Any]:
    """What it takes to make an agent anew: what was asked for, and the rights it got."""
    return {
        "profile": profile,
        "inline": dict(inline) if inline else None,
        "tools": sorted(tools),
        "key": list(key),
        "max_turns": plan.profile.max_turns,
        "bounded": plan.bounded,
        "vouched": plan.vouched,
        "may_spawn": plan.may_spawn,
    }
