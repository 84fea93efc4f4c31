"""Engine: spawns, continues, cancels and ends runs. One per runtime; who calls is always passed in."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from shared.budget import Budget
from shared.cancel import CancelToken
from shared.errors import CancelledException, SubagentConfigError, SubagentNestingError
from shared.events import AgentCompleted, AgentCreated, StatusChanged
from shared.executors.threads import workers
from shared.latch import wait_any
from shared.plugin_view import PluginView
from shared.runtime import JaatoRuntime
from shared.session import JaatoSession, SessionSpec
from shared.subagents.agent import Subagent, Tree
from shared.subagents.conversation import converse, failure
from shared.subagents.inbox import Inbox
from shared.subagents.plan import OWN_PLUGIN, Plan, Planner, allowed_tools, require_allowed_agent
from shared.subagents.prompt import system_instructions, task_message
from shared.subagents.result import Status, SubagentResult
from shared.subagents.run import Run
from shared.subagents.slots import Slots, Ticket
from shared.subagents.watchdog import GRACE_SECONDS, Watchdog
from shared.tools import Tool, ToolContext
from shared.types import Message, Role

log = logging.getLogger(__name__)

SEAT = "subagents"
PATH_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "


@dataclass(frozen=True)
class Seat:
    """The place of a session among agents: its tree, the agent it is (None: main), and its inbox."""

    session: JaatoSession
    tree: Tree
    agent: Subagent | None
    inbox: Inbox

    @property
    def id(self) -> str:
        """The id under which its children know it."""
        return self.session.agent_id

    @property
    def depth(self) -> int:
        """0 for the main session."""
        return self.agent.depth if self.agent is not None else 0


@dataclass(frozen=True)
class Caller:
    """Who asks, and the token that ends the asking."""

    seat: Seat
    cancel: CancelToken

    @property
    def session(self) -> JaatoSession:
        """The session that asks."""
        return self.seat.session

    @property
    def tree(self) -> Tree:
        """The agents around it."""
        return self.seat.tree

    @property
    def agent(self) -> Subagent | None:
        """The agent that asks; None for the main session."""
        return self.seat.agent


@dataclass(frozen=True)
class SpawnCall:
    """What a model, or a host, asks for."""

    task: str
    profile: str | None = None
    name: str | None = None
    context: str | Mapping[str, Any] | None = None
    background: bool = False
    inline: Mapping[str, Any] | None = None


class Engine:
    """Everything that happens to runs, from the moment they are asked for to their one result."""

    def __init__(self, runtime: JaatoRuntime, planner: Planner, *, child_tools: tuple[Tool, ...] = ()) -> None:
        self.runtime = runtime
        self.planner = planner
        self.slots = Slots(planner.config.max_concurrent)
        self._child_tools = child_tools
        self._watchdog = Watchdog(self._abandon, self._waits_for_others)

    # -- who calls -------------------------------------------------------------------------------

    def caller(self, context: ToolContext) -> Caller:
        """The session a tool call comes from; outside any session, the main one."""
        session = context.session or self.runtime.main_session
        if session is None:
            raise SubagentConfigError("no session: call client.connect() and client.configure_tools() first")
        return Caller(self._seat(session), context.cancel)

    def _seat(self, session: JaatoSession) -> Seat:
        seat = session.extras.get(SEAT)
        if seat is None:
            seat = self._take_seat(session, Tree(session.agent_id), None)
        assert isinstance(seat, Seat)
        return seat

    def _take_seat(self, session: JaatoSession, tree: Tree, agent: Subagent | None) -> Seat:
        made = Seat(session, tree, agent, Inbox(tokens=self.planner.config.digest_tokens))
        seat: Seat = session.extras.setdefault(SEAT, made)
        if seat is made:
            session.mail_sources.append(seat.inbox.take)
        return seat

    # -- spawn and continue ----------------------------------------------------------------------

    def spawn(self, caller: Caller, call: SpawnCall) -> tuple[Run, bool]:
        """Start a run, queued or at once; False if an equal one is live already and is given back."""
        if not call.task.strip():
            raise SubagentConfigError("task: expected what the subagent should do, got an empty text")
        plan, view = self.prepare(caller, call)
        try:
            agent, fresh = caller.tree.add(
                partial(self._make, caller, call, plan),
                parent_id=caller.seat.id,
                key=(call.profile or "", call.task, str(call.context), call.name or ""),
                max_children=self._max_children(caller),
                max_total=self.planner.config.max_total_spawns,
            )
        except BaseException:
            view.close()
            raise
        if not fresh:
            view.close()
            return agent.run, False
        run = agent.run
        run.view = view
        self._announce(agent)
        self._enter(caller, run)
        return run, True

    def prepare(self, caller: Caller, call: SpawnCall) -> tuple[Plan, PluginView]:
        """Decide everything and check every limit that needs no registration; starts nothing."""
        config = self.planner.config
        depth, most = caller.seat.depth + 1, self._max_depth(caller)
        if depth > most:
            raise SubagentNestingError(
                f"an agent at depth {caller.seat.depth} cannot spawn: max_depth is {most}; raise it to nest deeper"
            )
        profile = caller.agent.plan.profile if caller.agent is not None else None
        require_allowed_agent(profile, call.profile)
        plan = self.planner.plan(
            caller.session, profile=call.profile, inline=call.inline, may_spawn=depth < config.max_depth
        )
        names = [*plan.plugins, OWN_PLUGIN] if plan.may_spawn else list(plan.plugins)
        view = self.runtime.plugin_view(names, plan.plugin_configs)
        try:
            allowed_tools(plan, view, caller.session)
        except BaseException:
            view.close()
            raise
        return plan, view

    def resume(self, caller: Caller, agent: Subagent, message: str, *, background: bool) -> Run:
        """Another run of an agent that waits, with its history and no more rights than it would get now."""
        if not message.strip():
            raise SubagentConfigError("message: expected what to tell the subagent, got an empty text")
        run = caller.tree.resume(
            agent, lambda: self._run(caller, agent, Message.from_text(Role.USER, message), background=background)
        )
        self._enter(caller, run)
        return run

    def _make(self, caller: Caller, call: SpawnCall, plan: Plan, agent_id: str) -> Subagent:
        if caller.session.budget is not None:
            caller.session.budget.charge(spawns=1)
        name = call.name or call.profile or agent_id
        agent = Subagent(
            agent_id,
            name,
            plan,
            caller.seat.id,
            caller.seat.depth + 1,
            f"{caller.session.agent_path}{PATH_SEPARATOR}{name}",
            (call.profile or "", call.task, str(call.context), call.name or ""),
        )
        agent.runs.append(self._run(caller, agent, task_message(call.task, call.context), background=call.background))
        return agent

    def _run(self, caller: Caller, agent: Subagent, message: Message, *, background: bool) -> Run:
        above = caller.agent.run if caller.agent is not None else None
        if not background:
            token = caller.cancel.child()
        else:
            token = (above.cancel if above is not None else caller.session.cancel_token).child()
        parent_budget = above.budget if above is not None else caller.session.budget
        budget = Budget(agent.plan.budget, parent=parent_budget, name=agent.name)
        deadline = above.deadline if above is not None else None
        return Run(agent, message, token, budget, background, caller.seat, deadline)

    def _enter(self, caller: Caller, run: Run) -> None:
        ticket = run.ticket = Ticket(caller.seat.id, partial(self._start, run))
        self._watchdog.watch(run)
        self._status(run)
        self.slots.enter(ticket)
        run.forget_cancel = run.cancel.on_cancel(partial(self._cancelled, run))

    def _start(self, run: Run) -> None:
        workers.submit(partial(self._work, run))

    # -- the run's own thread --------------------------------------------------------------------

    def _work(self, run: Run) -> None:
        """From slot to result; whatever happens, the run ends in exactly one final status."""
        if not run.begin():
            return
        result: SubagentResult | None
        try:
            run.cancel.raise_if_cancelled()
            self._status(run)
            session = run.agent.session or self._open(run)
            self._narrow(run, session)
            result = converse(run, session)
        except Exception as error:
            if not isinstance(error, CancelledException):
                log.debug("run of %s failed", run.agent.agent_id, exc_info=True)
            result = failure(run, error)
        if result is not None:
            self._finish(run, result)

    def _open(self, run: Run) -> JaatoSession:
        agent, plan = run.agent, run.agent.plan
        caller = run.seat.session
        assert run.view is not None
        spec = SessionSpec(
            agent_id=agent.agent_id,
            agent_name=agent.name,
            agent_path=agent.path,
            profile=plan.label,
            system_instructions=system_instructions(plan),
            settings=plan.settings,
            gc=plan.gc,
            max_turns=plan.profile.max_turns,
            tool_names=frozenset(),
            extra_tools=() if plan.may_spawn else self._child_tools,
        )
        view, run.view = run.view, None
        session = self.runtime.create_session(
            plan.model.value, provider_name=plan.provider.value, spec=spec, parent=caller, view=view
        )
        session.mail_sources.append(agent.take_mail)
        session.on_stand_by = partial(self._without_slot, agent)
        self._take_seat(session, run.seat.tree, agent)
        agent.session = session
        return session

    def _without_slot(self, agent: Subagent, cancel: CancelToken) -> AbstractContextManager[None]:
        ticket = agent.run.ticket
        return self.slots.without(ticket, cancel) if ticket is not None else nullcontext()

    def _narrow(self, run: Run, session: JaatoSession) -> None:
        """Give the session the tools it may have now, and this run's budget."""
        agent = run.agent
        allowed = allowed_tools(agent.plan, session.view, run.seat.session)
        if agent.tools is not None:
            allowed &= agent.tools  # rights can narrow, never grow
        agent.tools = allowed
        session.spec = replace(session.spec, tool_names=allowed)
        session.refresh_tools()
        session.set_budget(run.budget)

    # -- the end of a run ------------------------------------------------------------------------

    def _finish(self, run: Run, result: SubagentResult) -> None:
        """Store the result, free what the run held, then tell everybody; only the first end counts."""
        if not run.finish(result):
            return
        agent = run.agent
        agent.last_activity = time.time()
        agent.turns += result.turns_used
        if run.ticket is not None:
            self.slots.leave(run.ticket)
        self._watchdog.forget(run)
        run.release()
        tree = run.seat.tree
        tree.ended(agent)
        self._status(run, error=result.error)
        self.runtime.bus.emit(AgentCompleted(agent.agent_id, result.success, result.token_usage, result.turns_used))
        self._deliver(tree, agent)
        run.done.open()

    def _deliver(self, tree: Tree, agent: Subagent) -> None:
        """Put finished background runs into their parents' inboxes, once nothing below them works any more."""
        for each in (agent, *tree.above(agent)):
            run = each.run
            ended = run.background and run.result is not None and not run.posted
            if ended and not tree.has_live_below(each.agent_id) and run.post():
                run.seat.inbox.put(run)

    def _cancelled(self, run: Run) -> None:
        """The run's token fired: a queued run ends here, a running one has a moment to end by itself."""
        if run.ticket is not None and self.slots.withdraw(run.ticket):
            self._finish(run, failure(run, CancelledException(run.cancel.reason)))
        else:
            self._watchdog.cancelled(run)

    def _abandon(self, run: Run) -> None:
        """End a run that ignores its cancel; what its thread still does changes nothing."""
        session, turn = run.agent.session, run.turn
        outcome = session.abandon(turn) if session is not None and turn is not None else None
        text = outcome.text if outcome is not None else ""
        self._finish(run, replace(failure(run, CancelledException(run.cancel.reason)), response=text))

    # -- cancel and close ------------------------------------------------------------------------

    def cancel(self, caller: Caller, agent: Subagent, *, soft: bool, reason: str) -> tuple[list[Run], list[Run]]:
        """Cancel an agent's run and all below it; returns the runs that were live, and those that had ended."""
        agents = [agent, *caller.tree.below(agent.agent_id)]
        live = [each.run for each in agents if each.is_live]
        over = [each.run for each in agents if not each.is_live]
        for run in live:
            if soft and run.status is Status.RUNNING:
                run.wind_up()
            else:
                run.stop(Status.CANCELLED, reason)
        if not soft:
            for run in live:
                run.done.wait(4 * GRACE_SECONDS)
        return live, over

    def close(self, caller: Caller, agent: Subagent) -> list[Run]:
        """Cancel what runs and let go of the conversations of an agent and all below it; results stay readable."""
        live, _ = self.cancel(caller, agent, soft=False, reason="closed by its parent")
        for each in [agent, *caller.tree.below(agent.agent_id)]:
            each.closed = True
            session, each.session = each.session, None
            if session is not None:
                session.close()
        return live

    # -- waiting ---------------------------------------------------------------------------------

    def wait(self, caller: Caller, runs: list[Run], *, mode: str = "all", timeout: float | None = None) -> bool:
        """Wait for runs without a slot and without model calls; False if time was up. Raises when cancelled."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with caller.session.stand_by("awaiting_child"):
            while True:
                open_runs = [run for run in runs if not run.done.is_open]
                if not open_runs or (mode == "any" and len(open_runs) < len(runs)):
                    return True
                if caller.cancel.is_cancelled:
                    self._settle_foreground(open_runs)
                    caller.cancel.raise_if_cancelled()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                wait_any([run.done for run in open_runs], left, cancel=caller.cancel)

    @staticmethod
    def _settle_foreground(runs: list[Run]) -> None:
        """A cancelled parent leaves when its foreground children have ended; they are cancelled with it."""
        for run in runs:
            if not run.background:
                run.done.wait(4 * GRACE_SECONDS)

    def _waits_for_others(self, run: Run) -> bool:
        if run.phase == "awaiting_permission":
            return True  # the question has a time limit of its own
        return run.phase == "awaiting_child" and run.seat.tree.has_live_below(run.agent.agent_id)

    # -- inside ----------------------------------------------------------------------------------

    def _max_depth(self, caller: Caller) -> int:
        own = caller.agent.plan.profile.max_depth if caller.agent is not None else None
        return min(self.planner.config.max_depth, own) if own is not None else self.planner.config.max_depth

    def _max_children(self, caller: Caller) -> int:
        own = caller.agent.plan.profile.max_children if caller.agent is not None else None
        return own if own is not None else self.planner.config.max_children

    def _announce(self, agent: Subagent) -> None:
        profile = agent.plan.profile
        self.runtime.bus.emit(
            AgentCreated(agent.agent_id, agent.name, "subagent", agent.plan.label, agent.parent_id, profile.icon)
        )

    def _status(self, run: Run, error: str | None = None) -> None:
        self.runtime.bus.emit(StatusChanged(run.agent.agent_id, run.status.value, error))
