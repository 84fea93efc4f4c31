"""A run's talk with its model: turns, other models when one fails for good, a check of the answer's shape."""

from __future__ import annotations

import time
from dataclasses import replace
from decimal import Decimal

from shared.definitions.usable_tools import tool_notes
from shared.errors import BudgetExceeded, CancelledException, ConfigError, JaatoError, ProviderError
from shared.ledger import Totals
from shared.providers import known_providers
from shared.session import JaatoSession
from shared.subagents.findings import read_findings
from shared.subagents.result import Hop, Status, SubagentResult
from shared.subagents.run import Run
from shared.subagents.shape import Shape
from shared.toolbox import described
from shared.turn import Outcome
from shared.types import Message, Role, TokenUsage

SILENT = "it ended without saying anything: continue_subagent can ask it for its findings"


def converse(run: Run, session: JaatoSession) -> SubagentResult | None:
    """Run the turns of one run to its result; None if it was abandoned and has its result already."""
    before = session.account.totals()
    run.books = lambda result: _booked(result, run, session, before)
    outcome = _turns(run, session, run.message)
    if outcome is None:
        return None
    result: SubagentResult | None = _judged(run, outcome)
    schema = run.agent.plan.profile.output_schema
    if schema is not None and result is not None:
        result = _shaped(run, session, result, Shape(schema))
    return run.books(_annotated(run, result)) if result is not None else None


def failure(run: Run, error: BaseException) -> SubagentResult:
    """The result of a run that could not come to its own end; the text so far is kept."""
    turn, plan, draft = run.turn, run.agent.plan, run.draft or SubagentResult(run.agent.agent_id, Status.FAILED)
    result = replace(
        draft,
        status=Status.FAILED,
        hops=tuple(run.hops),
        duration_seconds=time.time() - run.created_at,
        model=plan.model.value,  # as it would have been; its session, if there is one, knows better
        provider=plan.provider.value,
    )
    if turn is not None:
        result = replace(
            result,
            response=turn.text or draft.response,
            turns_used=draft.turns_used + turn.model_calls,
            tool_calls=draft.tool_calls + turn.tool_calls,
            denied_calls=draft.denied_calls + turn.denied_calls,
        )
    match error:
        case CancelledException():
            status = run.cause or Status.CANCELLED
            result = replace(result, status=status, error=str(error), finish_reason="cancelled")
        case BudgetExceeded():
            result = replace(result, status=Status.PARTIAL, reason="budget", error=str(error))
        case JaatoError():
            result = replace(result, error=str(error), finish_reason="error")
        case _:
            result = replace(result, error=described(error), finish_reason="error")
    return run.books(_annotated(run, result))


def _turns(run: Run, session: JaatoSession, message: Message | None) -> Outcome | None:
    """Turns until nothing is left to say or read; a model that fails for good is followed by the next one."""
    while True:
        former, turn = run.turn, session.start_turn(message, cancel=run.cancel)
        if former is not None:
            turn.take_over(former)
        run.attend(turn)
        message = None
        try:
            outcome = session.execute(turn)
        except ProviderError as error:
            if not _hop(run, session, error):
                raise
            continue
        if outcome is None or outcome.reason is not None or not _has_more(run, outcome):
            return outcome


def _has_more(run: Run, outcome: Outcome) -> bool:
    """Whether its parent said something while the model gave its last answer, and there is a call left to hear it."""
    return run.agent.has_mail and outcome.model_calls < run.agent.plan.profile.max_turns


def _hop(run: Run, session: JaatoSession, error: ProviderError) -> bool:
    """Note that a model failed, and go on with the next that was not tried; False if there is none."""
    plan = run.agent.plan
    if not plan.profile.fallback_models or run.cancel.is_cancelled:
        return False
    run.hops.append(Hop(session.model_name, session.provider_name, f"{type(error).__name__}: {error}"))
    own = f"{plan.provider.value}:{plan.model.value}"
    for name in (*plan.profile.fallback_models, own):  # its own model again, if an earlier run had to leave it
        model, provider = _placed(name, plan.provider.value, session)
        if any((hop.model, hop.provider) == (model, provider) for hop in run.hops):
            continue
        try:
            session.set_model(model, provider)
            return True
        except ConfigError as problem:
            run.hops.append(Hop(model, provider, str(problem)))
    return False


def _placed(name: str, usual: str, session: JaatoSession) -> tuple[str, str]:
    """`provider:model` as model and provider; a colon may be part of a model's name as well."""
    head, colon, rest = name.partition(":")
    if colon and (head in known_providers() or session.runtime.has_provider(head)):
        return rest, head
    return name, usual


def _judged(run: Run, outcome: Outcome) -> SubagentResult:
    """Which final status an outcome is: only a whole answer, not refused its tools, is completed."""
    status, reason = Status.COMPLETED, None
    if outcome.reason == "cancelled":
        status = run.cause or Status.CANCELLED
    elif outcome.reason is not None:
        status, reason = Status.PARTIAL, outcome.reason
    elif outcome.denied_calls and outcome.denied_calls + outcome.failed_calls == outcome.tool_calls:
        status = Status.DENIED
    error = {
        Status.DENIED: "every tool call it needed was denied",
        Status.COMPLETED: None,
        Status.PARTIAL: None,
    }.get(status, run.cancel.reason or None)
    return SubagentResult(
        run.agent.agent_id,
        status,
        outcome.text,
        reason=reason,
        turns_used=outcome.model_calls,
        tool_calls=outcome.tool_calls,
        denied_calls=outcome.denied_calls,
        finish_reason=outcome.finish_reason.value,
        error=error,
        hops=tuple(run.hops),
    )


def _shaped(run: Run, session: JaatoSession, result: SubagentResult, shape: Shape) -> SubagentResult | None:
    """The answer as JSON of the required shape: checked, repaired once, else partial.

    The repair is one model call without tools, on top of `max_turns`.
    """
    if result.status not in (Status.COMPLETED, Status.PARTIAL):
        return result
    value, problem = shape.read(result.response)
    if problem is None:
        return replace(result, structured=value, is_structured=True)
    if result.status is Status.PARTIAL:
        return result
    run.draft = replace(result, status=Status.PARTIAL, reason="schema", error=f"the answer does not fit: {problem}")
    try:
        repaired = _repaired(run, session, result, problem)
    except (ProviderError, BudgetExceeded) as error:
        return replace(run.draft, error=f"{run.draft.error}; it could not be repaired: {error}")
    if repaired is None or repaired.status is not Status.COMPLETED:
        return repaired
    value, problem = shape.read(repaired.response)
    if problem is None:
        return replace(repaired, structured=value, is_structured=True)
    return replace(repaired, status=Status.PARTIAL, reason="schema", error=f"the answer does not fit: {problem}")


def _repaired(run: Run, session: JaatoSession, result: SubagentResult, problem: str) -> SubagentResult | None:
    ask = f"Your answer does not fit the required JSON Schema: {problem}. Answer again with the corrected JSON only."
    turn = session.start_turn(Message.from_text(Role.USER, ask), cancel=run.cancel)
    run.attend(turn)
    turn.wind_up("max_turns")
    outcome = session.execute(turn)
    if outcome is None:
        return None
    repaired = _judged(run, outcome)
    return replace(
        repaired,
        response=repaired.response or result.response,
        turns_used=result.turns_used + outcome.model_calls,
        tool_calls=result.tool_calls + outcome.tool_calls,
        denied_calls=result.denied_calls + outcome.denied_calls,
    )


def _annotated(run: Run, result: SubagentResult) -> SubagentResult:
    """The result with the findings that its profile asks for, and what is to be said about all of it."""
    profile = run.agent.plan.profile
    notes = tool_notes(profile)
    if result.success and not result.response.strip():
        notes = (*notes, SILENT)
    if not profile.emit_findings:
        return replace(result, notes=notes) if notes else result
    found = read_findings(result.response, result.structured)
    return replace(result, findings=found.entries, notes=notes if found.note is None else (*notes, found.note))


def _booked(result: SubagentResult, run: Run, session: JaatoSession, before: tuple[Totals, Totals]) -> SubagentResult:
    """The result with what the run and all below it used, from the ledger."""
    own, subtree = session.account.totals()
    unpriced = own.unpriced_calls - before[0].unpriced_calls
    cost = own.cost_usd - before[0].cost_usd
    return replace(
        result,
        token_usage=_minus(own.usage, before[0].usage),
        subtree_usage=_minus(subtree.usage, before[1].usage),
        cost_usd=None if unpriced and cost == Decimal(0) else cost,
        duration_seconds=time.time() - run.created_at,
        model=session.model_name,
        provider=session.provider_name,
    )


def _minus(after: TokenUsage, before: TokenUsage) -> TokenUsage:
    return TokenUsage(
        after.prompt_tokens - before.prompt_tokens,
        after.output_tokens - before.output_tokens,
        after.total_tokens - before.total_tokens,
        after.cache_read_tokens - before.cache_read_tokens,
        after.cache_write_tokens - before.cache_write_tokens,
    )
