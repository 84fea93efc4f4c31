"""OpenTelemetry: what agents do as spans, after the GenAI semantic conventions."""

from __future__ import annotations

from shared.telemetry.attach import attach_otel

__all__ = ["attach_otel"]
