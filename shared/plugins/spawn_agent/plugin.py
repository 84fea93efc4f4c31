"""SpawnAgentPlugin: delegation as netclaw has it, one tool with an agent, a task and a context."""

from __future__ import annotations

from typing import Annotated

from shared.definitions.advert import advert
from shared.errors import SubagentNotFoundError, unknown_name
from shared.plugins._dialect import DialectPlugin
from shared.plugins.subagent.answering import Answer, answering
from shared.plugins.subagent.arguments import Task
from shared.plugins.subagent.pages import Room, page
from shared.subagents.engine import SpawnCall
from shared.tools import ToolContext, tool


class SpawnAgentPlugin(DialectPlugin):
    """The agents on offer stand in the system prompt, so that a model needs no call to find them."""

    name = "spawn_agent"
    spawn_tool = ("spawn_agent", "agent", frozenset())

    @tool
    @answering
    def spawn_agent(
        self,
        context_: ToolContext,
        agent: Annotated[str, "Name of one of the available agents"],
        task: Task,
        context: Annotated[str | None, "What it should know besides the task"] = None,
    ) -> Answer:
        """Give a task to a named agent and get its result."""
        delegates = self.delegates
        offered = [profile.name for profile in delegates.catalogue.list(internal=False)]
        if agent not in offered:
            raise SubagentNotFoundError(unknown_name("agent", agent, offered))
        engine = delegates.engine
        caller = engine.caller(context_)
        run, _ = engine.spawn(caller, SpawnCall(task, agent, context=context))
        engine.wait(caller, [run])
        assert run.result is not None
        run.take()
        return page(run.result, Room.of(caller.session, delegates.settings.result_tokens).all)

    def get_system_instructions(self) -> str | None:
        """What agents there are, what they can do, and how to call one."""
        if self._runtime is None:
            return None
        return advert(self.delegates.catalogue.list(internal=False), tool="spawn_agent") or None
