"""Exchange: one request and what came back, as plain JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shared import errors
from shared.errors import CancelledException, JaatoError, ProviderError
from shared.providers.base import ModelRequest
from shared.store.codec import decode_message, encode_message
from shared.types import FinishReason, ProviderResponse, TokenUsage

Chunk = tuple[str, str]


@dataclass(frozen=True)
class Exchange:
    """What was asked, by whom, and how it ended; `started` and `ended` count all beginnings and ends in order."""

    agent: str
    provider: str
    request: Mapping[str, Any]
    chunks: tuple[Chunk, ...]
    reply: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    started: int
    ended: int


def request_value(request: ModelRequest) -> dict[str, Any]:
    """A request as the loop sends it, without what only estimates its size."""
    settings = {name: value for name, value in asdict(request.settings).items() if value is not None}
    return {
        "model": request.model,
        "tool_choice": request.tool_choice,
        "stream": request.stream,
        "settings": settings,
        "system": request.system,
        "tools": [
            {"name": each.name, "description": each.description, "parameters": _plain(each.parameters)}
            for each in request.tools.schemas
        ],
        "messages": [json.loads(encode_message(message)) for message in tuple(request.messages)],
    }


def reply_value(reply: ProviderResponse) -> dict[str, Any]:
    """A reply, whole but for the vendor's own object."""
    return {
        "message": json.loads(encode_message(reply.message)),
        "usage": reply.usage.as_dict(),
        "finish_reason": reply.finish_reason.value,
        "structured": _plain(reply.structured_output),
    }


def reply_from(value: Mapping[str, Any]) -> ProviderResponse:
    """The reply that was recorded."""
    return ProviderResponse(
        decode_message(json.dumps(value["message"])).parts,
        TokenUsage(**value["usage"]),
        FinishReason(value["finish_reason"]),
        structured_output=value["structured"],
    )


def error_value(error: ProviderError | CancelledException) -> dict[str, Any]:
    """A failed call; an error of a kind that is not ours is recorded as what it is a kind of."""
    kind = next(each for each in type(error).__mro__ if each.__module__ == errors.__name__)
    usage = error.usage.as_dict() if error.usage is not None else None
    found: dict[str, Any] = {"type": kind.__name__, "message": str(error), "usage": usage}
    if isinstance(error, ProviderError):
        found |= {"status": error.status, "retry_after": error.retry_after}
    return found


def error_from(value: Mapping[str, Any], provider: str) -> JaatoError:
    """The error that was recorded."""
    kind: type[Any] = getattr(errors, value["type"])
    usage = TokenUsage(**value["usage"]) if value["usage"] is not None else None
    if issubclass(kind, CancelledException):
        return CancelledException(value["message"], usage=usage)
    made: ProviderError = kind(
        value["message"], provider=provider, status=value["status"], retry_after=value["retry_after"], usage=usage
    )
    return made


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def joined(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Neighbouring chunks of one kind in one."""
    found: list[Chunk] = []
    for kind, text in chunks:
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + text)
        else:
            found.append((kind, text))
    return found
