"""The arguments that models give to the subagent tools, as types."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

Task = Annotated[str, "What the subagent should do, with all it needs to know; it does not see this conversation"]
AgentId = Annotated[str | None, "Id or unique name of the subagent"]
OldAgentId = Annotated[str | None, "The same as agent_id"]
AgentName = Annotated[str | None, "The same as agent_id"]
Seconds = Annotated[float | None, "Longest wait in seconds", {"minimum": 0}]
StatusFilter = Annotated[
    Literal["queued", "running", "waiting"] | None, "Only those that stand there; default: all of the three"
]


class Context(TypedDict, total=False):
    """What the subagent should know besides its task.

    Args:
        files: Paths worth looking at.
        findings: What is known already.
        notes: Anything else.
    """

    files: list[str]
    findings: list[str] | str
    notes: str


class Budget(TypedDict, total=False):
    """Upper bounds for the run and everything below it."""

    total_tokens: Annotated[int, {"minimum": 1}]
    cost_usd: Annotated[float, {"exclusiveMinimum": 0}]
    tool_calls: Annotated[int, {"minimum": 0}]
    spawns: Annotated[int, {"minimum": 0}]


class InlineConfig(TypedDict, total=False):
    """Overrides for this spawn; with a profile they may only narrow it.

    Args:
        plugins: Plugins of yours that the subagent gets instead of all of them.
        system_instructions: Text for its system prompt.
        max_turns: Model calls it may make.
        model: Model to use.
        provider: Provider of that model.
        gc: Context collection: truncate, summarize or hybrid, or an object.
        output_schema: JSON Schema that its answer must fit.
        timeout_seconds: Longest run in seconds.
        budget: Upper bounds.
    """

    plugins: list[str]
    system_instructions: str
    max_turns: Annotated[int, {"minimum": 1}]
    model: str
    provider: str
    gc: dict[str, Any] | str
    output_schema: dict[str, Any]
    timeout_seconds: Annotated[float, {"exclusiveMinimum": 0}]
    budget: Budget
