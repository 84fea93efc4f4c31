"""A spawn that starts nothing: what it would use, and what its first call would cost."""

from __future__ import annotations

from typing import Any

from shared.definitions.usable_tools import tool_notes
from shared.providers.base import ToolSet
from shared.subagents.engine import Engine, SpawnCall
from shared.subagents.prompt import system_instructions, task_message
from shared.subagents.rights import allowed_extras
from shared.subagents.seat import Caller
from shared.types import TokenUsage, estimate_tokens


def dry_run_report(engine: Engine, caller: Caller, call: SpawnCall) -> dict[str, Any]:
    """Decide as a spawn would, report, and let go of everything."""
    plan, view, allowed = engine.prepare(caller, call)
    try:
        extras = allowed_extras(plan, engine.child_tools, caller.session)
        tools = [tool for tool in (*view.tools(), *extras) if tool.name in allowed]
        system = "\n\n".join([*view.instructions(), system_instructions(plan)])
    finally:
        view.close()
    schemas = ToolSet([tool.schema for tool in tools])
    prefix = estimate_tokens(system) + schemas.tokens + task_message(call.task, call.context).tokens
    cost = engine.runtime.ledger.prices.cost(plan.model.value, TokenUsage.of(prefix, 0))
    return {
        "success": True,
        "dry_run": True,
        "profile": plan.label,
        "model": plan.model.value,
        "model_from": plan.model.level,
        "provider": plan.provider.value,
        "provider_from": plan.provider.level,
        "plugins": list(plan.plugins),
        "tools": [tool.name for tool in tools],
        **({"notes": list(notes)} if (notes := tool_notes(plan.profile)) else {}),
        "max_turns": plan.profile.max_turns,
        "estimated_prefix_tokens": prefix,
        "estimated_prefix_cost_usd": None if cost is None else float(cost),
        "message": "nothing was started",
    }
