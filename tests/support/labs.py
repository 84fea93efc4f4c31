"""Four providers in front of services that do as they are told, for tests that hold for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from support import anthropic_wire, gemini_wire, openai_wire
from support.wire import Answer, Call, Handler, Renderer, Script, Usage, WireServer
from support.wire import Reply as WireReply

from shared.errors import ServerFailed
from shared.providers.base import Provider, ProviderConfig
from shared.providers.script import Reply, ScriptProvider
from shared.testing import FAULTS

_ids = itertools.count(1)
_PART = WireReply("an answer that will not arrive whole", usage=Usage())


def on_the_wire(reply: Reply) -> WireReply:
    """A scripted reply as the loopback servers know it."""
    calls = tuple(Call(f"call_{next(_ids)}", name, args) for name, args in reply.calls)
    return WireReply(reply.text, calls, reply.thought or "", "c2lnbmVk" if reply.thought else "")


@dataclass(frozen=True)
class Dialect:
    """How one vendor's service answers."""

    name: str
    model: str
    render: Renderer
    faults: dict[str, Answer]
    path: str = ""

    def config(self, server: WireServer, **settings: Any) -> ProviderConfig:
        """Settings that lead to a loopback server."""
        return ProviderConfig(api_key="test-key", base_url=server.url + self.path, **settings)


ANTHROPIC = Dialect(
    "anthropic",
    "claude-sonnet-4-5",
    anthropic_wire.render,
    {
        "rate_limited": anthropic_wire.error("rate_limit_error", "slow down", 429, retry_after="1"),
        "overloaded": anthropic_wire.error("overloaded_error", "busy", 529),
        "server_failed": anthropic_wire.error("api_error", "oops", 500),
        "overflow": anthropic_wire.error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", 400),
        "auth": anthropic_wire.error("authentication_error", "invalid key", 401),
        "no_such_model": anthropic_wire.error("not_found_error", "model: nope", 404),
        "bad_request": anthropic_wire.error("invalid_request_error", "nonsense", 400),
    },
)
GEMINI = Dialect(
    "google_genai",
    "gemini-2.5-flash",
    gemini_wire.render,
    {
        "rate_limited": gemini_wire.error(429, "slow down", retry_delay="1s"),
        "overloaded": gemini_wire.error(503, "busy"),
        "server_failed": gemini_wire.error(500, "oops"),
        "overflow": gemini_wire.error(
            400, "The input token count (9) exceeds the maximum number of tokens allowed (8)."
        ),
        "auth": gemini_wire.error(400, "API key not valid.", reason="API_KEY_INVALID"),
        "no_such_model": gemini_wire.error(404, "models/nope is not found"),
        "bad_request": gemini_wire.error(400, "nonsense"),
    },
)
OPENAI = Dialect(
    "openai_compatible",
    "gpt-oss",
    openai_wire.render,
    {
        "rate_limited": openai_wire.error(429, "slow down", kind="rate_limit", retry_after="1"),
        "overloaded": openai_wire.error(503, "busy"),
        "server_failed": openai_wire.error(500, "oops"),
        "overflow": openai_wire.error(400, "too long", kind="invalid_request_error", code="context_length_exceeded"),
        "auth": openai_wire.error(401, "bad key", kind="invalid_request_error", code="invalid_api_key"),
        "no_such_model": openai_wire.error(404, "nope", kind="invalid_request_error", code="model_not_found"),
        "bad_request": openai_wire.error(400, "nonsense", kind="invalid_request_error"),
    },
    path="/v1",
)
DIALECTS = (ANTHROPIC, GEMINI, OPENAI)


@dataclass
class WireLab:
    """A `ProviderLab` on a loopback server; close it with the stack it was given."""

    dialect: Dialect
    stack: ExitStack
    server: WireServer | None = field(default=None, init=False)

    @property
    def faults(self) -> Iterable[str]:
        """Every fault can be shown on the wire."""
        return FAULTS

    def serve(self, handler: Handler, **options: Any) -> WireServer:
        """A server of this dialect."""
        self.server = self.stack.enter_context(WireServer(handler, **options))
        return self.server

    def provider(self, server: WireServer, **settings: Any) -> Provider:
        """A provider that talks to a server."""
        from shared.providers import get_provider

        return get_provider(self.dialect.name, self.dialect.config(server, **settings))

    def answering(self, *replies: Reply) -> Provider:
        """A provider whose service gives these replies."""
        return self.provider(self.serve(Script(self.dialect.render, *map(on_the_wire, replies))))

    def failing(self, fault: str) -> Provider:
        """A provider whose service shows a fault."""
        return self.provider(self.serve(self._fault(fault)))

    def silent(self) -> tuple[Provider, Callable[[], object]]:
        """A provider whose service takes requests and says nothing."""
        server = self.serve(lambda request: Answer().mute())
        return self.provider(server), lambda: server.wait_hanging(1)

    def _fault(self, fault: str) -> Handler:
        if fault in self.dialect.faults:
            return lambda request: self.dialect.faults[fault]

        def broken(request: Any) -> Answer:
            whole = self.dialect.render(_PART, request)
            half = len(whole.body) // 2
            if fault == "garbage":
                return Answer(
                    b'data: {"oops\n\n{]' if "event" in whole.content_type else b"{]", 200, {}, whole.content_type
                )
            return whole.drop(half) if fault == "dropped" else whole.cut(half)

        return broken


class ScriptLab:
    """The scripted provider as a `ProviderLab`; it has no wire, so only errors it is told to raise."""

    faults = ("rate_limited", "overloaded", "server_failed", "overflow", "auth", "no_such_model", "bad_request")

    def answering(self, *replies: Reply) -> Provider:
        """A provider with these replies."""
        return ScriptProvider(replies)

    def failing(self, fault: str) -> Provider:
        """A provider that raises the error of a fault."""
        return ScriptProvider([FAULTS.get(fault, ServerFailed)("it failed")])

    def silent(self) -> tuple[Provider, Callable[[], object]]:
        """A provider that waits until it is cancelled."""
        import threading

        asked = threading.Event()

        def wait(request: object) -> Reply:
            asked.set()
            return Reply("never", delay=600)

        return ScriptProvider(wait), lambda: asked.wait(20)
