"""Anthropic's replies: events of a stream, or a whole message, become one ProviderResponse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.errors import ContextOverflow, IncompleteStream, Refused
from shared.providers.base import OnChunk
from shared.types import FinishReason, FunctionCall, Part, ProviderResponse, Signature, TokenUsage

NAME = "anthropic"
FINISH = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_USE,
    "max_tokens": FinishReason.MAX_TOKENS,
}


@dataclass
class _Block:
    kind: str
    text: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    start: Mapping[str, Any] = field(default_factory=dict)
    signature: str = ""


class Reply:
    """Collects one answer piece by piece; `response()` gives it when it is whole."""

    def __init__(self, on_chunk: OnChunk, names: Mapping[str, str]) -> None:
        self._on_chunk = on_chunk
        self._names = names
        self._blocks: dict[int, _Block] = {}
        self._counts: dict[str, int] = {}
        self._head: Mapping[str, Any] = {}
        self._stop_reason: str | None = None
        self._stop_details: Mapping[str, Any] = {}
        self.begun = False  # the service has accepted the request
        self.done = False  # the closing event has come

    @property
    def usage(self) -> TokenUsage | None:
        """What is known of the tokens spent so far, None before the service said anything."""
        if not self._counts:
            return None
        read = self._counts.get("cache_read_input_tokens", 0)
        write = self._counts.get("cache_creation_input_tokens", 0)
        prompt = self._counts.get("input_tokens", 0) + read + write
        return TokenUsage.of(prompt, self._counts.get("output_tokens", 0), cache_read=read, cache_write=write)

    def event(self, event: Any) -> None:
        """Take one event of a stream; kinds that are not known are passed over."""
        try:
            chunk = self._take(event)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self.incomplete(f"an event cannot be read ({type(error).__name__}: {error})") from error
        if chunk is not None and chunk[1]:
            self._on_chunk(*chunk)

    def whole(self, message: Any) -> None:
        """Take a message that came in one piece, as if it had been streamed."""
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
            raise self.incomplete("it is not a message of this API; check the base URL")
        self.event({"type": "message_start", "message": message})
        for index, block in enumerate(message["content"]):
            self.event({"type": "content_block_start", "index": index, "content_block": block})
        self.event({"type": "message_delta", "delta": message})
        self.event({"type": "message_stop"})

    def response(self, *, structured: bool = False) -> ProviderResponse:
        """The whole answer; IncompleteStream, Refused or ContextOverflow when there is none."""
        if not self.done:
            hint = "" if self._head else "; if that happens every time, check the base URL"
            raise self.incomplete(f"it ended without its closing event{hint}")
        if self._stop_reason == "refusal":
            raise Refused(self._refusal(), provider=NAME, usage=self.usage)
        if self._stop_reason == "model_context_window_exceeded":
            text = "anthropic: the conversation and the answer do not fit into the model's context window"
            raise ContextOverflow(text, provider=NAME, usage=self.usage)
        parts = self._parts()
        text = "".join(part.text for part in parts if part.text is not None)
        raw = {"id": self._head.get("id"), "model": self._head.get("model"), "stop_reason": self._stop_reason}
        return ProviderResponse(
            parts=parts,
            usage=self.usage or TokenUsage(),
            finish_reason=FINISH.get(self._stop_reason or "", FinishReason.UNKNOWN),
            raw=raw,
            structured_output=_parsed(text) if structured else None,
        )

    def _take(self, event: Mapping[str, Any]) -> tuple[Any, str] | None:
        kind = event["type"]
        if kind == "content_block_delta":
            return self._delta(self._blocks[event["index"]], event["delta"])
        if kind == "content_block_start":
            return self._start(event["index"], event["content_block"])
        if kind == "message_start":
            self._head = event["message"]
            self._count(self._head.get("usage"))
        elif kind == "message_delta":
            self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
            self._stop_details = event["delta"].get("stop_details") or {}
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.done = True
        return None

    def _start(self, index: int, start: Mapping[str, Any]) -> tuple[Any, str] | None:
        block = self._blocks[index] = _Block(start["type"], start=start)
        block.signature = start.get("signature") or ""
        if block.kind == "text":
            return self._append("text", block, start.get("text"))
        return self._append("thought", block, start.get("thinking")) if block.kind == "thinking" else None

    def _delta(self, block: _Block, delta: Mapping[str, Any]) -> tuple[Any, str] | None:
        kind = delta["type"]
        if kind == "text_delta":
            return self._append("text", block, delta["text"])
        if kind == "thinking_delta":
            return self._append("thought", block, delta["thinking"])
        if kind == "input_json_delta":
            block.arguments.append(_string(delta["partial_json"]))
        elif kind == "signature_delta":
            block.signature += _string(delta["signature"])
        return None

    def _append(self, kind: str, block: _Block, piece: Any) -> tuple[str, str] | None:
        if not piece:
            return None
        block.text.append(_string(piece))
        return kind, piece

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        # Counts are cumulative; a later event replaces what an earlier one said, where it says anything.
        for name, value in (usage or {}).items():
            if isinstance(value, int) and not isinstance(value, bool):
                self._counts[name] = value

    def _parts(self) -> tuple[Part, ...]:
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        cut = self._stop_reason == "max_tokens"
        if cut and blocks and blocks[-1].kind == "tool_use":
            blocks.pop()  # a call at the very end is half finished, even where what there is of it can be read
        parts: list[Part] = []
        for block in blocks:
            part = self._part(block)
            if part is not None:
                parts.append(part)
        return tuple(parts)

    def _part(self, block: _Block) -> Part | None:
        text = "".join(block.text)
        if block.kind == "text":
            return Part(text=text) if text else None
        if block.kind == "thinking":
            return Part(thought=text, signature=Signature(NAME, block.signature) if block.signature else None)
        if block.kind == "redacted_thinking":
            return Part(thought="", signature=Signature(NAME, str(block.start.get("data", "")), "redacted"))
        return self._call(block) if block.kind == "tool_use" else None

    def _call(self, block: _Block) -> Part:
        joined = "".join(block.arguments)
        try:
            arguments = json.loads(joined) if joined.strip() else block.start.get("input") or {}
            name = _string(block.start["name"])
            if not isinstance(arguments, dict):
                raise TypeError("arguments are an object")
            return Part(function_call=FunctionCall(_string(block.start["id"]), self._names.get(name, name), arguments))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise self.incomplete(f"a tool call in it cannot be read ({type(error).__name__}: {error})") from error

    def _refusal(self) -> str:
        why = self._stop_details.get("explanation") or self._stop_details.get("category") or "no reason was given"
        return f"anthropic: the model declined to answer: {' '.join(str(why).split())}"

    def incomplete(self, why: str) -> IncompleteStream:
        """The error for an answer that cannot be used, with what it has cost so far."""
        return IncompleteStream(f"anthropic: the answer is not whole: {why}", provider=NAME, usage=self.usage)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {type(value).__name__}")
    return value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON: the caller sees None and the text
        return None
