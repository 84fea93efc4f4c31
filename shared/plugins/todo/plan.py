"""Plan: the steps an agent set itself, as an immutable value with one method per change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from shared.errors import ToolError

StepStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]
PlanStatus = Literal["active", "completed", "failed", "cancelled"]
MAX_STEPS = 100
_OPEN = ("pending", "in_progress")
_SIGNS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "failed": "[!]", "skipped": "[-]"}


@dataclass(frozen=True)
class Step:
    """One step of a plan."""

    description: str
    status: StepStatus = "pending"
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """A snapshot of an agent's plan; a later one has a higher `version`."""

    agent_id: str
    title: str
    steps: tuple[Step, ...]
    status: PlanStatus = "active"
    summary: str = ""
    version: int = 1

    def __post_init__(self) -> None:
        if len(self.steps) > MAX_STEPS:
            raise ToolError(f"a plan has at most {MAX_STEPS} steps: join some of them")

    @property
    def done(self) -> int:
        """How many steps need no more work."""
        return sum(step.status not in _OPEN for step in self.steps)

    def with_step(self, number: int, status: StepStatus, note: str | None) -> Plan:
        """The plan after a step, counted from 1, changed its status."""
        self._require_active()
        if not 1 <= number <= len(self.steps):
            raise ToolError(f"there is no step {number}: the plan has steps 1 to {len(self.steps)}")
        step = self.steps[number - 1]
        changed = replace(step, status=status, note=step.note if note is None else note)
        return self._next(steps=(*self.steps[: number - 1], changed, *self.steps[number:]))

    def with_new_step(self, description: str, after: int | None) -> Plan:
        """The plan with one more step, at the end or after a given one (0: at the beginning)."""
        self._require_active()
        at = len(self.steps) if after is None else after
        if not 0 <= at <= len(self.steps):
            raise ToolError(f"there is no step {at}: the plan has steps 1 to {len(self.steps)}; 0 is the beginning")
        return self._next(steps=(*self.steps[:at], Step(description), *self.steps[at:]))

    def ended(self, status: PlanStatus, summary: str) -> Plan:
        """The plan at its end; it is completed only if no step is open."""
        self._require_active()
        left = [f"{n} ({step.description})" for n, step in enumerate(self.steps, 1) if step.status in _OPEN]
        if status == "completed" and left:
            raise ToolError(
                f"steps are still open: {'; '.join(left)}. Set each to completed, failed or skipped first, "
                "or end the plan as failed or cancelled"
            )
        steps = tuple(replace(step, status="skipped") if step.status in _OPEN else step for step in self.steps)
        return self._next(steps=steps, status=status, summary=summary)

    def as_dict(self) -> dict[str, Any]:
        """The plan for the model."""
        steps = [
            {"step": n, "description": step.description, "status": step.status}
            | ({"note": step.note} if step.note else {})
            for n, step in enumerate(self.steps, 1)
        ]
        answer: dict[str, Any] = {"title": self.title, "status": self.status, "steps": steps}
        return {**answer, "summary": self.summary} if self.summary else answer

    def as_text(self) -> str:
        """The plan for a person."""
        head = f"{self.title} ({self.agent_id}): {self.status}, {self.done} of {len(self.steps)} steps done"
        lines = [
            f"  {_SIGNS[step.status]} {n}. {step.description}" + (f" ({step.note})" if step.note else "")
            for n, step in enumerate(self.steps, 1)
        ]
        return "\n".join([head, *lines, *([f"  {self.summary}"] if self.summary else [])])

    def _require_active(self) -> None:
        if self.status != "active":
            raise ToolError(f"the plan '{self.title}' is {self.status}: make a new one with create_plan")

    def _next(self, **changes: Any) -> Plan:
        return replace(self, version=self.version + 1, **changes)
