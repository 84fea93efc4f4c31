"""Story: everything that the store has about one agent, read at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.cli.runs.naming import conversation_of
from shared.cli.runs.rows import spent
from shared.cli.runs.transcript import as_dict
from shared.store.reader import Reader
from shared.store.records import AgentRecord, ConversationRecord, Cost, RunRecord, StoredMessage, ToolCallRecord


@dataclass(frozen=True)
class Story:
    """An agent, its runs, what was said and done, what it cost."""

    agent: AgentRecord
    conversation: ConversationRecord
    runs: tuple[RunRecord, ...]
    messages: tuple[StoredMessage, ...]
    calls: tuple[ToolCallRecord, ...]
    own: Cost
    whole: Cost  # with all below it
    below: tuple[AgentRecord, ...]

    @property
    def newest(self) -> RunRecord | None:
        """The run that counts; a main agent has none."""
        return self.runs[-1] if self.runs else None

    @property
    def status(self) -> str:
        """How it stands."""
        return self.newest.status if self.newest is not None else "idle"

    @property
    def is_led(self) -> bool:
        """Whether a process that runs leads its conversation."""
        return self.conversation.is_live

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        agent = self.agent
        return {
            "agent_id": agent.agent_id,
            "name": agent.name,
            "profile": agent.profile,
            "parent_id": agent.parent_id,
            "children": [each.agent_id for each in self.below if each.parent_id == agent.agent_id],
            "conversation": agent.conversation,
            "workspace": self.conversation.workspace,
            "status": self.status,
            "model": agent.model,
            "provider": agent.provider,
            "tools": agent.spec.get("tools"),
            "created_at": agent.created_at,
            "closed": agent.closed_at is not None,
            "owner_alive": self.is_led,
            "turns": self.own.calls,
            "tool_calls": len(self.calls),
            **spent(self.own),
            "subtree": {"turns": self.whole.calls, **spent(self.whole)},
            "runs": [_run(run) for run in self.runs],
            "transcript": [as_dict(each) for each in self.messages],
        }


def read_story(reader: Reader, agent: AgentRecord) -> Story:
    """Read it; runs first, so that what ended is told with all that was said."""
    runs = reader.runs(agent.key)
    below = [each for each in reader.below(agent) if each.key != agent.key]
    return Story(
        agent,
        conversation_of(reader, agent),
        tuple(runs),
        tuple(reader.transcript(agent.key)),
        tuple(reader.tool_calls(agent.key)),
        reader.cost([agent.key]),
        reader.cost([agent.key, *(each.key for each in below)]),
        tuple(below),
    )


def _run(run: RunRecord) -> dict[str, Any]:
    return {
        "status": run.status,
        "task": run.message.text,
        "background": run.background,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "result": run.result,
    }
