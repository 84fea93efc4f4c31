"""Restoring: agents, runs and shared values from the store, as they were before a restart or a long rest."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from shared.budget import Limits
from shared.definitions.profile import SubagentProfile
from shared.errors import StoreCorrupt, SubagentNotFoundError
from shared.gc.base import GCConfig
from shared.providers.base import ModelSettings
from shared.store.conversations import Conversation
from shared.store.reader import Reader
from shared.store.records import AgentRecord, RunRecord
from shared.store.rows import UNREADABLE
from shared.subagents.agent import Subagent
from shared.subagents.plan import Choice, Plan
from shared.subagents.result import Status, SubagentResult
from shared.subagents.run import Run, over
from shared.subagents.seat import Seat
from shared.subagents.stored_place import stored_place
from shared.subagents.stored_result import decode
from shared.subagents.tree import Tree

LEVEL = "stored"  # where the model of an agent from the store comes from


def restore_agent(tree: Tree, seat: Seat, record: AgentRecord, newest: RunRecord) -> Subagent:
    """An agent at rest with its newest run, put into its tree; its session is opened when it goes on."""
    spec, place = record.spec, stored_place(tree, record)
    agent = Subagent(
        record.agent_id,
        record.name,
        _plan_at_rest(record),
        place.parent_id,
        place.depth,
        place.path,
        _texts(spec.get("key")),
        created_at=record.created_at,
        last_activity=newest.ended_at or newest.created_at,
        tools=frozenset(_texts(spec.get("tools"))),
        closed=record.closed_at is not None,
        cleanup=bool(record.cleanup),
        stored=record.key,
        asleep=True,
        origin=spec,
    )
    run = agent.run = restore_run(agent, seat, newest)
    agent.turns = run.result.turns_used if run.result is not None else 0
    return tree.restore(agent)


def restore_run(agent: Subagent, seat: Seat, record: RunRecord) -> Run:
    """A run that has ended, with its result."""
    try:
        status = Status(record.status)
        result = decode(record.result) if record.result is not None else SubagentResult(agent.agent_id, status)
    except UNREADABLE as error:
        raise StoreCorrupt(f"the store holds a result of {agent.agent_id} that cannot be read: {error!r}") from error
    run = Run(agent, record.message, over(), None, record.background, seat, status=status, created_at=record.created_at)
    run.restore(replace(result, agent_id=agent.agent_id), told=record.told_at is not None, stored=record.key)
    return run


def recall(tree: Tree, seat: Seat, conversation: Conversation, name: str) -> Subagent | None:
    """An agent that left memory, by id or unique name, with those above it; None if the store has none."""
    reader = conversation.store.reader
    try:
        record = reader.agent(name, conversation=conversation.id)
    except SubagentNotFoundError:
        return None
    return _recalled(tree, seat, reader, record)


def _recalled(tree: Tree, seat: Seat, reader: Reader, record: AgentRecord) -> Subagent | None:
    if record.is_main:
        return None
    found = tree.get(record.agent_id)
    if found is not None:
        return found
    for each in [*_above(tree, reader, record), record]:
        newest = reader.newest_runs([each.key]).get(each.key)
        found = restore_agent(tree, seat, each, newest) if newest is not None and not newest.is_live else None
    return found


def _above(tree: Tree, reader: Reader, record: AgentRecord) -> list[AgentRecord]:
    """The agents above one that are not in memory, topmost first; parents were always there before their children."""
    if record.parent_id in (None, tree.root) or tree.get(record.parent_id) is not None:
        return []
    known = {each.agent_id: each for each in reader.agents(record.conversation) if not each.is_main}
    found: list[AgentRecord] = []
    while (above := known.get(record.parent_id or "")) and above.key < record.key and not tree.get(above.agent_id):
        found.insert(0, above)
        record = above
    return found


def keep_tree(seat: Seat, conversation: Conversation) -> None:
    """Store a tree from now on; agents that leave memory are found in the store again."""
    seat.tree.keep(conversation)
    seat.tree.recall = partial(recall, seat.tree, seat, conversation)


def restore_tree(seat: Seat, conversation: Conversation) -> None:
    """Everything that a main session left when its process ended: agents, shared values, announcements."""
    reader, tree = conversation.store.reader, seat.tree
    records = [record for record in reader.agents(conversation.id) if not record.is_main]
    newest = reader.newest_runs([record.key for record in records])
    for record in records:
        run = newest.get(record.key)
        if run is not None and not run.is_live and record.closed_at is None and tree.get(record.agent_id) is None:
            restore_agent(tree, seat, record, run)
    tree.spawned = max(tree.spawned, len(records))
    tree.state.restore(reader.shared_state(conversation.id))
    fill_inbox(seat, conversation)


def fill_inbox(seat: Seat, conversation: Conversation) -> None:
    """Announce to a parent that is back what it has not heard of."""
    reader = conversation.store.reader
    by_key = {record.key: record for record in reader.agents(conversation.id)}
    for record in reader.untold(conversation.id, seat.id):
        if not record.background and record.status == Status.CANCELLED.value:
            continue  # stopped with the turn that waited for it
        agent_id = by_key[record.agent].agent_id
        agent = seat.tree.get(agent_id) or recall(seat.tree, seat, conversation, agent_id)
        if agent is None:
            continue
        run = agent.run if agent.run.stored == record.key else restore_run(agent, seat, record)
        if run.result is not None:
            seat.inbox.put(run)


def spent_before(agent: Subagent, conversation: Conversation | None) -> dict[str, int | Decimal]:
    """What an interrupted run, and all below it, had spent of its budget: the one that goes on has only the rest."""
    if conversation is None or agent.origin is None or not agent.stored:
        return {}
    reader = conversation.store.reader
    since = None
    for run in reversed(reader.runs(agent.stored)):
        if run.status != Status.INTERRUPTED.value:
            break
        since = run.created_at
    if since is None:
        return {}
    own = reader.agent(agent.agent_id, conversation=conversation.id)
    below = reader.below(own)
    keys = [own.key, *(each.key for each in below)]
    cost = reader.cost(keys, since=since)
    calls = sum(call.started_at >= since for key in keys for call in reader.tool_calls(key))
    spawns = sum(each.created_at >= since for each in below)
    return {
        "total_tokens": cost.usage.total_tokens,
        "cost_usd": cost.cost_usd,
        "tool_calls": calls,
        "spawns": spawns,
    }


def as_before(plan: Plan, agent: Subagent) -> Plan:
    """A plan that was made anew, with the model that an agent had and never more than it was given."""
    spec, former = agent.origin or {}, agent.plan
    return replace(
        plan,
        model=Choice(former.model.value, LEVEL),
        provider=Choice(former.provider.value, LEVEL),
        bounded=plan.bounded or bool(spec.get("bounded", True)),
        vouched=plan.vouched and bool(spec.get("vouched")),
        may_spawn=plan.may_spawn and bool(spec.get("may_spawn")),
    )


def _texts(given: Any) -> tuple[str, ...]:
    """A list of texts, as far as it is one."""
    return tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()


def _plan_at_rest(record: AgentRecord) -> Plan:
    """What is known of an agent until it goes on; then its profile is looked up again."""
    profile = SubagentProfile(record.profile or "_stored", max_turns=record.spec.get("max_turns", 10))
    return Plan(
        profile=profile,
        label=record.profile,
        plugins=(),
        plugin_configs={},
        bounded=True,
        vouched=False,
        may_spawn=False,
        model=Choice(record.model, LEVEL),
        provider=Choice(record.provider, LEVEL),
        settings=ModelSettings(),
        gc=GCConfig(),
        budget=Limits(),
    )
