"""Invocation: one run of an agent, or one turn of the main session, with its span and those of its tool calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.telemetry import attributes as names
from shared.telemetry.attributes import Attributes
from shared.trace import redact

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

MAX_DESCRIPTION = 400
NO_ERRORS = frozenset({"", "completed", "partial", "max_turns", "output_limit", "budget", "schema"})


@dataclass
class Invocation:
    """What is open for an agent; `context` is what its children name as their parent."""

    span: Span
    context: Context
    is_run: bool
    conversation: str
    tools: dict[str, Span] = field(default_factory=dict)  # by call
    status: str = ""
    error: str | None = None
    model_error: str | None = None  # the type of the newest model call's error
    reply: str | None = None  # the newest reply, where content is wanted

    def end(self, at: float, attributes: Attributes) -> None:
        """End the span, and before it those of calls that never came back."""
        for span in self.tools.values():
            fail(span, "cancelled", None)
            span.end(nanoseconds(at))
        self.tools.clear()
        self.span.set_attributes(attributes)
        if self.reply is not None:
            self.span.set_attribute(names.OUTPUT_MESSAGES, self.reply)
        if self.status:
            self.span.set_attribute(names.STATUS, self.status)
        if self.status not in NO_ERRORS:
            kind = self.model_error if self.status == "failed" else None
            fail(self.span, kind or self.status, self.error)
        self.span.end(nanoseconds(at))


def fail(span: Span, kind: str, message: str | None) -> None:
    """Mark a span as ended in an error."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute(names.ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR, redact(message)[:MAX_DESCRIPTION] if message else kind))


def nanoseconds(at: float) -> int:
    """A time as OpenTelemetry counts it."""
    return int(at * 1e9)
