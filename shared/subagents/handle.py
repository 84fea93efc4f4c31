"""DelegationHandle: one task that was handed to a subagent, for host code in threads and in event loops."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any

from shared.errors import CancelledException, SubagentTimeoutError
from shared.subagents.awaiting import in_event_loop, off_loop, opened
from shared.subagents.engine import Engine
from shared.subagents.result import Status, SubagentResult
from shared.subagents.run import Run
from shared.subagents.seat import Caller
from shared.types import TokenUsage


class DelegationHandle:
    """Ask, wait or cancel, from any thread and any event loop, as often as you like."""

    def __init__(self, engine: Engine, caller: Caller, run: Run, *, subagent_name: str, task: str) -> None:
        self.subagent_name, self.task = subagent_name, task
        self._engine, self._caller, self._run = engine, caller, run

    @property
    def agent_id(self) -> str:
        """The id of the subagent."""
        return self._run.agent.agent_id

    @property
    def status(self) -> Status:
        """Where the work stands."""
        return self._run.status

    @property
    def is_complete(self) -> bool:
        """Whether there is a result."""
        return self._run.done.is_open

    @property
    def usage(self) -> TokenUsage:
        """Tokens that the subagent, and all below it, have used until now."""
        agent, result = self._run.agent, self._run.result
        if result is not None:
            return result.subtree_usage
        session = agent.session if not agent.turns else None  # of one that has worked before, counted at the end
        return session.account.subtree.usage if session is not None else TokenUsage()

    def result(self, timeout: float | None = None) -> Any:
        """The result, when there is one: `await handle.result()` in an event loop, `handle.result()` elsewhere.

        Inside a running event loop it returns an awaitable, so that the loop goes on; in plain code it blocks
        and returns the SubagentResult. `await handle` and `handle.wait()` say which of the two is meant.
        """
        return self.awaited(timeout) if in_event_loop() else self.wait(timeout)

    def __await__(self) -> Generator[Any, None, SubagentResult]:
        return self.awaited().__await__()

    def wait(self, timeout: float | None = None) -> SubagentResult:
        """Block until there is a result; raises SubagentTimeoutError if time is up, and the work goes on."""
        try:
            in_time = self._engine.wait(self._caller, [self._run], timeout=timeout)
        except CancelledException:
            if not self.is_complete:
                raise
            in_time = True
        if not in_time:
            raise self._late(timeout)
        return self._told()

    def cancel(self, reason: str = "cancelled by the host") -> bool:
        """Stop the subagent and all below it, without waiting for that; False if it had come to its end before."""
        run = self._run
        below = [each.run for each in self._caller.tree.below(self.agent_id)]
        live = [each for each in (run, *below) if each.blame(Status.CANCELLED)]
        for each in live:
            each.cancel.cancel(reason)
        return run in live

    def on_complete(self, listener: Callable[[], object]) -> None:
        """Call back when there is a result, at once if there is; in the thread that ends it, so be quick."""
        self._run.done.listen(listener)

    async def awaited(self, timeout: float | None = None) -> SubagentResult:
        """The result in an event loop; raises SubagentTimeoutError if time is up, and the work goes on."""
        if self._caller.agent is not None:  # a subagent that waits must not keep its place among those that work
            return await off_loop(partial(self.wait, timeout))
        if not await opened(self._run.done, timeout):
            raise self._late(timeout)
        return self._told()

    def _told(self) -> SubagentResult:
        run, result = self._run, self._run.result
        assert result is not None
        run.take()
        error = result.error or (None if result.success else _shortfall(result))
        return replace(result, subagent_name=self.subagent_name, error=error)

    def _late(self, timeout: float | None) -> SubagentTimeoutError:
        return SubagentTimeoutError(
            f"'{self.subagent_name}' ({self.agent_id}) has not finished after {timeout or 0:g} s; it goes on: "
            f"ask again, or cancel it"
        )

    def __repr__(self) -> str:
        return f"<DelegationHandle {self.subagent_name} {self.agent_id}: {self.status.value}>"


def _shortfall(result: SubagentResult) -> str:
    """Why a run that raised no error did not succeed."""
    if result.reason == "max_turns":
        return "Max turns exceeded"
    return f"{result.status.value}: {result.reason}" if result.reason else result.status.value
