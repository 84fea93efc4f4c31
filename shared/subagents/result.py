"""What a run ends with: one of the final statuses, and one result that can be read any number of times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from shared.types import TokenUsage


class Status(StrEnum):
    """Where a run, or the agent between runs, stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"

    @property
    def is_final(self) -> bool:
        """Whether a run stays there for good."""
        return self not in (Status.QUEUED, Status.RUNNING, Status.WAITING)


@dataclass(frozen=True)
class Hop:
    """A model that failed for good, of several that were tried."""

    model: str
    provider: str
    error: str


@dataclass(frozen=True)
class SubagentResult:
    """The result of one run. `success` is true for `completed` only; `response` keeps the text so far, always.

    `structured` is the answer as a JSON value, if one of a certain shape was asked for and given:
    `is_structured` tells a null that was answered from no value at all. `findings` is None unless the profile
    asks for them; then it is a list, empty if there is nothing to report. `notes` has what the one who asked
    should know besides, such as tools that are not to be had here.
    """

    agent_id: str
    status: Status
    response: str = ""
    reason: str | None = None
    structured: Any = None
    is_structured: bool = False
    findings: tuple[Mapping[str, Any], ...] | None = None
    turns_used: int = 0
    tool_calls: int = 0
    denied_calls: int = 0
    token_usage: TokenUsage = TokenUsage()
    cost_usd: Decimal | None = None
    subtree_usage: TokenUsage = TokenUsage()
    duration_seconds: float = 0.0
    model: str = ""
    provider: str = ""
    finish_reason: str | None = None
    error: str | None = None
    hops: tuple[Hop, ...] = field(default=())
    notes: tuple[str, ...] = ()
    subagent_name: str = ""  # under which host code delegated

    @property
    def success(self) -> bool:
        """Whether the work was done, whole."""
        return self.status is Status.COMPLETED

    @property
    def output(self) -> str:
        """The same as `response`."""
        return self.response

    @property
    def usage(self) -> TokenUsage:
        """The same as `token_usage`."""
        return self.token_usage

    @property
    def duration(self) -> float:
        """The same as `duration_seconds`."""
        return self.duration_seconds

    @property
    def agent_result(self) -> dict[str, Any]:
        """The same as `as_dict()`: everything that is known of the run."""
        return self.as_dict()

    def as_dict(self) -> dict[str, Any]:
        """The whole result as plain JSON values; what does not apply is left out."""
        found: dict[str, Any] = {
            "success": self.success,
            "agent_id": self.agent_id,
            "status": self.status.value,
            **({"reason": self.reason} if self.reason is not None else {}),
            "response": self.response,
            **({"structured": self.structured} if self.is_structured else {}),
            **({"findings": [dict(each) for each in self.findings]} if self.findings is not None else {}),
            "turns_used": self.turns_used,
            "tool_calls": self.tool_calls,
            "token_usage": self.token_usage.as_dict(),
            "subtree_usage": self.subtree_usage.as_dict(),
            "duration_seconds": round(self.duration_seconds, 3),
            "model": self.model,
            "provider": self.provider,
            "finish_reason": self.finish_reason,
        }
        optional = {
            "denied_calls": self.denied_calls or None,
            "cost_usd": None if self.cost_usd is None else float(self.cost_usd),
            "error": self.error,
            "hops": [vars(hop) for hop in self.hops] or None,
            "notes": list(self.notes) or None,
        }
        return found | {key: value for key, value in optional.items() if value is not None}
