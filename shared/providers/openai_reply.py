"""From chat completions chunks, or a whole completion, to our parts, usage and finish reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shared.errors import IncompleteStream, ProviderError, Refused, ServerFailed
from shared.providers.base import OnChunk
from shared.providers.openai_calls import CallAssembler
from shared.providers.openai_messages import NAME
from shared.types import CHARS_PER_TOKEN, FinishReason, Part, ProviderResponse, Signature, TokenUsage

_THOUGHTS = ("reasoning_content", "reasoning")
_ABSURD = 10**12  # more tokens than any answer has
_FINISH = {"length": FinishReason.MAX_TOKENS, "max_tokens": FinishReason.MAX_TOKENS}


class ReplyBuilder:
    """Collects one answer; `prompt_tokens` is the estimate to use if the server tells no usage."""

    def __init__(self, on_chunk: OnChunk, *, names: Mapping[str, str], prompt_tokens: int) -> None:
        self._on_chunk = on_chunk
        self._names = names
        self._prompt_tokens = prompt_tokens
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._thought_field = _THOUGHTS[0]
        self._refusal: list[str] = []
        self._calls = CallAssembler()
        self._reason: str | None = None
        self._usage: TokenUsage | None = None
        self._began = False
        self._raw: dict[str, Any] = {}

    @property
    def ended(self) -> bool:
        """Whether the model said that it is done."""
        return self._reason is not None

    @property
    def usage(self) -> TokenUsage | None:
        """Tokens spent, estimated where the server does not tell; None before an answer began."""
        if self._usage is not None:
            return self._usage
        if not self._began:
            return None
        size = sum(map(len, (*self._text, *self._thoughts, *self._refusal))) + self._calls.size
        return TokenUsage.of(self._prompt_tokens, size // CHARS_PER_TOKEN + 1)

    def add(self, chunk: Any) -> None:
        """Take in one chunk and hand its text out."""
        if not isinstance(chunk, Mapping):
            raise self.unreadable(f"expected an object, got {type(chunk).__name__}")
        self._began = True
        if isinstance(usage := chunk.get("usage"), Mapping):
            self._usage = _usage(usage)
        if isinstance(model := chunk.get("model"), str):
            self._raw = {"id": chunk.get("id"), "model": model}
        choices = chunk.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
            self._add_choice(choices[0])

    def add_whole(self, completion: Any) -> None:
        """Take in an answer that came in one piece."""
        choices = completion.get("choices") if isinstance(completion, Mapping) else None
        if not choices or not isinstance(choices, list) or not isinstance(choices[0], Mapping):
            raise self.unreadable("it holds no choices; check the base URL")
        self.add(completion)
        self._reason = self._reason or "stop"  # it is whole, even where the server gives no reason

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta", choice.get("message"))
        if isinstance(delta, Mapping):
            self._add_thought(delta)
            self._add_text(delta.get("content"))
            if isinstance(refusal := delta.get("refusal"), str):
                self._refusal.append(refusal)
            calls = delta.get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                if isinstance(call, Mapping):
                    self._calls.add(call)
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self._reason = reason

    def _add_thought(self, delta: Mapping[str, Any]) -> None:
        for field in _THOUGHTS:  # servers that fill both say the same twice
            if isinstance(thought := delta.get(field), str) and thought:
                self._thought_field = field
                self._thoughts.append(thought)
                self._on_chunk("thought", thought)
                return

    def _add_text(self, content: Any) -> None:
        if isinstance(content, list):  # content parts, as some servers send them
            content = "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
        if isinstance(content, str) and content:
            self._text.append(content)
            self._on_chunk("text", content)

    def build(self, *, structured: bool) -> ProviderResponse:
        """The whole answer; raises if there is none."""
        self._raise_failure()
        finish = _FINISH.get(self._reason or "")
        parts: list[Part] = []
        if self._thoughts:
            parts.append(Part(thought="".join(self._thoughts), signature=Signature(NAME, self._thought_field)))
        if text := "".join(self._text):
            parts.append(Part(text=text))
        calls = self._calls.calls(self._names, cut=finish is FinishReason.MAX_TOKENS)
        parts += [Part(function_call=call) for call in calls]
        if finish is None:
            usual = FinishReason.STOP if self._reason == "stop" else FinishReason.UNKNOWN
            finish = FinishReason.TOOL_USE if calls else usual
        value = _parsed_or_none(text) if structured and finish is FinishReason.STOP else None
        return ProviderResponse(tuple(parts), self.usage or TokenUsage(), finish, self._raw, value)

    def _raise_failure(self) -> None:
        if self._reason is None:
            hint = "" if self._began else "; if that happens every time, check the base URL"
            raise self._error(IncompleteStream, f"the answer ended without a finish reason, so it is not whole{hint}")
        if refusal := "".join(self._refusal):
            raise self._error(Refused, f"the model declined to answer: {refusal}")
        if self._reason == "content_filter":
            raise self._error(Refused, "the answer was withheld by a content filter")
        if self._reason == "error":
            raise self._error(ServerFailed, "the server gave up in the middle of the answer")

    def unreadable(self, why: str) -> ProviderError:
        """The error for an answer in a form that is not understood."""
        return self._error(ServerFailed, f"the answer cannot be read: {why}")

    def _error(self, kind: type[ProviderError], text: str) -> ProviderError:
        return kind(f"{NAME}: {text}", provider=NAME, usage=self.usage)


def _usage(usage: Mapping[str, Any]) -> TokenUsage | None:
    prompt, output = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if not prompt and not output:
        return None  # sent by some servers as a placeholder
    details = usage.get("prompt_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, Mapping) else 0
    return TokenUsage.of(prompt, output, cache_read=cached or _count(usage, "prompt_cache_hit_tokens"))


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return int(value) if isinstance(value, int | float) and 0 < value < _ABSURD else 0


def _parsed_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # the caller's schema check reports it
        return None
