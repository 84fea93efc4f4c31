"""The values that travel between model, loop and tools: immutable, provider-neutral, picklable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

JSONObject: TypeAlias = Mapping[str, Any]

CHARS_PER_TOKEN = 3  # deliberately pessimistic; usage reported by the provider corrects it


class Role(StrEnum):
    """Who speaks in a message."""

    USER = "user"
    MODEL = "model"
    TOOL = "tool"


class FinishReason(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    MAX_TOKENS = "max_tokens"
    TOOL_USE = "tool_use"
    SAFETY = "safety"
    ERROR = "error"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ToolSchema:
    """What the model is told about one tool; `parameters` is a JSON Schema of type object."""

    name: str
    description: str = ""
    parameters: JSONObject = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The model asks for a tool."""

    id: str
    name: str
    args: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attachment:
    """Bytes that a tool hands to the model, such as an image."""

    mime_type: str
    data: bytes
    display_name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one answer to one call; `result` is text or JSON."""

    call_id: str
    name: str
    result: Any
    is_error: bool = False
    attachments: tuple[Attachment, ...] | None = None
    error_kind: str | None = None  # denied, cancelled, …: for those who count, not for the model

    @property
    def text(self) -> str:
        """The result as the model reads it: text stays text, everything else becomes JSON."""
        if isinstance(self.result, str):
            return self.result
        if type(self.result) is int:
            return str(self.result)
        return json.dumps(self.result, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one model call. `prompt_tokens` is all input, cached or not, on every provider."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @staticmethod
    def of(prompt: int, output: int, *, cache_read: int = 0, cache_write: int = 0) -> TokenUsage:
        """Usage whose total is prompt plus output."""
        return TokenUsage(prompt, output, prompt + output, cache_read, cache_write)

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.output_tokens + other.output_tokens,
            self.total_tokens + other.total_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    def as_dict(self) -> dict[str, int]:
        """A plain dict, for JSON answers."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "total_tokens": self.total_tokens,
        }


@dataclass(frozen=True, slots=True)
class Signature:
    """An opaque mark a provider wants back unchanged (thinking signature, thought signature).

    `provider` says whom it belongs to: it is never sent to another one.
    """

    provider: str
    value: str | bytes
    kind: Literal["signature", "redacted"] = "signature"


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a message; exactly one of the content fields is set."""

    text: str | None = None
    function_call: FunctionCall | None = None
    function_response: ToolResult | None = None
    inline_data: Attachment | None = None
    thought: str | None = None
    signature: Signature | None = None

    @staticmethod
    def from_text(text: str) -> Part:
        """A text part."""
        return Part(text=text)

    @staticmethod
    def from_function_call(call: FunctionCall) -> Part:
        """A part that asks for a tool."""
        return Part(function_call=call)

    @staticmethod
    def from_function_response(result: ToolResult) -> Part:
        """A part that answers a tool call."""
        return Part(function_response=result)

    @staticmethod
    def from_thought(thought: str, signature: Signature | None = None) -> Part:
        """A part of the model's reasoning."""
        return Part(thought=thought, signature=signature)

    @property
    def size(self) -> int:
        """Characters this part adds to a prompt, roughly; images count as a fixed amount."""
        if self.text is not None:
            return len(self.text)
        if self.function_call is not None:
            return len(self.function_call.name) + len(str(self.function_call.args)) + 20
        if self.function_response is not None:
            images = len(self.function_response.attachments or ()) * IMAGE_CHARS
            return len(self.function_response.text) + 20 + images
        return IMAGE_CHARS if self.inline_data is not None else len(self.thought or "")


IMAGE_CHARS = 4_500


@dataclass(frozen=True)
class Message:
    """One entry of a history. `pinned` survives every context collection."""

    role: Role
    parts: tuple[Part, ...] = ()
    pinned: bool = False
    # Derived values, filled on first use and never compared or pickled: a message is converted
    # to each provider's wire form once, and its size is estimated once.
    _memo: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple):
            object.__setattr__(self, "parts", tuple(self.parts))

    @staticmethod
    def from_text(role: Role | str, text: str, *, pinned: bool = False) -> Message:
        """A message of one text part."""
        return Message(Role(role), (Part(text=text),), pinned)

    @property
    def text(self) -> str | None:
        """All text parts joined, or None when there are none."""
        texts = [part.text for part in self.parts if part.text is not None]
        return "".join(texts) if texts else None

    @property
    def function_calls(self) -> list[FunctionCall]:
        """The calls in this message, in order."""
        return [part.function_call for part in self.parts if part.function_call is not None]

    @property
    def results(self) -> list[ToolResult]:
        """The tool results in this message, in order."""
        return [part.function_response for part in self.parts if part.function_response is not None]

    @property
    def tokens(self) -> int:
        """Estimated tokens of this message, computed once."""
        found = self._memo.get("tokens")
        if found is None:
            found = self._memo["tokens"] = 4 + sum(p.size for p in self.parts) // CHARS_PER_TOKEN
        return int(found)

    def __getstate__(self) -> dict[str, Any]:
        return {"role": self.role, "parts": self.parts, "pinned": self.pinned}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for key, value in state.items():
            object.__setattr__(self, key, value)
        object.__setattr__(self, "_memo", {})


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    """What one model call gave."""

    parts: tuple[Part, ...] = ()
    usage: TokenUsage = TokenUsage()
    finish_reason: FinishReason = FinishReason.UNKNOWN
    raw: Any = None
    structured_output: Any = None

    def get_text(self) -> str:
        """All text, joined."""
        return "".join(part.text for part in self.parts if part.text is not None)

    def get_function_calls(self) -> list[FunctionCall]:
        """The calls the model makes, in order."""
        return [part.function_call for part in self.parts if part.function_call is not None]

    @property
    def message(self) -> Message:
        """The reply as a history entry."""
        return Message(Role.MODEL, self.parts)


#: Marks the arguments of a call that the model did not write as a JSON object; the toolbox answers it with an error.
UNPARSED = "_unparsed"


def unparsed_args(text: str, problem: str) -> JSONObject:
    """Stand-in arguments for a call whose arguments cannot be read; any provider can carry them in its history."""
    return {UNPARSED: text, "_problem": problem}


def estimate_tokens(text: str) -> int:
    """Tokens of a text, estimated offline and rather too high than too low."""
    return len(text) // CHARS_PER_TOKEN + 1
