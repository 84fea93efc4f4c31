"""From Google's HTTP errors to our error tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shared.errors import (
    AuthFailed,
    BadRequest,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
)
from shared.providers.google_messages import NAME
from shared.providers.transport import one_line, retry_after
from shared.types import TokenUsage

# Error events in a stream bear a name and perhaps no number.
_STATUS_OF_NAME = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_TOO_LONG = ("exceeds the maximum number of tokens", "input token count", "token limit", "context window")


def from_api_error(
    status: int | None,
    details: Any,
    headers: Mapping[str, str],
    *,
    model: str,
    url: str,
    usage: TokenUsage | None = None,
) -> ProviderError:
    """The error for an answer that is no 200, or for an error event within a stream."""
    error = _error_object(details)
    name = str(error.get("status") or "")
    code = status or _STATUS_OF_NAME.get(name) or 500
    text = one_line(error.get("message") or name or f"status {code}")
    kind, sentence = _classify(code, text, details, model, url)
    wait = retry_after(headers)
    return kind(
        f"{NAME}: {sentence}",
        provider=NAME,
        status=code,
        retry_after=wait if wait is not None else _retry_delay(details),
        request_id=headers.get("x-goog-request-id") or headers.get("x-request-id"),
        usage=usage,
    )


def _classify(code: int, text: str, details: Any, model: str, url: str) -> tuple[type[ProviderError], str]:
    lower = text.lower()
    reasons = {str(entry.get("reason")) for entry in _entries(details)}
    if code in (401, 403) or reasons & {"API_KEY_INVALID", "API_KEY_EXPIRED"} or "api key not valid" in lower:
        return AuthFailed, (
            f"the credentials were refused ({text}); check the API key in GOOGLE_API_KEY or GEMINI_API_KEY, "
            "or for Vertex the project and its credentials"
        )
    if code == 413 or (code == 400 and any(phrase in lower for phrase in _TOO_LONG)):
        return ContextOverflow, f"the prompt is too long for {model}: {text}"
    if code == 404:
        return ModelNotFound, f"no model '{model}' at {url} ({text}); check the name, the location and the base URL"
    if code == 429:
        return RateLimited, f"too many requests: {text}"
    if code in (503, 529):
        return Overloaded, f"the service is too busy: {text}"
    if code >= 500 or code in (408, 499):
        return ServerFailed, f"the service failed with status {code}: {text}"
    return BadRequest, f"the request was refused with status {code}: {text}"


def _error_object(details: Any) -> Mapping[str, Any]:
    if isinstance(details, list) and details:
        details = details[0]
    if not isinstance(details, Mapping):
        return {"message": details} if details else {}
    inner = details.get("error")
    if isinstance(inner, Mapping):
        return inner
    return {"message": inner} if isinstance(inner, str) else details


def _entries(details: Any) -> Iterator[Mapping[str, Any]]:
    entries = _error_object(details).get("details")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping):
            yield entry


def _retry_delay(details: Any) -> float | None:
    """Google's own retry-after: an entry of type RetryInfo with a delay such as '17s'."""
    for entry in _entries(details):
        if (delay := entry.get("retryDelay")) is not None:
            return retry_after({"retry-after": str(delay)})
    return None
