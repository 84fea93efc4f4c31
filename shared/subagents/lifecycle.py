"""Lifecycle: the way of a run from the queue to its one result, and what happens at each step."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from shared.cancel import CancelToken
from shared.errors import CancelledException
from shared.events import AgentCompleted, StatusChanged
from shared.executors.threads import workers
from shared.plugin_view import PluginView
from shared.runtime import JaatoRuntime
from shared.session import JaatoSession, SessionSpec
from shared.subagents.agent import Subagent
from shared.subagents.archive import Archive
from shared.subagents.conversation import converse, failure
from shared.subagents.prompt import system_instructions
from shared.subagents.restoring import fill_inbox
from shared.subagents.result import SubagentResult
from shared.subagents.rights import allowed_extras, allowed_skill_tools, allowed_tools, open_view
from shared.subagents.run import Run
from shared.subagents.seat import Seat
from shared.subagents.slots import Slots, Ticket
from shared.subagents.watchdog import Watchdog
from shared.tools import Tool

log = logging.getLogger(__name__)


class Lifecycle:
    """Queues runs, works on them in pooled threads, and ends each exactly once."""

    def __init__(
        self, runtime: JaatoRuntime, *, max_concurrent: int, digest_tokens: int, child_tools: tuple[Tool, ...]
    ) -> None:
        self.slots = Slots(max_concurrent)
        self._runtime = runtime
        self._digest_tokens = digest_tokens
        self._child_tools = child_tools
        self._watchdog = Watchdog(self._abandon, _waits_for_others)
        self.archive = Archive()
        self.on_ended: Callable[[Run], object] | None = None  # after everybody was told

    def reconfigure(self, *, max_concurrent: int, digest_tokens: int) -> None:
        """Other limits from now on; the runs under way count against them."""
        self._digest_tokens = digest_tokens
        self.slots.resize(max_concurrent)

    @property
    def watched(self) -> int:
        """How many runs have not ended, as the watchdog knows them."""
        return self._watchdog.watched

    @property
    def runs(self) -> list[Run]:
        """The runs that have not ended."""
        return self._watchdog.runs

    def enter(self, run: Run) -> None:
        """Queue a run; it starts when there is a slot."""
        ticket = run.ticket = Ticket(run.seat.id, partial(self._start, run))
        self._watchdog.watch(run)
        self._tell_status(run)
        self.slots.enter(ticket)
        run.listen(partial(self._cancelled, run))

    def _start(self, run: Run) -> None:
        ticket = run.ticket
        try:
            workers.submit(partial(self._work, run))
        except RuntimeError as error:  # no thread to be had; the others in line must not wait for this one
            if ticket is not None:
                self.slots.hand_back(ticket)
            self.finish(run, failure(run, error))

    # -- in the run's own thread -----------------------------------------------------------------

    def _work(self, run: Run) -> None:
        """From slot to result; whatever happens, the run ends in exactly one final status."""
        if not run.begin():
            return
        self._watchdog.begun(run)
        try:
            self.archive.began(run)
            run.cancel.raise_if_cancelled()
            self._tell_status(run)
            self._tell_hooks("subagent_start", run, task=run.message.text)
            session = run.agent.session
            session = self._open(run) if session is None else self._narrowed(run, session)
            run.cancel.raise_if_cancelled()
            result = converse(run, session)
        except BaseException as error:  # whatever a provider, plugin or bug raises: the run ends with it
            if not isinstance(error, CancelledException):
                log.debug("the run of %s failed", run.agent.agent_id, exc_info=True)
            result = failure(run, error)
        if result is not None:
            self.finish(run, result)

    def _open(self, run: Run) -> JaatoSession:
        """The agent's session, made in its first run or, from the store, when it goes on."""
        agent, tree, session = run.agent, run.seat.tree, self._session(run)
        try:
            self.archive.keep_session(run, session)
            session.mail.sources.append(agent.take_mail)
            session.on_stand_by = partial(self._without_slot, agent)
            seat = Seat.take(session, tree, agent, digest_tokens=self._digest_tokens)
            if agent.origin is not None and tree.conversation is not None:
                fill_inbox(seat, tree.conversation)
            if not tree.settle(run, session):
                raise CancelledException(run.cancel.reason or "closed")
            agent.asleep = False  # not before: a session that nobody wants takes its history with it
        except BaseException:
            session.close()
            raise
        agent.plan.skills.take_up(session)
        session.cancel_token.on_cancel(session.close)  # with its parent's: its own plugins are shut down
        return session

    def _session(self, run: Run) -> JaatoSession:
        agent, plan = run.agent, run.agent.plan
        view = run.hand_over_view() or open_view(self._runtime, plan)
        try:
            tools, extras = self._allowed(run, view)
        except BaseException:
            view.close()
            raise
        spec = SessionSpec(
            agent_id=agent.agent_id,
            agent_name=agent.name,
            agent_path=agent.path,
            profile=plan.label,
            system_instructions=system_instructions(plan),
            settings=plan.settings,
            gc=plan.gc,
            max_turns=plan.profile.max_turns,
            tool_names=tools,
            extra_tools=extras,
            project=plan.project,
            location=plan.location,
        )
        return self._runtime.create_session(
            plan.model.value,
            provider_name=plan.provider.value,
            spec=spec,
            history=agent.history,
            parent=run.seat.session,
            budget=run.budget,
            view=view,
        )

    def _narrowed(self, run: Run, session: JaatoSession) -> JaatoSession:
        """The session with the tools it may have now, and this run's budget; rights never grow."""
        tools, extras = self._allowed(run, session.view)
        session.spec = replace(session.spec, tool_names=tools, extra_tools=extras)
        session.budget = run.budget
        session.refresh_tools()
        return session

    def _allowed(self, run: Run, view: PluginView) -> tuple[frozenset[str], tuple[Tool, ...]]:
        """What the agent may call now, of what it could call before; some tools come besides its plugins'."""
        agent, caller = run.agent, run.seat.session
        fixed = view.shares_all and caller.view.shares_all and run.judged == (caller.spec, self._runtime.tools_version)
        if fixed:  # nothing has changed since the spawn decided
            extras = () if agent.plan.may_spawn else self._child_tools
        else:
            extras = allowed_extras(agent.plan, self._child_tools, caller)
            before = agent.tools
            agent.tools &= allowed_tools(agent.plan, view, caller) | {tool.name for tool in extras}
            if agent.tools != before:
                self.archive.narrowed(run)
        kept = [tool for tool in extras if tool.name in agent.tools]
        return agent.tools, (*kept, *allowed_skill_tools(agent.plan, caller))

    def _without_slot(self, agent: Subagent, cancel: CancelToken) -> AbstractContextManager[None]:
        ticket = agent.run.ticket
        return self.slots.without(ticket, cancel) if ticket is not None else nullcontext()

    # -- the end ---------------------------------------------------------------------------------

    def finish(self, run: Run, result: SubagentResult) -> None:
        """Store the result, free what the run held, then tell everybody; only the first end counts."""
        if not run.finish(result, self.archive.ended):
            return
        agent, tree, bus = run.agent, run.seat.tree, self._runtime.bus
        try:
            if run.ticket is not None:
                self.slots.leave(run.ticket)
            self._watchdog.forget(run)
            run.release()
            for each in tree.above(agent):
                each.run.touch()  # before it counts as ended: who waited for it alone must not look stalled
            for each_run in tree.ended(run):
                each_run.seat.inbox.put(each_run)  # first: who hears of the end may let the parent speak at once
            self._tell_status(run, error=result.error)
            bus.emit(AgentCompleted(agent.agent_id, result.success, result.token_usage, result.turns_used))
            cost = None if result.cost_usd is None else float(result.cost_usd)
            facts = {"token_usage": result.token_usage.as_dict(), "cost_usd": cost, "turns_used": result.turns_used}
            self._tell_hooks("subagent_stop", run, status=result.status.value, **facts)
        finally:
            run.done.open()
            if self.on_ended is not None:
                self.on_ended(run)

    def _tell_hooks(self, event: str, run: Run, **facts: Any) -> None:
        """Call foreign hooks, where there are any, in a thread of their own: nothing waits for them."""
        hooks, agent = self._runtime.hooks, run.agent
        if hooks.has(event):
            known = {"agent_id": agent.agent_id, "profile": agent.plan.label, "parent_id": agent.parent_id}
            workers.submit(partial(getattr(hooks, event), **known, **facts))

    def _cancelled(self, run: Run) -> None:
        """The run's token fired: a queued run ends here, a running one has a moment to end by itself."""
        ticket = run.ticket
        if ticket is not None and self.slots.withdraw(ticket):
            self.finish(run, failure(run, CancelledException(run.cancel.reason)))
        else:
            self._watchdog.cancelled(run)

    def _abandon(self, run: Run) -> None:
        """End a run that ignores its cancel; what its thread still does changes nothing."""
        session, turn = run.agent.session, run.turn
        if session is not None and turn is not None:
            session.abandon(turn)
        self.finish(run, failure(run, CancelledException(run.cancel.reason)))

    def _tell_status(self, run: Run, error: str | None = None) -> None:
        self._runtime.bus.emit(StatusChanged(run.agent.agent_id, run.status.value, error))


def _waits_for_others(run: Run) -> bool:
    """Whether a run stands still for a good reason: a question has its own time limit, a child its own watch."""
    phase, ticket = run.phase, run.ticket
    if phase == "awaiting_permission" or (ticket is not None and ticket.is_resuming):
        return True
    return phase == "awaiting_child" and run.seat.tree.has_live_below(run.agent.agent_id)
