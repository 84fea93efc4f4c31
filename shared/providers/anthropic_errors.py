"""Anthropic's refusals in our words: every answer that is not a success becomes one error of our tree."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shared.errors import (
    AuthFailed,
    BadRequest,
    ConnectionFailed,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
)
from shared.providers.transport import one_line, retry_after
from shared.types import TokenUsage

NAME = "anthropic"
STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TOO_LONG = re.compile(
    r"prompt is too long|context (window|length|limit)|exceed\w* (the )?(maximum )?context|too many (input )?tokens",
    re.IGNORECASE,
)


def status_error(
    *,
    status: int,
    kind: str | None,
    message: str | None,
    headers: Mapping[str, str],
    url: str,
    model: str,
    usage: TokenUsage | None = None,
) -> ProviderError:
    """The error for a refused request, or for an error event inside a stream (whose status says 200)."""
    code = status if status >= 400 or kind is None else STATUS_OF_TYPE.get(kind, 500)
    said = f"{code}: {one_line(message)}" if message else str(code)
    make, text = _choose(code, kind, message or "", said, url, model)
    error = make(
        f"anthropic: {text}",
        provider=NAME,
        status=code,
        retry_after=retry_after(headers),
        request_id=headers.get("request-id"),
        usage=usage,
    )
    if isinstance(error, ConnectionFailed) and code != 408:
        error.retryable = False  # an address that leads elsewhere leads there again
    return error


def _choose(
    code: int, kind: str | None, message: str, said: str, url: str, model: str
) -> tuple[type[ProviderError], str]:
    if code == 413 or (code == 400 and _TOO_LONG.search(message)):
        return ContextOverflow, f"the prompt is too long for '{model}' ({said})"
    if code in (401, 403):
        return AuthFailed, f"the credentials were refused ({said}); check ANTHROPIC_API_KEY or the provider's api_key"
    if code == 404 and kind is not None and model:
        return ModelNotFound, f"no model '{model}' ({said}); choose one of those that list_models() names"
    if code < 400 or code == 404:
        return ConnectionFailed, f"{url} answered {said}, which is not this API; check the base URL"
    if code == 408:
        return ConnectionFailed, f"the request timed out at the service ({said})"
    if code == 429:
        return RateLimited, f"too many requests ({said})"
    if code in (503, 529):
        return Overloaded, f"the service is overloaded ({said})"
    if code >= 500 or code == 409:
        return ServerFailed, f"the service failed ({said})"
    return BadRequest, f"the request was refused ({said})"
