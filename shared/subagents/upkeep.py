"""Upkeep: what an engine does for what it stores — takes it up, puts agents to rest, hears other processes."""

from __future__ import annotations

import logging
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from shared.cancel import CancelToken
from shared.errors import StoreError
from shared.executors.threads import workers
from shared.session import JaatoSession
from shared.store.conversations import Conversation, kept
from shared.store.requests import RequestDesk
from shared.store.sweep import prune
from shared.subagents.agent import Subagent
from shared.subagents.lifecycle import Lifecycle
from shared.subagents.restoring import as_before, keep_tree, restore_tree
from shared.subagents.run import Run
from shared.subagents.scripted import require_no_script
from shared.subagents.seat import Caller, Seat
from shared.subagents.serving import serve
from shared.subagents.sweeper import Sweeper
from shared.subagents.watchdog import GRACE_SECONDS

if TYPE_CHECKING:
    from shared.subagents.engine import Engine

log = logging.getLogger(__name__)


class Upkeep:
    """One per engine; without a store it has nothing to do."""

    def __init__(self, engine: Engine, life: Lifecycle) -> None:
        self._engine, self._life = engine, life
        self._sweeper = Sweeper(0.0)
        self._desk: RequestDesk | None = None
        self.reconfigure()
        life.on_ended = self._rest
        engine.runtime.on_resumed(self._resumed)
        engine.runtime.on_close(self._see_off)

    def reconfigure(self) -> None:
        """Go on with the engine's settings as they are now."""
        self._sweeper.ttl_seconds = self._engine.planner.config.session_ttl_minutes * 60

    def attend(self, conversation: Conversation | None) -> None:
        """Hear what other processes ask for, while anything runs."""
        if conversation is None:
            return
        if self._desk is None:
            engine = self._engine
            if days := engine.planner.config.keep_days:
                workers.submit(partial(_prune, conversation.store.path, days))
            self._desk = RequestDesk(conversation.store, partial(serve, engine), lambda: not engine.is_idle)
        self._desk.attend()

    def wake(self, caller: Caller, agent: Subagent, *, deepest: int) -> None:
        """Decide anew what an agent from the store may be; raises if it cannot be any more."""
        if agent.origin is None or agent.session is not None or agent.closed:
            return
        own = caller.session.provider_name
        require_no_script([agent.plan.provider.value], own=own, where=f"{agent.agent_id} comes from the store and")
        above = caller.tree.get(agent.parent_id)
        plan = self._engine.planner.plan(
            caller.session,
            profile=agent.origin.get("profile"),
            inline=agent.origin.get("inline"),
            depth=agent.depth,
            deepest=deepest,
            confined=above is not None and above.plan.bounded,
        )
        agent.plan = as_before(plan, agent)

    def _resumed(self, session: JaatoSession) -> None:
        """A main session was taken up from the store: so are its agents, and what they have to announce."""
        conversation = kept(session)
        if conversation is None or not conversation.resumed:
            return
        seat = Seat.of(session, digest_tokens=self._engine.planner.config.digest_tokens)
        if seat.tree.conversation is None:
            keep_tree(seat, conversation)
            restore_tree(seat, conversation)

    def _see_off(self) -> None:
        """Give runs that were cancelled with their parents a moment to end, so that their ends are stored."""
        until = time.monotonic() + 4 * GRACE_SECONDS
        for run in self._life.runs:
            run.done.wait(until - time.monotonic())

    def _rest(self, run: Run) -> None:
        """A run has ended: after a while its agent leaves memory; one that was not to be kept is closed."""
        agent, tree = run.agent, run.seat.tree
        if agent.cleanup and not tree.has_live_below(agent.agent_id) and agent.run is run:
            self._engine.close(Caller(run.seat, CancelToken()), agent)
        if run.stored and agent.stored:
            self._sweeper.watch(tree, agent)


def _prune(path: Path, days: float) -> None:
    """Let old records go, once for each process that writes; what cannot be pruned today can be tomorrow."""
    try:
        prune(path, older_than_seconds=days * 86_400)
    except StoreError as error:
        log.warning("old runs stay in the store: %s", error)
