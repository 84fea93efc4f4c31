"""The tools that start, continue, steer, cancel and close subagents."""

from __future__ import annotations

from typing import Annotated, Literal

from shared.errors import SubagentConfigError
from shared.plugins.subagent import answers
from shared.plugins.subagent.answering import Answer, answering
from shared.plugins.subagent.arguments import AgentId, AgentName, Context, InlineConfig, OldAgentId, Task
from shared.plugins.subagent.delegation import Delegation
from shared.plugins.subagent.dry_run import dry_run_report
from shared.plugins.subagent.pages import Room, page
from shared.subagents.engine import Engine, SpawnCall
from shared.subagents.run import Run
from shared.subagents.seat import Caller
from shared.tools import ToolContext, tool


class SpawnTools(Delegation):
    """spawn_subagent, continue_subagent, send_to_subagent, close_subagent and cancel_subagent."""

    @tool
    @answering
    def spawn_subagent(
        self,
        context_: ToolContext,
        task: Task,
        profile: Annotated[str | None, "Name of a profile from list_subagent_profiles"] = None,
        name: Annotated[str | None, "A name of your own for this subagent", {"maxLength": 80}] = None,
        context: Annotated[Context | str | None, "What it should know besides the task"] = None,
        background: Annotated[bool, "Return at once; the result is announced to you later"] = False,
        inline_config: Annotated[InlineConfig | None, "Overrides; with a profile they may only narrow it"] = None,
        dry_run: Annotated[bool, "Start nothing; report model, tools and estimated cost"] = False,
    ) -> Answer:
        """Give a task to a subagent: a child session with its own history, model and tools.

        Without a profile it has your tools. It runs to its end and returns its result, or in the background.
        """
        if not task.strip():
            raise SubagentConfigError("task: expected what the subagent should do, got an empty text")
        engine, caller = self._called(context_)
        call = SpawnCall(task, profile, name, context, background, inline_config)
        if dry_run:
            return dry_run_report(engine, caller, call)
        run, fresh = engine.spawn(caller, call)
        if background:
            return answers.started_answer(run, engine, fresh=fresh)
        return {**self._awaited(engine, caller, run), **({} if fresh else {"duplicate": True})}

    @tool
    @answering
    def continue_subagent(
        self,
        context_: ToolContext,
        message: Annotated[str, "What to tell it"],
        agent_id: AgentId = None,
        subagent_id: OldAgentId = None,
        name: AgentName = None,
        background: Annotated[bool, "Return at once; the result is announced to you later"] = False,
    ) -> Answer:
        """Send a follow-up message to a subagent that waits; it remembers the conversation."""
        engine, caller, agent = self._found(context_, agent_id, subagent_id, name)
        run = engine.resume(caller, agent, message, background=background)
        if background:
            return answers.started_answer(run, engine, fresh=True)
        return self._awaited(engine, caller, run)

    @tool
    @answering
    def send_to_subagent(
        self,
        context_: ToolContext,
        message: Annotated[str, "What to tell it"],
        agent_id: AgentId = None,
        subagent_id: OldAgentId = None,
        name: AgentName = None,
    ) -> Answer:
        """Steer a subagent that is running: it reads the message before its next model call."""
        _, _, agent = self._found(context_, agent_id, subagent_id, name)
        if not message.strip():
            raise SubagentConfigError("message: expected what to tell the subagent, got an empty text")
        sent = agent.tell(message) if agent.is_live else None
        if sent is None or (not agent.is_live and agent.take_back(sent)):
            raise SubagentConfigError(f"{agent.agent_id} is {agent.status.value}: use continue_subagent")
        return {
            "success": True,
            "agent_id": agent.agent_id,
            "status": agent.run.status.value,
            "message": "it reads this before its next model call",
        }

    @tool
    @answering
    def close_subagent(
        self,
        context_: ToolContext,
        agent_id: AgentId = None,
        subagent_id: OldAgentId = None,
        name: AgentName = None,
    ) -> Answer:
        """Let a subagent go: it is cancelled if it runs, and forgets its conversation. Its result stays readable."""
        engine, caller, agent = self._found(context_, agent_id, subagent_id, name)
        engine.close(caller, agent)
        return {
            "success": True,
            "agent_id": agent.agent_id,
            "status": agent.run.status.value,
            "message": f"{agent.agent_id} is closed",
        }

    @tool
    @answering
    def cancel_subagent(
        self,
        context_: ToolContext,
        agent_id: AgentId = None,
        subagent_id: OldAgentId = None,
        name: AgentName = None,
        mode: Annotated[
            Literal["hard", "soft"], "hard: stop now; soft: finish the current tool and hand over"
        ] = "hard",
        reason: Annotated[str | None, "Why, for the record"] = None,
    ) -> Answer:
        """Stop a subagent and everything below it."""
        engine, caller, agent = self._found(context_, agent_id, subagent_id, name)
        soft = mode == "soft"
        live, over = engine.cancel(caller, agent, soft=soft, reason=reason or "cancelled by its parent")
        if not soft:
            for run in live:
                run.take()  # the receipt tells of it: no announcement follows
        told = answers.receipt(live, over, soft=soft)
        return {"success": True, "agent_id": agent.agent_id, "status": agent.run.status.value, **told}

    def _awaited(self, engine: Engine, caller: Caller, run: Run) -> Answer:
        engine.wait(caller, [run])
        assert run.result is not None
        run.take()
        return page(run.result, Room.of(caller.session, self.settings.result_tokens).one)
