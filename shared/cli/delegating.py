"""Tasks given straight to subagents: each result as it comes, whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.cancel import CancelToken
from shared.cli.limits import RunLimits
from shared.client import JaatoClient
from shared.latch import wait_any
from shared.plugins.subagent import SubagentPlugin
from shared.subagents.engine import SpawnCall
from shared.subagents.result import SubagentResult
from shared.subagents.run import Run
from shared.tools import ToolContext

TICK = 0.2  # seconds between two looks, so that Ctrl+C is heard


def delegate(
    client: JaatoClient, tasks: Sequence[str], *, profile: str | None, limits: RunLimits
) -> Iterator[tuple[int, SubagentResult]]:
    """Start all tasks and give back each result when it is there, with the place of its task.

    Whoever stops asking, by Ctrl+C or otherwise, stops all of them.
    """
    registry = client.get_runtime().registry
    plugin = registry.get_plugin("subagent") if registry is not None else None
    assert isinstance(plugin, SubagentPlugin)
    engine = plugin.engine
    caller = engine.caller(ToolContext("main", CancelToken()))
    inline = limits.inline() or None
    waiting: dict[Run, int] = {}
    try:
        for place, task in enumerate(tasks):
            name = f"{profile or 'task'}-{place + 1}" if len(tasks) > 1 else None
            call = SpawnCall(task, profile=profile, name=name, background=True, inline=inline)
            run, _ = engine.spawn(caller, call)
            run.take()  # its result is told here: no announcement follows
            waiting[run] = place
        while waiting:
            wait_any([run.done for run in waiting], TICK)
            ended = [run for run in waiting if run.done.is_open]
            client.get_runtime().bus.flush()  # what they did is shown before what they say
            for run in ended:
                place = waiting.pop(run)
                assert run.result is not None
                yield place, run.result
    finally:
        for run in waiting:
            engine.cancel(caller, run.agent, soft=False, reason="the command was stopped")
