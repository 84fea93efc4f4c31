"""From Gemini's response chunks to our parts, usage and finish reason."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from shared.errors import BadRequest, IncompleteStream, ProviderError, Refused, ServerFailed
from shared.providers.base import OnChunk
from shared.providers.google_messages import MINTED, NAME
from shared.types import Attachment, FinishReason, FunctionCall, Part, ProviderResponse, Signature, TokenUsage

if TYPE_CHECKING:
    from google.genai import types as sdk

CONTINUATION = "CONTINUATION"

# What to raise for a reason that is no answer; everything not listed here or below is FinishReason.UNKNOWN.
_FAILURES: dict[str, tuple[type[ProviderError], str]] = {
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "ESCALATION",
            "PUP_LIMITED_DISABLED",
            "MODEL_ARMOR",
        ),
        (Refused, "the answer was withheld"),
    ),
    **dict.fromkeys(
        ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"),
        (ServerFailed, "the model made a call or answer that cannot be read"),
    ),
    "MISSING_THOUGHT_SIGNATURE": (BadRequest, "the history lacks a thought signature"),
    CONTINUATION: (IncompleteStream, "the answer was interrupted and cannot be continued"),
}


class ReplyBuilder:
    """Collects the chunks of one answer, which may come over several requests."""

    def __init__(self, on_chunk: OnChunk, *, names: Mapping[str, str]) -> None:
        self._on_chunk = on_chunk
        self._names = names
        self._parts: list[Part] = []
        self._run: list[str] = []  # text or thought deltas that make one part
        self._run_is_thought = False
        self._ids: set[str] = set()
        self._earlier = TokenUsage()  # of the requests before this one
        self._usage = TokenUsage()
        self._raw: dict[str, Any] = {}
        self._reason: str | None = None
        self._reason_text = ""
        self._blocked: str | None = None
        self.continuation: bytes | None = None

    @property
    def usage(self) -> TokenUsage:
        """Tokens spent so far."""
        return self._earlier + self._usage

    @property
    def ended(self) -> bool:
        """Whether the model said that it is done."""
        return self._reason is not None or self._blocked is not None

    @property
    def resumable(self) -> bool:
        """Whether the service wants to be asked again for the rest."""
        return self._reason == CONTINUATION and self.continuation is not None

    def resume(self) -> bytes:
        """Make ready for the rest of the answer; gives the token to ask with."""
        token = self.continuation or b""
        self._earlier, self._usage = self.usage, TokenUsage()
        self._reason = self.continuation = None
        return token

    def add(self, chunk: sdk.GenerateContentResponse) -> None:
        """Take in one chunk and hand its text out."""
        if chunk.usage_metadata is not None:
            self._usage = _usage(chunk.usage_metadata)
        if chunk.model_version:
            self._raw = {"id": chunk.response_id, "model": chunk.model_version}
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            detail = f": {feedback.block_reason_message}" if feedback.block_reason_message else ""
            self._blocked = f"{feedback.block_reason.value}{detail}"
        if not chunk.candidates:
            return
        candidate = chunk.candidates[0]
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                self._add_part(part)
        if candidate.continuation_token:
            self.continuation = candidate.continuation_token
        if candidate.finish_reason is not None:
            self._reason = candidate.finish_reason.value
            self._reason_text = candidate.finish_message or ""

    def _add_part(self, part: sdk.Part) -> None:
        signature = Signature(NAME, part.thought_signature) if part.thought_signature else None
        if part.function_call is not None:
            self._append(Part(function_call=self._call(part.function_call), signature=signature))
        elif part.inline_data is not None and part.inline_data.data is not None:
            mime_type = part.inline_data.mime_type or "application/octet-stream"
            self._append(Part(inline_data=Attachment(mime_type, part.inline_data.data), signature=signature))
        elif part.text is not None or signature is not None:
            self._add_text(part.text or "", bool(part.thought), signature)

    def _add_text(self, text: str, is_thought: bool, signature: Signature | None) -> None:
        if signature is not None:  # a signed piece must go back as it came, not joined with its neighbours
            self._append(
                Part(thought=text, signature=signature) if is_thought else Part(text=text, signature=signature)
            )
        elif text:
            if is_thought is not self._run_is_thought:
                self._close_run()
            self._run_is_thought = is_thought
            self._run.append(text)
        if text:
            self._on_chunk("thought" if is_thought else "text", text)

    def _append(self, part: Part) -> None:
        self._close_run()
        self._parts.append(part)

    def _close_run(self) -> None:
        if self._run:
            text = "".join(self._run)
            self._run.clear()
            self._parts.append(Part(thought=text) if self._run_is_thought else Part(text=text))

    def _call(self, call: sdk.FunctionCall) -> FunctionCall:
        call_id = call.id
        if not call_id or call_id in self._ids:
            call_id = f"{MINTED}{uuid.uuid4().hex[:20]}"
        self._ids.add(call_id)
        name = call.name or ""
        return FunctionCall(call_id, self._names.get(name, name), dict(call.args or {}))

    def build(self, *, structured: bool) -> ProviderResponse:
        """The whole answer; raises if there is none."""
        self._close_run()
        self._raise_failure()
        calls = any(part.function_call is not None for part in self._parts)
        finish = {
            "STOP": FinishReason.TOOL_USE if calls else FinishReason.STOP,
            "MAX_TOKENS": FinishReason.MAX_TOKENS,
        }.get(self._reason or "", FinishReason.TOOL_USE if calls else FinishReason.UNKNOWN)
        response = ProviderResponse(tuple(self._parts), self.usage, finish, self._raw)
        if not structured or finish is not FinishReason.STOP:
            return response
        return replace(response, structured_output=parsed_or_none(response.get_text()))

    def _raise_failure(self) -> None:
        if self._blocked is not None:
            self._fail(Refused, f"the prompt was refused ({self._blocked})")
        if self._reason is None:
            self._fail(IncompleteStream, "the answer ended without a finish reason, so it is not whole")
        detail = f"{self._reason}{': ' + self._reason_text if self._reason_text else ''}"
        if self._reason in _FAILURES:
            kind, text = _FAILURES[self._reason]
            self._fail(kind, f"{text} ({detail})")
        if self._reason not in ("STOP", "MAX_TOKENS") and not self._parts:
            self._fail(ServerFailed, f"the model gave no answer ({detail})")

    def _fail(self, kind: type[ProviderError], text: str) -> NoReturn:
        raise kind(f"{NAME}: {text}", provider=NAME, usage=self.usage)


def _usage(metadata: sdk.GenerateContentResponseUsageMetadata) -> TokenUsage:
    return TokenUsage.of(
        (metadata.prompt_token_count or 0) + (metadata.tool_use_prompt_token_count or 0),
        (metadata.candidates_token_count or 0) + (metadata.thoughts_token_count or 0),
        cache_read=metadata.cached_content_token_count or 0,
    )


def parsed_or_none(text: str) -> Any:
    """The value of a JSON text; None if it is none, which the caller's schema check then reports."""
    try:
        return json.loads(text)
    except ValueError:
        return None
