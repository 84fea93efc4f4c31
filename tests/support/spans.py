"""Spans in memory: who is whose child, what was begun and never ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared import JaatoClient
from shared.telemetry import attach_otel


class Spans(SpanProcessor):
    """What a client's runtime reported; ask after the work is done."""

    def __init__(self, client: JaatoClient, *exporters: SpanExporter, **options: Any) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, str] = {}
        self._memory = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(self)
        for exporter in (*exporters, self._memory):
            provider.add_span_processor(SimpleSpanProcessor(exporter))
        self._bus = client.get_runtime().bus
        self.detach = attach_otel(client.get_runtime(), provider, **options)

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Note a span that began."""
        with self._lock:
            self._open[span.context.span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        """Note a span that ended."""
        with self._lock:
            del self._open[span.context.span_id]

    @property
    def open(self) -> list[str]:
        """Names of spans that have not ended."""
        assert self._bus.flush(20, everyone=True)
        with self._lock:
            return list(self._open.values())

    @property
    def all(self) -> list[ReadableSpan]:
        """The spans that ended, in the order of their beginning."""
        assert self._bus.flush(20, everyone=True)
        return sorted(self._memory.get_finished_spans(), key=lambda span: span.start_time)

    def named(self, start: str) -> list[ReadableSpan]:
        """The spans whose name begins so."""
        return [span for span in self.all if span.name.startswith(start)]

    def one(self, start: str) -> ReadableSpan:
        """The only span whose name begins so."""
        [span] = self.named(start)
        return span

    def path(self, span: ReadableSpan) -> list[str]:
        """Names from the root to a span."""
        by_id = {each.context.span_id: each for each in self.all}
        names = [span.name]
        while span.parent is not None:
            span = by_id[span.parent.span_id]
            names.insert(0, span.name)
        return names


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    """A span's attributes."""
    return dict(span.attributes or {})


@contextmanager
def spans_of(client: JaatoClient, *exporters: SpanExporter, **options: Any) -> Iterator[Spans]:
    """The spans of a client, for as long as it is looked at."""
    spans = Spans(client, *exporters, **options)
    try:
        yield spans
    finally:
        spans.detach()
