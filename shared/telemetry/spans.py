"""SpanWriter: from the events of a runtime to spans; parents are named, never taken from the thread."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, set_span_in_context

from shared.events import (
    AgentCompleted,
    Event,
    ModelCallEnded,
    RunQueued,
    StatusChanged,
    ToolEnded,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from shared.telemetry import attributes as names
from shared.telemetry.attributes import IN_PROCESS, Attributes, known, provider_name, usage_attributes
from shared.telemetry.content import input_messages, output_messages, shown
from shared.telemetry.invocation import Invocation, fail, nanoseconds

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class SpanWriter:
    """A subscriber; called by one thread at a time, in the order of events."""

    def __init__(self, tracer: Tracer, *, content: bool) -> None:
        self._tracer = tracer
        self._content = content
        self._open: dict[str, Invocation] = {}  # by agent
        self._prefix = uuid.uuid4().hex[:12]  # the main session is called `main` in every process
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            RunQueued: self._run_queued,
            StatusChanged: self._status_changed,
            AgentCompleted: self._run_ended,
            TurnStarted: self._turn_started,
            TurnCompleted: self._turn_ended,
            ToolStarted: self._tool_started,
            ToolEnded: self._tool_ended,
            ModelCallEnded: self._model_called,
        }

    @property
    def interest(self) -> frozenset[type[Event]]:
        """The events to subscribe to."""
        return frozenset(self._handlers)

    def __call__(self, event: Event) -> None:
        """Take the next event."""
        self._handlers[type(event)](event)

    def close(self, at: float) -> None:
        """End whatever is open."""
        for agent_id in list(self._open):
            self._end(agent_id, at, "interrupted")

    # -- agents ----------------------------------------------------------------------------------

    def _run_queued(self, event: RunQueued) -> None:
        parent = self._open.get(event.parent_id)
        above = None if parent is None else parent.tools.get(event.call_id)
        context = set_span_in_context(above, Context()) if above else parent.context if parent else Context()
        more = known(
            {
                names.PROFILE: event.profile,
                names.PARENT_ID: event.parent_id,
                names.BACKGROUND: event.background,
            }
        )
        self._begin(event, context, root=event.root_id or event.parent_id, is_run=True, more=more)

    def _turn_started(self, event: TurnStarted) -> None:
        """A turn of the main session; those of a run belong to the run, whatever their number."""
        invocation = self._open.get(event.agent_id)
        if invocation is None or not invocation.is_run:
            self._begin(event, Context(), root=event.agent_id, is_run=False, more={})
            invocation = self._open[event.agent_id]
        if self._content and event.message is not None:
            invocation.span.set_attribute(names.INPUT_MESSAGES, input_messages(event.message))

    def _begin(
        self, event: RunQueued | TurnStarted, context: Context, *, root: str, is_run: bool, more: Attributes
    ) -> None:
        self._end(event.agent_id, event.at, "interrupted")  # its end was lost
        conversation = self._conversation(root)
        name = event.name or event.agent_id
        span = self._tracer.start_span(
            f"invoke_agent {name}",
            context=context,
            kind=SpanKind.INTERNAL,
            attributes={
                names.OPERATION: "invoke_agent",
                **known(
                    {
                        names.PROVIDER: provider_name(event.provider),
                        names.REQUEST_MODEL: event.model,
                        names.AGENT_NAME: name,
                        names.AGENT_ID: event.agent_id,
                        names.CONVERSATION: conversation,
                    }
                ),
                **more,
            },
            start_time=nanoseconds(event.at),
        )
        self._open[event.agent_id] = Invocation(span, set_span_in_context(span, Context()), is_run, conversation)

    def _status_changed(self, event: StatusChanged) -> None:
        invocation = self._open.get(event.agent_id)
        if invocation is None or not invocation.is_run:
            return
        invocation.status, invocation.error = event.status, event.error or invocation.error
        if event.status == "running":
            invocation.span.add_event("jaato.run.started", timestamp=nanoseconds(event.at))

    def _run_ended(self, event: AgentCompleted) -> None:
        more = {**usage_attributes(event.usage), names.TURNS: event.turns_used}
        self._end(event.agent_id, event.at, "completed" if event.success else None, more)

    def _turn_ended(self, event: TurnCompleted) -> None:
        invocation = self._open.get(event.agent_id)
        if invocation is not None and not invocation.is_run:
            self._end(event.agent_id, event.at, event.status, usage_attributes(event.usage))

    def _end(self, agent_id: str, at: float, status: str | None, attributes: Attributes | None = None) -> None:
        """End what is open for an agent; without a status, with the one that was told before."""
        invocation = self._open.pop(agent_id, None)
        if invocation is not None:
            invocation.status = status or invocation.status
            invocation.end(at, attributes or {})

    # -- tools and models ------------------------------------------------------------------------

    def _tool_started(self, event: ToolStarted) -> None:
        invocation = self._open.get(event.agent_id)
        if invocation is None:  # of a turn that was given up
            return
        attributes: Attributes = {
            names.OPERATION: "execute_tool",
            names.TOOL_NAME: event.tool_name,
            names.TOOL_CALL_ID: event.call_id,
            names.TOOL_TYPE: "function",
            names.AGENT_ID: event.agent_id,
            names.CONVERSATION: invocation.conversation,
        }
        if self._content:
            attributes[names.TOOL_ARGUMENTS] = shown(dict(event.args))
        invocation.tools[event.call_id] = self._tracer.start_span(
            f"execute_tool {event.tool_name}",
            context=invocation.context,
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            start_time=nanoseconds(event.at),
        )

    def _tool_ended(self, event: ToolEnded) -> None:
        invocation = self._open.get(event.agent_id)
        span = invocation.tools.pop(event.call_id, None) if invocation is not None else None
        if span is None:
            return
        if self._content and event.result is not None:
            span.set_attribute(names.TOOL_RESULT, shown(event.result))
        if not event.success:
            fail(span, event.error_kind or "tool_error", event.error)
        span.end(nanoseconds(event.at))

    def _model_called(self, event: ModelCallEnded) -> None:
        """A call, with all its attempts, is told when it is over; its beginning follows from how long it took."""
        invocation = self._open.get(event.agent_id)
        span = self._tracer.start_span(
            f"chat {event.model}",
            context=invocation.context if invocation is not None else Context(),
            kind=SpanKind.INTERNAL if event.provider in IN_PROCESS else SpanKind.CLIENT,
            attributes=self._chat(event, invocation),
            start_time=nanoseconds(event.at - event.duration_seconds),
        )
        kind = event.error.partition(":")[0] if event.error else None
        if kind is not None:
            fail(span, kind, event.error)
        reply = output_messages(event.parts, event.finish_reason) if self._content and event.parts else None
        if reply is not None:
            span.set_attribute(names.OUTPUT_MESSAGES, reply)
        if invocation is not None:
            invocation.model_error, invocation.reply = kind, reply or invocation.reply
        span.end(nanoseconds(event.at))

    def _chat(self, event: ModelCallEnded, invocation: Invocation | None) -> Attributes:
        conversation = invocation.conversation if invocation is not None else self._conversation(event.agent_id)
        return {
            names.OPERATION: "chat",
            **known(
                {
                    names.PROVIDER: provider_name(event.provider),
                    names.REQUEST_MODEL: event.model,
                    names.RESPONSE_MODEL: event.response_model,
                    names.FINISH_REASONS: [event.finish_reason] if event.finish_reason else None,
                    names.AGENT_ID: event.agent_id,
                    names.CONVERSATION: conversation,
                    names.PURPOSE: None if event.purpose == "turn" else event.purpose,
                    names.RETRIES: event.retries or None,
                }
            ),
            **usage_attributes(event.usage),
        }

    def _conversation(self, root: str) -> str:
        """One id for a main session and all agents below it."""
        return f"{self._prefix}-{root}"
