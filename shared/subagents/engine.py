"""Engine: what can be asked for — spawn, continue, cancel, close, wait. Who calls is always passed in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from shared.budget import Budget, Limits
from shared.errors import SubagentConfigError, SubagentNestingError
from shared.events import AgentCreated, RunQueued
from shared.latch import wait_any
from shared.plugin_view import PluginView
from shared.runtime import JaatoRuntime
from shared.subagents.agent import PATH_SEPARATOR, Subagent
from shared.subagents.archive import Archive
from shared.subagents.lifecycle import Lifecycle
from shared.subagents.plan import Plan
from shared.subagents.planner import Planner
from shared.subagents.pool import resume_pooled
from shared.subagents.prompt import task_message
from shared.subagents.restoring import spent_before
from shared.subagents.result import Status
from shared.subagents.rights import (
    deepest,
    open_view,
    require_allowed_agent,
    require_plain_name,
)
from shared.subagents.run import Run
from shared.subagents.seat import Caller, Seat
from shared.subagents.slots import Slots
from shared.subagents.spawn_call import SpawnCall as SpawnCall
from shared.subagents.upkeep import Upkeep
from shared.subagents.verdicts import Verdicts
from shared.subagents.watchdog import GRACE_SECONDS
from shared.tools import Tool, ToolContext
from shared.types import Message, Role

_UNBOUNDED = Limits()


class Engine:
    """One per runtime. Every refusal comes before anything is started."""

    def __init__(self, runtime: JaatoRuntime, planner: Planner, *, child_tools: tuple[Tool, ...] = ()) -> None:
        self.runtime = runtime
        self.planner = planner
        self.child_tools = child_tools
        self._verdicts = Verdicts(child_tools)
        self._life = Lifecycle(
            runtime,
            max_concurrent=planner.config.max_concurrent,
            digest_tokens=planner.config.digest_tokens,
            child_tools=child_tools,
        )
        self._upkeep = Upkeep(self, self._life)

    def reconfigure(self, planner: Planner) -> None:
        """Go on with other settings; runs that are under way keep what they were given."""
        self.planner = planner
        self._life.reconfigure(max_concurrent=planner.config.max_concurrent, digest_tokens=planner.config.digest_tokens)
        self._upkeep.reconfigure()

    @property
    def slots(self) -> Slots:
        """How many runs work at once, and who waits."""
        return self._life.slots

    @property
    def is_idle(self) -> bool:
        """Whether no run is queued, running or watched over."""
        return not self.slots.used and not self.slots.waiting and not self._life.watched

    def caller(self, context: ToolContext) -> Caller:
        """The session a tool call comes from; outside any session, the main one."""
        session = context.session or self.runtime.main_session
        if session is None:
            raise SubagentConfigError("no session: call client.connect() and client.configure_tools() first")
        seat = Seat.of(session, digest_tokens=self.planner.config.digest_tokens)
        return Caller(seat, context.cancel, context.call_id)

    # -- spawn and continue ----------------------------------------------------------------------

    def spawn(self, caller: Caller, call: SpawnCall) -> tuple[Run, bool]:
        """Start a run, queued or at once; False if an equal one is live already and is given back."""
        if not call.task.strip():
            raise SubagentConfigError("task: expected what the subagent should do, got an empty text")
        caller.cancel.raise_if_cancelled()  # a tool that was fenced off starts nothing any more
        message = task_message(call.task, call.context)
        judged = caller.session.spec, self.runtime.tools_version
        plan, view, tools = self.prepare(caller, call)
        try:
            self._archive.prepare(caller)
            if plan.profile.reuse and (again := self._reused(caller, call, plan, tools, message)) is not None:
                view.close()
                self._enter(caller, again)
                return again, True
            agent, fresh = caller.tree.add(
                partial(self._make, caller, call, plan, tools, message),
                parent_id=caller.seat.id,
                key=call.key,
                max_children=self._limit(caller, "max_children"),
                max_total=self.planner.config.max_total_spawns,
            )
        except BaseException:
            view.close()
            raise
        run = agent.run
        if not fresh:
            view.close()
            return run, False
        run.view, run.judged = view, judged
        icon = plan.profile.icon
        self.runtime.bus.emit(AgentCreated(agent.agent_id, agent.name, "subagent", plan.label, agent.parent_id, icon))
        self._enter(caller, run)
        return run, True

    def prepare(self, caller: Caller, call: SpawnCall) -> tuple[Plan, PluginView, frozenset[str]]:
        """Decide everything and check every limit that needs no registration; starts nothing.

        Returns what the child will be, its plugins, and the tools it may ever call.
        """
        require_plain_name(call.name or call.profile)
        depth, most = caller.seat.depth + 1, self._deepest(caller)
        if depth > most:
            raise SubagentNestingError(
                f"an agent at depth {caller.seat.depth} cannot spawn: max_depth is {most}; raise it to nest deeper"
            )
        require_allowed_agent(caller.agent.plan.profile if caller.agent is not None else None, call.profile)
        confined = caller.agent is not None and caller.agent.plan.bounded
        plan = self.planner.plan(
            caller.session, profile=call.profile, inline=call.inline, depth=depth, deepest=most, confined=confined
        )
        view = open_view(self.runtime, plan)
        try:
            return plan, view, self._verdicts.decide(plan, view, caller.session)
        except BaseException:
            view.close()
            raise

    def resume(self, caller: Caller, agent: Subagent, message: str, *, background: bool) -> Run:
        """Another run of an agent that waits, with its history and no more rights than it would get now."""
        if not message.strip():
            raise SubagentConfigError("message: expected what to tell the subagent, got an empty text")
        caller.cancel.raise_if_cancelled()
        former = agent.run
        if former.status.is_final:
            former.done.wait(GRACE_SECONDS)  # its end is being told: what the next run tells comes after that
        said = Message.from_text(Role.USER, message)
        self._archive.prepare(caller)
        self._upkeep.wake(caller, agent, deepest=self._deepest(caller))
        run = caller.tree.resume(agent, lambda: self._run(caller, agent, said, background=background))
        self._enter(caller, run)
        return run

    def _enter(self, caller: Caller, run: Run) -> None:
        self._archive.entered(run)
        self._announce(caller, run)
        self._life.enter(run)
        self._upkeep.attend(caller.tree.conversation)

    def _reused(
        self, caller: Caller, call: SpawnCall, plan: Plan, tools: frozenset[str], message: Message
    ) -> Run | None:
        """Another run of an idle agent of the pool, if there is one that fits."""
        if call.history or call.cleanup == "delete":
            return None
        begin = partial(self._run, caller, message=message, background=call.background)
        limit = self._limit(caller, "max_children")
        return resume_pooled(caller, plan, tools, begin, name=call.name, task=call.key, max_children=limit)

    def _make(
        self, caller: Caller, call: SpawnCall, plan: Plan, tools: frozenset[str], message: Message, agent_id: str
    ) -> Subagent:
        """The agent and its first run, stored before any work; called under the tree's lock."""
        if caller.session.budget is not None:
            caller.session.budget.charge(spawns=1)
        name = call.name or call.profile or agent_id
        path = f"{caller.session.agent_path}{PATH_SEPARATOR}{name}"
        agent = Subagent(agent_id, name, plan, caller.seat.id, caller.seat.depth + 1, path, call.key)
        agent.tools, agent.history = tools, call.history
        agent.cleanup = (call.cleanup or self.planner.config.cleanup) == "delete"
        agent.run = self._run(caller, agent, message, background=call.background)
        self._archive.spawned(caller.tree, agent, profile=call.profile, inline=call.inline)
        return agent

    def _announce(self, caller: Caller, run: Run) -> None:
        bus, agent, plan = self.runtime.bus, run.agent, run.agent.plan
        if bus.wants(RunQueued):
            who = agent.agent_id, agent.name, plan.label, caller.seat.id, caller.tree.root, caller.call_id
            bus.emit(RunQueued(*who, run.background, plan.provider.value, plan.model.value))

    def _run(self, caller: Caller, agent: Subagent, message: Message, *, background: bool) -> Run:
        """A foreground run ends with the turn that asked for it, a background run with its parent."""
        above = caller.agent.run if caller.agent is not None else None
        parent_token = above.cancel if above is not None else caller.session.cancel_token
        token = (parent_token if background else caller.cancel).child()
        budget = above.budget if above is not None else caller.session.budget
        if agent.plan.budget != _UNBOUNDED:
            spent = spent_before(agent, caller.tree.conversation)
            budget = Budget(agent.plan.budget, parent=budget, name=agent.name, spent=spent)
        deadline = above.deadline if above is not None else None
        run = Run(agent, message, token, budget, background, caller.seat, deadline)
        self._archive.queued(caller.tree, run)
        return run

    def _deepest(self, caller: Caller) -> int:
        """How deep the caller's children may be: no profile above them can be outdone by one below it."""
        above = [] if caller.agent is None else [caller.agent, *caller.tree.above(caller.agent)]
        return deepest(self.planner.config.max_depth, (agent.plan.profile for agent in above))

    def _limit(self, caller: Caller, name: str) -> int:
        """A limit of the calling profile, within that of the settings."""
        general: int = getattr(self.planner.config, name)
        own = getattr(caller.agent.plan.profile, name) if caller.agent is not None else None
        return general if own is None else min(general, own)

    # -- cancel and close ------------------------------------------------------------------------

    def cancel(self, caller: Caller, agent: Subagent, *, soft: bool, reason: str) -> tuple[list[Run], list[Run]]:
        """Cancel an agent's run and all below it; returns the runs it stops, and those that had come to their end."""
        runs = [each.run for each in (agent, *caller.tree.below(agent.agent_id))]
        live = [run for run in runs if run.blame(Status.CANCELLED)]  # all at once: a parent's cancel ends its children
        for run in live:
            if soft and run.status is Status.RUNNING:
                run.wind_up()
            else:
                run.cancel.cancel(reason)
        if not soft:
            _see_off(live)
        _see_off([run for run in runs if run.result is None and run not in live])  # their ends are being stored
        stopped = {run: not run.status.is_final or run.cause is run.status for run in live}
        return [run for run in live if stopped[run]], [run for run in runs if not stopped.get(run)]

    def close(self, caller: Caller, agent: Subagent) -> None:
        """Cancel what runs and let go of the conversations of an agent and all below it; results stay readable."""
        closing = caller.tree.close(agent)
        self.cancel(caller, agent, soft=False, reason="closed by its parent")
        self._archive.closed(caller.tree, [each for each, _ in closing])
        for each, session in closing:
            each.run.shed(caller.seat)
            if session is not None:
                session.close()

    # -- the store -------------------------------------------------------------------------------

    @property
    def _archive(self) -> Archive:
        return self._life.archive

    def stored_agent(self, key: int) -> Subagent | None:
        """The agent in memory that has this key in the store."""
        return self._archive.agents.get(key)

    # -- waiting ---------------------------------------------------------------------------------

    def wait(self, caller: Caller, runs: list[Run], *, mode: str = "all", timeout: float | None = None) -> bool:
        """Wait for runs without a slot and without model calls; False if time was up. Raises when cancelled."""
        if _enough(runs, mode):
            return True
        deadline = None if timeout is None else time.monotonic() + timeout
        with caller.session.stand_by("awaiting_child", caller.cancel):
            for group in [runs] if mode == "any" else [[run] for run in runs]:
                left = None if deadline is None else deadline - time.monotonic()
                if not wait_any([run.done for run in group], left, cancel=caller.cancel):
                    break
            if not _enough(runs, mode) and caller.cancel.is_cancelled:
                _see_off([run for run in runs if not run.background])
                caller.cancel.raise_if_cancelled()
        return _enough(runs, mode)


def _enough(runs: Sequence[Run], mode: str) -> bool:
    ended = [run.done.is_open for run in runs]
    return all(ended) or (mode == "any" and any(ended))


def _see_off(runs: Sequence[Run]) -> None:
    """Let cancelled runs end: each does by itself, or is abandoned in a moment."""
    until = time.monotonic() + 4 * GRACE_SECONDS
    for run in runs:
        run.done.wait(until - time.monotonic())
