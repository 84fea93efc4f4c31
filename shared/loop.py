"""THE LOOP — start reading here.

From a user's message to the answer: ask the model, run the tools it calls, ask again. A stateless
function over an agent and a turn; the session owns the history, the turn guards it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from shared.bus import EventBus
from shared.errors import BudgetExceeded, ContextOverflow
from shared.events import ToolEnded, ToolProgress, ToolStarted
from shared.executors.threads import wait_all, workers
from shared.gc.base import GCResult, GCTriggerReason
from shared.gc.keeper import ContextKeeper
from shared.modelcall import ModelCaller
from shared.providers.base import ModelRequest, ModelSettings
from shared.toolbox import Toolbox, cancelled_result
from shared.tools import ToolContext
from shared.turn import Outcome, Turn
from shared.types import FinishReason, FunctionCall, Message, Part, ProviderResponse, Role, ToolResult

if TYPE_CHECKING:
    from shared.session import JaatoSession
    from shared.store.recorder import RunningCalls

HAND_OVER = (
    "This is your last turn and tools are switched off. Hand over now: what you found, what you did, "
    "and what is left to do."
)


@dataclass(frozen=True)
class Agent:
    """What a turn runs with; fixed while it runs."""

    agent_id: str
    system: str
    caller: ModelCaller
    toolbox: Toolbox
    keeper: ContextKeeper
    session: JaatoSession
    workspace: Path
    bus: EventBus
    on_collected: Callable[[GCResult], None]
    overhead: int = 0  # estimated tokens of system prompt and tools
    settings: ModelSettings = ModelSettings()
    max_turns: int | None = None  # model calls per turn
    stream: bool = True


def run(agent: Agent, turn: Turn) -> Outcome:
    """Run one turn to its end; raises what the provider raised or CancelledException."""
    while True:
        turn.cancel.raise_if_cancelled()
        if turn.take_mail() and agent.session.recorder is not None:
            agent.session.recorder.store.commit()  # what the model is told counts as told: it is stored first
        if agent.max_turns is not None and turn.model_calls + 1 >= agent.max_turns:
            turn.wind_up("max_turns")
        last = turn.cut is not None
        if last and turn.model_calls:
            turn.append(Message.from_text(Role.USER, HAND_OVER))
        reply = _ask(agent, turn, last=last)
        calls = reply.get_function_calls()
        if last or not calls:
            turn.append(_without_calls(reply))
            return turn.outcome(reply, reason=_reason(reply, turn, calls, last=last))
        turn.append(reply.message)
        results = _run_calls(agent, turn, calls)
        turn.count_results(results)
        turn.append(Message(Role.TOOL, tuple(Part(function_response=result) for result in results)))


def _ask(agent: Agent, turn: Turn, *, last: bool) -> ProviderResponse:
    """One reply of the model; a context that proves too long is collected once and tried again."""
    if collected := agent.keeper.before_call(turn.history, overhead=agent.overhead):
        agent.on_collected(collected)
    try:
        reply = _call(agent, turn, last=last)
    except ContextOverflow:
        collected = agent.keeper.collect(turn.history, GCTriggerReason.OVERFLOW)
        agent.on_collected(collected)
        if not collected.items_collected and collected.tokens_freed <= 0:
            raise
        reply = _call(agent, turn, last=last)
    turn.count(reply)
    return reply


def _call(agent: Agent, turn: Turn, *, last: bool) -> ProviderResponse:
    caller, history, keeper = agent.caller, turn.history, agent.keeper
    estimated = history.tokens + agent.overhead
    request = ModelRequest(
        model=caller.model,
        system=agent.system,
        tools=agent.toolbox.toolset,
        messages=history.messages,
        settings=agent.settings,
        tool_choice="none" if last else "auto",
        stream=agent.stream,
        prompt_tokens=keeper.tokens(history),
    )
    turn.stage = "model"
    reply = caller.call(request, cancel=turn.cancel, on_chunk=turn.on_chunk)
    keeper.observe(reply.usage.prompt_tokens, estimated)
    return reply


def _run_calls(agent: Agent, turn: Turn, calls: Sequence[FunctionCall]) -> list[ToolResult]:
    """All calls of one reply: in parallel when there are several, results in the order of the calls."""
    turn.flush_output()
    turn.stage = "tool"
    count, refusal = _affordable(agent, turn, len(calls))
    running = calls[:count]
    if agent.bus.wants(ToolStarted):
        for call in running:
            agent.bus.emit(ToolStarted(agent.agent_id, call.name, call.args, call.id))
    recorder = agent.session.recorder
    kept = recorder.starting(running) if recorder is not None and running else None
    tasks = [workers.submit(partial(_run_call, agent, turn, call, kept)) for call in running[:-1]]
    inline = [_run_call(agent, turn, call, kept) for call in running[-1:]]
    if tasks:
        wait_all(tasks, cancel=turn.fence)
    done = [
        task.result() if task.done else cancelled_result(call, turn.cancel.reason)
        for task, call in zip(tasks, running, strict=False)
    ]
    unpaid = [ToolResult(call.id, call.name, refusal, is_error=True, error_kind="budget") for call in calls[count:]]
    return [*done, *inline, *unpaid]


def _affordable(agent: Agent, turn: Turn, count: int) -> tuple[int, str]:
    """How many of so many calls the budget allows, and what the others are told; then the turn winds up."""
    budget = agent.caller.budget
    if budget is None or not budget.bounded:
        return count, ""
    for index in range(count):
        try:
            budget.charge(tool_calls=1)
        except BudgetExceeded as error:
            turn.wind_up("budget")
            return index, f"Error: not run: {error}"
    return count, ""


def _run_call(agent: Agent, turn: Turn, call: FunctionCall, kept: RunningCalls | None) -> ToolResult:
    """One call, timed and reported; whatever happens it has exactly one result."""
    bus, agent_id = agent.bus, agent.agent_id
    started = time.perf_counter()
    context = ToolContext(
        agent_id,
        turn.cancel,
        agent.session,
        call.id,
        agent.workspace,
        partial(_progress, agent, turn, call),
    )
    result = agent.toolbox.run(call, context) if kept is None else _run_kept(agent, call, context, kept)
    took = time.perf_counter() - started
    turn.note_call(call, took)
    if bus.wants(ToolEnded):
        error = result.text[:500] if result.is_error else None
        kind, value = result.error_kind, result.result
        bus.emit(ToolEnded(agent_id, call.name, not result.is_error, took, error, call.id, kind, value))
    return result


def _run_kept(agent: Agent, call: FunctionCall, context: ToolContext, kept: RunningCalls) -> ToolResult:
    """A call whose beginning is stored; so is its end."""
    with kept.running(call) as end:
        result = agent.toolbox.run(call, context)
        end(result)
    return result


def _progress(agent: Agent, turn: Turn, call: FunctionCall, chunk: str) -> None:
    turn.touch()
    agent.bus.emit(ToolProgress(agent.agent_id, call.id, chunk))


def _without_calls(reply: ProviderResponse) -> Message:
    """The last message of a turn: calls that will not be answered must not stay in the history."""
    if not reply.get_function_calls():
        return reply.message if reply.parts else Message.from_text(Role.MODEL, "")
    kept = tuple(part for part in reply.parts if part.text)
    return Message(Role.MODEL, kept)


def _reason(reply: ProviderResponse, turn: Turn, calls: Sequence[FunctionCall], *, last: bool) -> str | None:
    """Why the answer is not whole; a turn of one call that needed no tool was not cut off by its limit."""
    if last and (calls or turn.tool_calls or turn.cut != "max_turns"):
        return turn.cut
    return "output_limit" if reply.finish_reason is FinishReason.MAX_TOKENS else None
