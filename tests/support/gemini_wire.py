"""Gemini's wire format for the loopback server: generateContent, streamGenerateContent, errors, model list."""

from __future__ import annotations

import base64
import json
from typing import Any

from support.wire import Answer, Call, Reply, Request, sse

FINISH = {"stop": "STOP", "tool_use": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}
STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def render(reply: Reply, request: Request) -> Answer:
    """A neutral reply as Gemini says it, streamed or whole as the request asks."""
    if ":streamGenerateContent" in request.path:
        return Answer.of_events(sse([(None, chunk) for chunk in chunks(reply)]))
    return Answer.of_json(_response(_parts(reply), reply, last=True))


def chunks(reply: Reply) -> list[dict[str, Any]]:
    """The reply as stream chunks: texts split in two, the finish reason in the last one only."""
    pieces: list[dict[str, Any]] = []
    for part in _parts(reply):
        text = part.get("text", "")
        if len(text) > 1 and "thoughtSignature" not in part:
            middle = len(text) // 2
            pieces += [{**part, "text": text[:middle]}, {**part, "text": text[middle:]}]
        else:
            pieces.append(part)
    steps = [[piece] for piece in pieces] or [[]]
    return [_response(parts, reply, last=index == len(steps) - 1) for index, parts in enumerate(steps)]


def _parts(reply: Reply) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if reply.thought:
        found.append({"text": reply.thought, "thought": True})
    if reply.text:
        found.append({"text": reply.text})
    found += [_call(call) for call in reply.calls if call.raw_args is None]
    if reply.signature:
        signature = base64.b64encode(reply.signature.encode()).decode()
        first = next((part for part in found if "functionCall" in part), None)
        if first is None:
            found.append({"text": "", "thoughtSignature": signature})
        else:
            first["thoughtSignature"] = signature
    return found


def _call(call: Call) -> dict[str, Any]:
    return {"functionCall": {"name": call.name, "args": dict(call.args), **({"id": call.id} if call.id else {})}}


def _response(parts: list[dict[str, Any]], reply: Reply, *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    found: dict[str, Any] = {"candidates": [candidate], "modelVersion": "gemini-test", "responseId": "r1"}
    if last:
        garbled = any(call.raw_args is not None for call in reply.calls)  # Gemini itself refuses such calls
        reason = reply.finish_reason
        candidate["finishReason"] = "MALFORMED_FUNCTION_CALL" if garbled else FINISH.get(reason, reason)
        found["usageMetadata"] = usage(reply)
    return found


def usage(reply: Reply) -> dict[str, int]:
    """The token counts; the prompt's includes what came from the cache."""
    spent = reply.usage
    prompt = spent.input + spent.cache_read + spent.cache_write
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": spent.output - spent.thinking,
        "thoughtsTokenCount": spent.thinking,
        "cachedContentTokenCount": spent.cache_read,
        "totalTokenCount": prompt + spent.output,
    }


def error_body(status: int, message: str = "no", *, reason: str = "", retry_delay: str = "") -> dict[str, Any]:
    """The JSON of an error."""
    details: list[dict[str, Any]] = []
    if reason:
        details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason})
    if retry_delay:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry_delay})
    found: dict[str, Any] = {"code": status, "message": message, "status": STATUS.get(status, "UNKNOWN")}
    return {"error": {**found, "details": details} if details else found}


def error(status: int, message: str = "no", *, reason: str = "", retry_delay: str = "", **headers: str) -> Answer:
    """An error answer."""
    return Answer.of_json(error_body(status, message, reason=reason, retry_delay=retry_delay), status, **headers)


def broken_stream(reply: Reply, status: int, message: str = "no") -> Answer:
    """A 200 stream whose last event is an error."""
    events = [*chunks(reply)[:-1], error_body(status, message)]
    return Answer.of_events(sse([(None, event) for event in events]))


def garbage_stream(reply: Reply) -> Answer:
    """A stream with an event that is no JSON."""
    return Answer.of_events(sse([(None, chunks(reply)[0]), (None, '{"candidates": [}')]))


def blocked(reason: str = "PROHIBITED_CONTENT") -> Answer:
    """The answer to a prompt that was refused; works streamed or not."""
    return Answer.of_events(sse([(None, json.dumps({"promptFeedback": {"blockReason": reason}}))]))


def models(*names: str) -> Answer:
    """The list of models."""
    entries = [{"name": f"models/{name}", "supportedGenerationMethods": ["generateContent"]} for name in names]
    return Answer.of_json(
        {"models": [*entries, {"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]}]}
    )
