"""Attaching: a runtime's events become spans of a tracer provider, given, global or made from the environment."""

from __future__ import annotations

import atexit
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from shared import config
from shared.extras import missing

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from shared.bus import EventBus
    from shared.runtime import JaatoRuntime
    from shared.telemetry.spans import SpanWriter

SCOPE = "jaato"


def attach_otel(
    runtime: JaatoRuntime, tracer_provider: TracerProvider | None = None, *, content: bool | None = None
) -> Callable[[], None]:
    """Report what the agents of a runtime do as spans; returns a function that ends it and all open spans.

    Without a tracer provider the process's own is used; if nobody set one, one that exports over
    OTLP as the OTEL_… variables say. What is said is left out unless `content` is true, or left to
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
    """
    try:
        from shared.telemetry.spans import SpanWriter

        provider = tracer_provider or _process_provider()
    except ModuleNotFoundError as error:
        raise missing("tracing", error) from error
    writer = SpanWriter(provider.get_tracer(SCOPE), content=config.otel_content() if content is None else content)
    bus = runtime.bus
    leave = bus.subscribe(writer, interest=writer.interest, awaited=False)

    leaving = partial(_at_exit, weakref.ref(bus), weakref.ref(writer))
    atexit.register(leaving)
    weakref.finalize(bus, atexit.unregister, leaving).atexit = False  # a runtime that is gone leaves nothing behind

    def detach() -> None:
        atexit.unregister(leaving)
        bus.flush(everyone=True)
        leave()
        writer.close(time.time())

    return detach


def _at_exit(bus: weakref.ref[EventBus], writer: weakref.ref[SpanWriter]) -> None:
    """End what is open before the tracer provider, which was there first, exports for the last time."""
    living, writing = bus(), writer()
    if living is not None and writing is not None:
        living.flush(everyone=True)
        writing.close(time.time())


def _process_provider() -> TracerProvider:
    """The process's tracer provider; made, once, if it has none."""
    from opentelemetry import trace

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(_exporting())  # of two at once the first one stays
    return trace.get_tracer_provider()


def _exporting() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({SERVICE_NAME: SCOPE}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
