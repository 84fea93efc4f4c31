"""Tracing switched on from outside: spans reach a collector; what is missing or wrong is one clear line."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Mapping

import pytest
from support.stress import wait_for
from support.wire import Answer, WireServer

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra 'otel' is not installed")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider

from shared import JaatoRuntime
from shared.telemetry import attach_otel

PROGRAM = """
from shared import JaatoClient
client = JaatoClient(provider_name="script")
client.connect(model="echo")
print(client.send_message("hello"))
"""


def run(program: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "JAATO_OTEL"))}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env={**outside, **env}, check=False
    )


def received(server: WireServer) -> dict[str, dict[str, str]]:
    """Name of the service → names of spans with their operation."""
    found: dict[str, dict[str, str]] = {}
    for request in server.requests:
        message = ExportTraceServiceRequest()
        message.ParseFromString(request.body)
        for group in message.resource_spans:
            service = {each.key: each.value.string_value for each in group.resource.attributes}["service.name"]
            for span in (span for scope in group.scope_spans for span in scope.spans):
                told = {each.key: each.value.string_value for each in span.attributes}
                found.setdefault(service, {})[span.name] = told["gen_ai.operation.name"]
    return found


def test_a_variable_sends_spans_to_a_collector() -> None:
    with WireServer(lambda request: Answer(b"", 200, {}, "application/x-protobuf")) as server:
        done = run(PROGRAM, {"JAATO_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": server.url})
        assert (done.returncode, done.stdout) == (0, "You said: hello\n"), done.stderr
        assert received(server) == {"jaato": {"invoke_agent main": "invoke_agent", "chat echo": "chat"}}


def test_the_service_has_the_name_that_its_owner_gave_it() -> None:
    with WireServer(lambda request: Answer(b"", 200, {}, "application/x-protobuf")) as server:
        run(PROGRAM, {"JAATO_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": server.url, "OTEL_SERVICE_NAME": "mine"})
        assert list(received(server)) == ["mine"]


def test_a_collector_that_fails_harms_nobody() -> None:
    with WireServer(lambda request: Answer(b"", 400)) as server:
        done = run(PROGRAM, {"JAATO_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": server.url})
    assert (done.returncode, done.stdout) == (0, "You said: hello\n")


def test_off_unless_switched_on() -> None:
    code = PROGRAM + "import sys; print([name for name in sys.modules if name.startswith('opentelemetry')][:3])"
    assert run(code, {}).stdout.splitlines()[1] == "[]"


def test_a_missing_package_is_one_line() -> None:
    code = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"  # as if it were not installed
        "from shared import JaatoClient\n"
        "from shared.errors import MissingDependency\n"
        "try: JaatoClient(provider_name='script')\n"
        "except MissingDependency as error: print(error)\n"
    )
    done = run(code, {"JAATO_OTEL": "on"})
    assert done.stdout == "tracing needs the package 'opentelemetry': pip install 'jaato-subagent[otel]'\n", done.stderr


def test_a_wrong_value_is_an_error() -> None:
    code = (
        "from shared import JaatoClient\nfrom shared.errors import ConfigError\n"
        "try: JaatoClient(provider_name='script')\nexcept ConfigError as error: print(error)"
    )
    assert run(code, {"JAATO_OTEL": "maybe"}).stdout == "JAATO_OTEL: expected 'on' or 'off', got 'maybe'\n"


def test_content_has_a_variable_of_its_own() -> None:
    with WireServer(lambda request: Answer(b"", 200, {}, "application/x-protobuf")) as server:
        asked = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
        for more in ({}, asked):
            run(PROGRAM, {"JAATO_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": server.url, **more})
        first, *_, last = server.requests
        assert b"You said: hello" not in first.body
        assert b"You said: hello" in last.body


def test_a_runtime_that_is_gone_leaves_nothing_behind() -> None:
    provider = TracerProvider()
    runtime = JaatoRuntime("script")
    attach_otel(runtime, provider)
    bus = weakref.ref(runtime.bus)
    del runtime
    wait_for(lambda: gc.collect() >= 0 and bus() is None)
