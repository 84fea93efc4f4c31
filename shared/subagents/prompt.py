"""What a child reads: its task with the parent's context in front, and its system instructions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shared.errors import SubagentConfigError, unknown_name
from shared.subagents.findings import REQUEST
from shared.subagents.plan import Plan
from shared.types import Message, Role

PREAMBLE = (
    "You are a subagent: another agent gave you one task. Do it, then answer with the result itself, complete and "
    "without small talk: only your final answer reaches the one who asked."
)
CONTEXT_FIELDS = ("files", "findings", "notes")


def task_message(task: str, context: str | Mapping[str, Any] | None) -> Message:
    """The first message of a child: the task is pinned, so that no context collection drops it."""
    block = _context(context)
    text = f"<context>\n{block}\n</context>\n\n<task>\n{task}\n</task>" if block else task
    return Message.from_text(Role.USER, text, pinned=True)


def system_instructions(plan: Plan) -> str:
    """The preamble, the profile's own instructions, its skills, and how to answer where that is fixed."""
    schema = plan.profile.output_schema
    shape = (
        "Your final answer must be one JSON value, and nothing else, that fits this JSON Schema:\n"
        + json.dumps(schema, ensure_ascii=False)
        if schema is not None
        else ""
    )
    findings = REQUEST if plan.profile.emit_findings and schema is None else ""
    texts = (PREAMBLE, plan.profile.system_instructions or "", plan.skills.text, shape, findings)
    return "\n\n".join(text for text in texts if text)


def _context(context: str | Mapping[str, Any] | None) -> str:
    if context is None or isinstance(context, str):
        return (context or "").strip()
    for key in context:
        if key not in CONTEXT_FIELDS:
            raise SubagentConfigError(f"context: {unknown_name('field', str(key), CONTEXT_FIELDS)}")
    parts = [f"{key.capitalize()}:\n{_listed(context[key])}" for key in CONTEXT_FIELDS if context.get(key)]
    return "\n\n".join(parts)


def _listed(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (list, tuple)):
        return "\n".join(
            f"- {item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)}" for item in value
        )
    return json.dumps(value, ensure_ascii=False)
