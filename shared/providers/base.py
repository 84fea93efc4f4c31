"""What a provider is: a stateless object that turns one request into one response.

The session owns the history; a provider converts, sends, streams and maps errors. One instance
serves all sessions with the same credentials, from any thread at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from shared.cancel import CancelToken
from shared.types import JSONObject, Message, ProviderResponse, ToolSchema

ChunkKind = Literal["text", "thought"]
OnChunk = Callable[[ChunkKind, str], None]


@dataclass(frozen=True)
class ProviderConfig:
    """How to reach one provider; everything left out comes from the vendor's environment variables.

    `extra` holds what only one provider knows; a key it does not know is an error.
    """

    project: str | None = None
    location: str | None = None
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    credentials_path: str | None = None
    use_vertex_ai: bool | None = None
    timeout_seconds: float = 300.0  # longest silence on the wire, not the length of an answer
    connect_timeout_seconds: float = 10.0
    max_connections: int = 1000
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelSettings:
    """Knobs of a model call; a provider leaves out what it no longer takes (see its traits)."""

    temperature: float | None = None
    reasoning_effort: Literal["low", "medium", "high"] | None = None
    max_output_tokens: int | None = None
    response_schema: JSONObject | None = None


@dataclass(frozen=True)
class Traits:
    """Differences between providers, as data."""

    accepts_temperature: bool = True
    default_max_output_tokens: int | None = None
    # (prefix of the model name, context window); the longest matching prefix wins
    context_windows: tuple[tuple[str, int], ...] = ()
    default_context_window: int = 128_000
    governed: bool = True  # whether calls pass the rate governor

    def context_window(self, model: str) -> int:
        """The size of a model's context in tokens."""
        fitting = [pair for pair in self.context_windows if model.startswith(pair[0])]
        return max(fitting, key=lambda pair: len(pair[0]))[1] if fitting else self.default_context_window


class ToolSet:
    """An ordered, immutable set of tool schemas; `memo` keeps each provider's wire form of it."""

    __slots__ = ("memo", "schemas", "tokens")

    def __init__(self, schemas: Sequence[ToolSchema] = ()) -> None:
        self.schemas = tuple(schemas)
        self.memo: dict[str, Any] = {}
        self.tokens = sum(len(s.name) + len(s.description) + len(str(s.parameters)) for s in self.schemas) // 3


@dataclass(frozen=True)
class ModelRequest:
    """One model call. `messages` is the session's live history: read it, never keep or change it."""

    model: str
    system: str
    tools: ToolSet
    messages: Sequence[Message]
    settings: ModelSettings = ModelSettings()
    tool_choice: Literal["auto", "none"] = "auto"
    stream: bool = True
    prompt_tokens: int = 0  # the session's estimate, kept as a running sum


@runtime_checkable
class Provider(Protocol):
    """Everything the runtime needs from a provider."""

    name: str
    traits: Traits

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        """Answer one request; chunks are handed out as they arrive.

        Raises only ProviderError or CancelledException. Returns only whole answers: a stream that
        ends early is IncompleteStream. When `cancel` fires, returns at once by raising.
        """
        ...

    def list_models(self, prefix: str = "") -> list[str]:
        """Names of the models on offer."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


ProviderFactory = Callable[[ProviderConfig], Provider]
