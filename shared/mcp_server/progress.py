"""Reporter: progress notifications of a call that waits: turns, current tool and tokens of its agents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from shared.events import AgentCreated, Event, ModelCallEnded, PermissionAsked, StatusChanged, ToolEnded, ToolStarted
from shared.mcp_server.conversation import Conversation
from shared.mcp_server.watched import Watched
from shared.subagents.agent import Subagent

Report = Callable[[float, float | None, str | None], Awaitable[None]]
_INTEREST = frozenset({AgentCreated, StatusChanged, ModelCallEnded, ToolStarted, ToolEnded, PermissionAsked})
_PAUSE = 0.1  # seconds between two notifications; what happens meanwhile is in the next one
_SILENCE = 10.0  # a host that hears nothing for long gives the call up
_SHOWN = 4  # agents that one message describes


class Reporter:
    """Listens to the agents of one call; events arrive on another thread, reports leave on the loop."""

    def __init__(self, conversation: Conversation, watched: Watched, report: Report) -> None:
        self._watched = watched
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._steps = 0  # things that happened
        self._told = 0  # the progress that was reported last; each report must be ahead of the one before
        self._tools: dict[str, dict[str, str]] = {}  # by agent: running calls and their tools
        self._bus = conversation.runtime.bus

    async def run(self) -> None:
        """Report until cancelled."""
        unsubscribe = self._bus.subscribe(self._hear, interest=_INTEREST, awaited=False)
        try:
            while True:
                if self._watched.agents():
                    self._told = max(self._steps, self._told + 1)
                    await self._report(float(self._told), None, self._message())
                await asyncio.sleep(_PAUSE)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), _SILENCE)
                self._news.clear()
        finally:
            unsubscribe()

    def _hear(self, event: Event) -> None:
        if not self._watched.covers(event.agent_id):
            return
        if isinstance(event, ToolStarted):
            self._tools.setdefault(event.agent_id, {})[event.call_id] = event.tool_name
        elif isinstance(event, ToolEnded):
            self._tools.get(event.agent_id, {}).pop(event.call_id, None)
        self._steps += 1
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._news.set)

    def _message(self) -> str:
        agents = self._watched.agents()
        live = [agent for agent in agents if agent.is_live]
        texts = [self._line(agent) for agent in (live or agents)[:_SHOWN]]
        if len(live) > _SHOWN:
            texts.append(f"and {len(live) - _SHOWN} more")
        if len(agents) > 1:
            texts.insert(0, f"{len(agents) - len(live)} of {len(agents)} finished")
        return "; ".join(texts)

    def _line(self, agent: Subagent) -> str:
        run, session = agent.run, agent.session
        turn = run.turn
        spent = session.account.own.usage.total_tokens if session is not None else 0
        tools = list(self._tools.get(agent.agent_id, {}).values())
        doing = ", ".join(dict.fromkeys(tools)) if tools else run.phase
        turns = f"turn {turn.model_calls} of {agent.plan.profile.max_turns}, " if turn is not None else ""
        return f"{agent.name}: {turns}{doing}, {spent:,} tokens"
