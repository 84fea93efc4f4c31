"""TodoPlugin: tools with which an agent keeps a plan, and the seam for views that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from shared.plugin import CommandCompletion, CommandParameter, Executor, UserCommand
from shared.plugins._base import ConfiguredPlugin
from shared.plugins.todo.board import Board, Watcher
from shared.plugins.todo.plan import MAX_STEPS, Plan, Step, StepStatus
from shared.tools import ToolContext, tool

_SHORT = {"minLength": 1, "maxLength": 200}
_LONG = {"minLength": 1, "maxLength": 1_000}
Description = Annotated[str, _LONG]


class TodoPlugin(ConfiguredPlugin):
    """Keeps one plan per agent in memory; `on_change` tells views of every change."""

    name = "todo"
    instructions = (
        "For work of three or more steps, make a plan with `create_plan`, set each step to in_progress when you start "
        "it and to completed, failed or skipped when you leave it, and end with `complete_plan`."
    )

    def __init__(self, board: Board | None = None) -> None:
        super().__init__()
        self.board = board or Board()

    def shutdown(self) -> None:
        """Drop all plans."""
        self.board.clear()

    def on_change(self, callback: Watcher) -> Callable[[], None]:
        """Call back with a snapshot after every change of a plan; returns a function that ends it."""
        return self.board.watch(callback)

    @tool(auto_approved=True)
    def create_plan(
        self,
        context: ToolContext,
        title: Annotated[str, "What the plan is for, in a few words", _SHORT],
        steps: Annotated[list[Description], "The steps, in order", {"minItems": 1, "maxItems": MAX_STEPS}],
    ) -> dict[str, Any]:
        """Make your plan; it replaces an earlier one."""
        plan = Plan(context.agent_id, title, tuple(Step(step) for step in steps))
        old = self.board.put(plan)
        if old is not None and old.status == "active":
            return {**plan.as_dict(), "replaced": old.title}
        return plan.as_dict()

    @tool(auto_approved=True)
    def update_step(
        self,
        context: ToolContext,
        step: Annotated[int, "Number of the step, from 1", {"minimum": 1}],
        status: Annotated[StepStatus, "How the step stands now"],
        note: Annotated[str | None, "What was found or why it failed, in a sentence", {"maxLength": 1_000}] = None,
    ) -> dict[str, Any]:
        """Say how a step of your plan stands."""
        return self.board.change(context.agent_id, lambda plan: plan.with_step(step, status, note)).as_dict()

    @tool(auto_approved=True)
    def add_step(
        self,
        context: ToolContext,
        description: Annotated[str, "What the step is", _LONG],
        after: Annotated[int | None, "Put it after this step, 0: first; default: last", {"minimum": 0}] = None,
    ) -> dict[str, Any]:
        """Add a step to your plan; later steps are renumbered."""
        return self.board.change(context.agent_id, lambda plan: plan.with_new_step(description, after)).as_dict()

    @tool(auto_approved=True)
    def complete_plan(
        self,
        context: ToolContext,
        summary: Annotated[str, "What came out of it, in a sentence", {"maxLength": 2_000}] = "",
        status: Annotated[
            Literal["completed", "failed", "cancelled"], "How the plan ended; open steps are skipped unless completed"
        ] = "completed",
    ) -> dict[str, Any]:
        """End your plan; to be completed, no step may be open."""
        return self.board.change(context.agent_id, lambda plan: plan.ended(status, summary)).as_dict()

    @tool(auto_approved=True)
    def get_plan(self, context: ToolContext) -> dict[str, Any]:
        """Show your plan."""
        plan = self.board.get(context.agent_id)
        return plan.as_dict() if plan else {"title": None, "steps": []}

    def get_executors(self) -> dict[str, Executor]:
        """The tools, and the `plan` command."""
        return {**super().get_executors(), "plan": self._show}

    def get_user_commands(self) -> list[UserCommand]:
        """`plan` shows the plans to a person."""
        agent = CommandParameter("agent", "Show only the plan of this agent")
        return [UserCommand("plan", "Show the current plans", share_with_model=False, parameters=(agent,))]

    def get_command_completions(self, command: str, args: list[str]) -> list[CommandCompletion]:
        """Agents that have a plan."""
        if command != "plan" or len(args) > 1:
            return []
        begun = args[0] if args else ""
        return [
            CommandCompletion(plan.agent_id, plan.title) for plan in self.board.all() if plan.agent_id.startswith(begun)
        ]

    def _show(self, args: Mapping[str, Any] | None = None, /, *, agent: str = "") -> str:
        wanted = str((args or {}).get("agent") or agent)
        plans = [plan for plan in self.board.all() if wanted in ("", plan.agent_id)]
        if not plans:
            return f"Agent '{wanted}' has no plan." if wanted else "There is no plan."
        return "\n\n".join(plan.as_text() for plan in plans)
