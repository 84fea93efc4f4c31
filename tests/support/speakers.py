"""The providers and the loopback formats they speak, side by side, for tests that hold for each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support import gemini_wire, openai_wire
from support.wire import Answer, Renderer, Reply

from shared.cancel import CancelToken
from shared.providers.base import ModelRequest, ModelSettings, Provider, ProviderConfig, ToolSet
from shared.providers.google_genai import GoogleGenAIProvider
from shared.providers.openai_compatible import OpenAICompatibleProvider
from shared.types import Message, ProviderResponse, ToolSchema

WEATHER = ToolSchema(
    "weather",
    "Tells the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@dataclass(frozen=True)
class Speaker:
    """One provider, and how its server answers."""

    name: str
    model: str
    factory: Callable[[ProviderConfig], Provider]
    render: Renderer
    error: Callable[..., Answer]
    broken_stream: Callable[[Reply], Answer]
    garbage_stream: Callable[[Reply], Answer]

    def provider(self, url: str, **settings: Any) -> Provider:
        """A provider that talks to this address."""
        return self.factory(ProviderConfig(**{"api_key": "test-key", "base_url": url, **settings}))

    def request(self, *messages: Message, **fields: Any) -> ModelRequest:
        """A request with one tool; the history defaults to one question."""
        history = list(messages) or [Message.from_text("user", "How is the weather in Oslo?")]
        return ModelRequest(
            **{"model": self.model, "system": "Be brief.", "tools": ToolSet([WEATHER]), "messages": history, **fields}
        )


GEMINI = Speaker(
    "google_genai",
    "gemini-3.8-flash",
    GoogleGenAIProvider,
    gemini_wire.render,
    gemini_wire.error,
    lambda reply: gemini_wire.broken_stream(reply, 500, "it broke"),
    gemini_wire.garbage_stream,
)
OPENAI = Speaker(
    "openai_compatible",
    "gpt-oss",
    OpenAICompatibleProvider,
    openai_wire.render,
    openai_wire.error,
    lambda reply: openai_wire.broken_stream(reply, message="it broke"),
    openai_wire.garbage_stream,
)


@dataclass
class Heard:
    """Chunks as a host sees them."""

    text: str = ""
    thought: str = ""

    def __call__(self, kind: str, piece: str) -> None:
        setattr(self, kind, getattr(self, kind) + piece)


def ask(
    provider: Provider, request: ModelRequest, *, cancel: CancelToken | None = None, heard: Heard | None = None
) -> ProviderResponse:
    """One call."""
    return provider.generate(request, cancel=cancel or CancelToken(), on_chunk=heard or Heard())


def settings(**fields: Any) -> ModelSettings:
    """Model settings."""
    return ModelSettings(**fields)
