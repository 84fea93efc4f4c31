"""The tools that read results, wait without model calls, and list subagents and profiles."""

from __future__ import annotations

from typing import Annotated, Literal

from shared.plugins.subagent import answers
from shared.plugins.subagent.answering import Answer, answering
from shared.plugins.subagent.arguments import AgentId, AgentName, OldAgentId, Seconds, StatusFilter
from shared.plugins.subagent.delegation import Delegation
from shared.plugins.subagent.pages import Room, fitting, page, pages
from shared.subagents.engine import Engine
from shared.subagents.run import Run
from shared.subagents.seat import Caller
from shared.tools import ToolContext, tool

_PROBLEMS = 20  # in files of profiles, that one answer lists


class WatchTools(Delegation):
    """get_subagent_result, wait_for_subagents, list_active_subagents and list_subagent_profiles."""

    @tool
    @answering
    def get_subagent_result(
        self,
        context_: ToolContext,
        agent_id: AgentId = None,
        subagent_id: OldAgentId = None,
        name: AgentName = None,
        wait: Annotated[bool, "Wait for the end"] = False,
        timeout_seconds: Seconds = None,
        offset: Annotated[int, "Read a long response from this character on", {"minimum": 0}] = 0,
    ) -> Answer:
        """The result of a subagent's newest run; it can be read any number of times."""
        engine, caller, agent = self._found(context_, agent_id, subagent_id, name)
        run = agent.run
        if wait or timeout_seconds is not None:
            engine.wait(caller, [run], timeout=timeout_seconds)
        if run.result is None:
            return answers.running_answer(run, engine)
        run.take()
        return page(run.result, Room.of(caller.session, self.settings.result_tokens).one, offset)

    @tool
    @answering
    def wait_for_subagents(
        self,
        context_: ToolContext,
        ids: Annotated[
            list[str] | None, "Ids or names; default: all your running subagents, and those you have not heard of"
        ] = None,
        mode: Annotated[Literal["all", "any"], "Wait for all of them, or for the first"] = "all",
        timeout_seconds: Seconds = None,
    ) -> Answer:
        """Wait for subagents without using model calls, and get their results."""
        engine, caller = self._called(context_)
        if ids:
            runs = list(dict.fromkeys(caller.tree.find(caller.seat.id, each).run for each in ids))
        else:
            runs = [each.run for each in caller.tree.children(caller.seat.id) if _is_awaited(each.run)]
        in_time = engine.wait(caller, runs, mode=mode, timeout=timeout_seconds)
        return self._collected(engine, caller, runs, timed_out=not in_time)

    def _collected(self, engine: Engine, caller: Caller, runs: list[Run], *, timed_out: bool) -> Answer:
        caller.cancel.raise_if_cancelled()  # nobody would read the answer: then the inbox tells of the results
        ended = [run for run in runs if run.result is not None]
        room = Room.of(caller.session, self.settings.result_tokens)
        shown = pages([run.result for run in ended if run.result is not None], room)
        for run in ended[: len(shown)]:
            run.take()  # those that are not shown are announced later
        unshown = [run.agent.agent_id for run in ended[len(shown) :]]
        still = [run for run in runs if run not in ended]
        listed = fitting([answers.still_running(run, engine) for run in still], room.all // 4)
        return {
            "success": True,
            "complete": not still,
            "timed_out": timed_out,
            "count": len(ended),
            "results": shown,
            **({"not_shown": unshown} if unshown else {}),
            "still_running": [*listed, *_ids(still[len(listed) :])],
            "message": _summary(len(ended), len(still)),
        }

    @tool(auto_approved=True)
    @answering
    def list_active_subagents(self, context_: ToolContext, status: StatusFilter = None) -> Answer:
        """Your subagents that are queued, running, or waiting to be continued."""
        engine, caller = self._called(context_)
        active = [agent for agent in caller.tree.below(caller.seat.id) if not agent.status.is_final]
        active = [agent for agent in active if status is None or agent.status == status]
        found = [answers.listing(agent, engine) for agent in active]
        if context_.session is None:  # host code has no context that could overflow
            return {"success": True, "active_sessions": found, "count": len(found)}
        found.sort(key=lambda entry: not entry["can_cancel"])
        kept = fitting(found, Room.of(caller.session, self.settings.result_tokens).all)
        unshown = len(found) - len(kept)
        note = f"{unshown} more: close those that you need no more, or use the status filter"
        return {
            "success": True,
            "active_sessions": kept,
            "count": len(found),
            **({"not_shown": unshown, "message": note} if unshown else {}),
        }

    @tool(auto_approved=True)
    @answering
    def list_subagent_profiles(self) -> Answer:
        """The profiles you can give to spawn_subagent."""
        offered, problems = self.catalogue.list(internal=False), self.catalogue.problems()
        more = len(problems) - _PROBLEMS
        return {
            "success": True,
            "profiles": [each.summary() for each in offered],
            "inline_allowed": self.settings.allow_inline,
            "inline_allowed_plugins": list(self.settings.inline_allowed_plugins),
            "problems": [
                *map(str, problems[:_PROBLEMS]),
                *([f"and {more} more: `jaato profiles lint` shows them all"] if more > 0 else []),
            ],
        }


def _ids(runs: list[Run]) -> list[dict[str, str]]:
    return [{"agent_id": run.agent.agent_id} for run in runs]


def _is_awaited(run: Run) -> bool:
    """Whether a parent that waits for its children means this run: it works, or nobody told of its end."""
    return run.result is None or (run.background and not run.told)


def _summary(ended: int, running: int) -> str:
    if not ended and not running:
        return "no subagent of yours is running"
    return f"{ended} finished, {running} still running" if running else f"all {ended} finished"
