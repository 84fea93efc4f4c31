"""A run's talk with its model: turns, other models when one fails for good, a check of the answer's shape."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from decimal import Decimal
from typing import Any

from shared.errors import BudgetExceeded, CancelledException, JaatoError, ProviderError
from shared.ledger import Totals
from shared.schema import Validator
from shared.session import JaatoSession
from shared.subagents.result import Hop, Status, SubagentResult
from shared.subagents.run import Run
from shared.turn import Outcome
from shared.types import Message, Role, TokenUsage

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


def converse(run: Run, session: JaatoSession) -> SubagentResult | None:
    """Run the turns of one run to its result; None if it was abandoned and has its result already."""
    before = session.account.own, session.account.subtree
    run.books = lambda result: _booked(result, run, session, before)
    outcome = _turns(run, session, run.message)
    if outcome is None:
        return None
    result: SubagentResult | None = _judged(run, outcome)
    schema = run.agent.plan.profile.output_schema
    if schema is not None and result is not None and result.status is Status.COMPLETED:
        result = _shaped(run, session, result, Validator(schema, what="output_schema"))
    return run.books(result) if result is not None else None


def failure(run: Run, error: Exception) -> SubagentResult:
    """The result of a run that could not come to its own end; the text so far is kept."""
    text = run.turn.text if run.turn is not None else ""
    used = run.turn.model_calls if run.turn is not None else 0
    result = SubagentResult(run.agent.agent_id, Status.FAILED, text, turns_used=used, hops=tuple(run.hops))
    match error:
        case CancelledException():
            status = run.cause or Status.CANCELLED
            result = replace(result, status=status, error=str(error), finish_reason="cancelled")
        case BudgetExceeded():
            result = replace(result, status=Status.PARTIAL, reason="budget", error=str(error))
        case JaatoError():
            result = replace(result, error=str(error), finish_reason="error")
        case _:
            result = replace(result, error=f"{type(error).__name__}: {error}", finish_reason="error")
    return run.books(result)


def _turns(run: Run, session: JaatoSession, message: Message | None) -> Outcome | None:
    """One turn; when the model fails for good, the next of `fallback_models` goes on from there."""
    fallbacks = list(run.agent.plan.profile.fallback_models)
    used = 0
    while True:
        turn = session.start_turn(message, cancel=run.cancel)
        turn.model_calls = used
        run.attend(turn)
        try:
            return session.execute(turn)
        except ProviderError as error:
            if not fallbacks or run.cancel.is_cancelled:
                raise
            run.hops.append(Hop(session.model_name, session.provider_name, f"{type(error).__name__}: {error}"))
            provider, _, model = fallbacks.pop(0).rpartition(":")
            session.set_model(model, provider or None)
            message, used = None, turn.model_calls


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
        finish_reason=outcome.finish_reason.value,
        error=error,
        hops=tuple(run.hops),
    )


def _shaped(run: Run, session: JaatoSession, result: SubagentResult, check: Validator) -> SubagentResult | None:
    """The answer as JSON of the required shape: checked, repaired once, else partial."""
    value, problem = _parsed(result.response, check)
    if problem is None:
        return replace(result, structured=value)
    ask = f"Your answer does not fit the required JSON Schema: {problem}. Answer again with the corrected JSON only."
    turn = session.start_turn(Message.from_text(Role.USER, ask), cancel=run.cancel)
    limit = run.agent.plan.profile.max_turns
    turn.model_calls = min(result.turns_used, limit - 1)
    run.attend(turn)
    outcome = session.execute(turn)
    if outcome is None:
        return None
    repaired = _judged(run, outcome)
    repaired = replace(
        repaired,
        turns_used=result.turns_used + outcome.model_calls - min(result.turns_used, limit - 1),
        tool_calls=result.tool_calls + outcome.tool_calls,
    )
    if repaired.status is not Status.COMPLETED:
        return repaired
    value, problem = _parsed(repaired.response, check)
    if problem is None:
        return replace(repaired, structured=value)
    return replace(repaired, status=Status.PARTIAL, reason="schema", error=f"the answer does not fit: {problem}")


def _parsed(text: str, check: Validator) -> tuple[Any, str | None]:
    fenced = _FENCED.search(text)
    try:
        value = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        return None, f"it is not JSON ({error})"
    problems = check.problems(value)
    return value, "; ".join(problems[:5]) if problems else None


def _booked(result: SubagentResult, run: Run, session: JaatoSession, before: tuple[Totals, Totals]) -> SubagentResult:
    """The result with what the run and all below it used, from the ledger."""
    own, subtree = session.account.own, session.account.subtree
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
    return TokenUsage(*(getattr(after, name) - getattr(before, name) for name in TokenUsage.__slots__))
