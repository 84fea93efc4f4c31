"""From the errors of chat completions servers to our error tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import (
    AuthFailed,
    BadRequest,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    Refused,
    ServerFailed,
)
from shared.providers.openai_messages import NAME
from shared.providers.transport import one_line, retry_after
from shared.types import TokenUsage

# Error events in a stream come without a status; their code or type tells it. The first fitting word counts.
_STATUS_OF_WORD = (
    ("insufficient_quota", 402),
    ("rate_limit", 429),
    ("too_many_requests", 429),
    ("overloaded", 503),
    ("unavailable", 503),
    ("authentication", 401),
    ("invalid_api_key", 401),
    ("permission", 403),
    ("not_found", 404),
    ("invalid_request", 400),
    ("exceed_context_size", 400),
    ("context_length_exceeded", 400),
    ("content_filter", 400),
)
_TOO_LONG = (
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "too many tokens",
    "request too large",
)
_FILTERED = ("content_filter", "content_policy_violation")


def from_answer(
    status: int | None,
    body: Any,
    headers: Mapping[str, str],
    *,
    model: str,
    url: str,
    usage: TokenUsage | None = None,
) -> ProviderError:
    """The error for an answer that is no 200, or for an error within one."""
    error = _error_object(body)
    marks = f"{error.get('code') or ''} {error.get('type') or ''}".lower()
    code = status or _status(error, marks)
    text = one_line(error.get("message") or marks.strip() or f"status {code}")
    kind, sentence = _classify(code, marks, text, model, url)
    return kind(
        f"{NAME}: {sentence}",
        provider=NAME,
        status=code,
        retry_after=retry_after(headers),
        request_id=headers.get("x-request-id"),
        usage=usage,
    )


def _status(error: Mapping[str, Any], marks: str) -> int:
    code = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return code
    return next((status for word, status in _STATUS_OF_WORD if word in marks), 500)


def _classify(code: int, marks: str, text: str, model: str, url: str) -> tuple[type[ProviderError], str]:
    said = f"{marks} {text.lower()}"
    if code == 402 or "insufficient_quota" in marks:
        return AuthFailed, f"the account has no credit left ({text}); add some, or use another key"
    if code in (401, 403) or "invalid_api_key" in marks:
        return AuthFailed, f"{url} refused the credentials ({text}); check OPENAI_API_KEY, or ProviderConfig.api_key"
    if code == 413 or (code in (400, 422, 429, 500) and any(phrase in said for phrase in _TOO_LONG)):
        return ContextOverflow, f"the prompt is too long for {model}: {text}"
    if any(word in marks for word in _FILTERED):
        return Refused, f"the prompt was refused by a content filter: {text}"
    if code == 404 or "model_not_found" in marks:
        return ModelNotFound, f"no model '{model}' at {url} ({text}); check the model name and the base URL"
    if code == 429:
        return RateLimited, f"too many requests: {text}"
    if code in (503, 529):
        return Overloaded, f"the service is too busy: {text}"
    if code >= 500 or code in (408, 409):
        return ServerFailed, f"the service failed with status {code}: {text}"
    return BadRequest, f"the request was refused with status {code}: {text}"


def _error_object(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        return {"message": body} if body else {}
    inner = body.get("error")
    if isinstance(inner, Mapping):
        return inner
    return {"message": inner} if isinstance(inner, str) else body
