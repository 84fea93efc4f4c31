"""The chat completions wire format for the loopback server: streamed or whole, errors, model list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from support.wire import Answer, Call, Reply, Request, sse

FINISH = {"stop": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "stop"}
DONE = "[DONE]"


def render(reply: Reply, request: Request) -> Answer:
    """A neutral reply as chat completions say it, streamed or whole as the request asks."""
    asked = request.json
    if asked.get("stream"):
        told = bool(asked.get("stream_options", {}).get("include_usage"))
        return Answer.of_events(sse([(None, chunk) for chunk in [*chunks(reply, usage_told=told), DONE]]))
    return Answer.of_json(whole(reply))


def whole(reply: Reply) -> dict[str, Any]:
    """The reply in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.finish == "refusal":
        message |= {"content": None, "refusal": reply.text or "I cannot help with that."}
    if reply.thought:
        message["reasoning_content"] = reply.thought
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in reply.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    return {"id": "c1", "object": "chat.completion", "model": "test", "choices": [choice], "usage": usage(reply)}


def chunks(reply: Reply, *, usage_told: bool = True) -> list[dict[str, Any]]:
    """The reply as stream chunks: texts and arguments split in two, usage in a last chunk of its own."""
    found = [chunk(delta) for delta in _deltas(reply)]
    found.append(chunk({}, finish=_finish(reply)))
    if usage_told:
        found.append({"id": "c1", "object": "chat.completion.chunk", "choices": [], "usage": usage(reply)})
    return found


def chunk(delta: dict[str, Any], *, finish: str | None = None) -> dict[str, Any]:
    """One chunk with one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "test", "choices": [choice], "usage": None}


def stream(*events: Any) -> Answer:
    """A stream of these chunks, with its end mark."""
    return Answer.of_events(sse([(None, event) for event in [*events, DONE]]))


def _deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in _halves(reply.thought):
        yield {"reasoning_content": piece}
    field = "refusal" if reply.finish == "refusal" else "content"
    for piece in _halves(reply.text or ("I cannot help with that." if reply.finish == "refusal" else "")):
        yield {field: piece}
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
        for piece in _halves(_arguments(call)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def _arguments(call: Call) -> str:
    return call.raw_args if call.raw_args is not None else json.dumps(dict(call.args))


def _finish(reply: Reply) -> str:
    return FINISH.get(reply.finish_reason, reply.finish_reason)


def usage(reply: Reply) -> dict[str, Any]:
    """The token counts; the prompt's includes what came from the cache."""
    spent = reply.usage
    prompt = spent.input + spent.cache_read + spent.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": spent.output,
        "total_tokens": prompt + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cache_read},
        "completion_tokens_details": {"reasoning_tokens": spent.thinking},
    }


def error_body(message: str = "no", *, kind: str = "server_error", code: str | int | None = None) -> dict[str, Any]:
    """The JSON of an error."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def error(
    status: int, message: str = "no", *, kind: str = "server_error", code: str | None = None, **headers: str
) -> Answer:
    """An error answer."""
    return Answer.of_json(error_body(message, kind=kind, code=code), status, **headers)


def broken_stream(reply: Reply, *, message: str = "no", kind: str = "server_error") -> Answer:
    """A 200 stream whose last event is an error."""
    events = [*chunks(reply)[:2], error_body(message, kind=kind)]
    return Answer.of_events(sse([(None, event) for event in events]))


def garbage_stream(reply: Reply) -> Answer:
    """A stream with an event that is no JSON."""
    return Answer.of_events(sse([(None, chunks(reply)[0]), (None, '{"choices": [}')]))


def models(*names: str) -> Answer:
    """The list of models."""
    return Answer.of_json({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})
