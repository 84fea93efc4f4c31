"""Requests in Anthropic's wire format: each message and tool set becomes JSON bytes once, a turn only joins them."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shared.providers.base import ModelRequest, ModelSettings, ToolSet
from shared.types import Attachment, FunctionCall, Message, Part, Role, ToolResult

NAME = "anthropic"
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
DEFAULT_MAX_TOKENS = 32_000

# Models from before adaptive thinking: they take a budget of tokens instead of an effort.
BUDGET_MODELS = (
    "claude-3-7",
    "claude-haiku-4",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2025",
    "claude-opus-4-5",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2025",
    "claude-sonnet-4-5",
)
BUDGETS = {"low": 2_048, "medium": 8_192, "high": 20_000}
LEAST_BUDGET = 1_024

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
_UNCACHEABLE = (b'{"type":"thinking"', b'{"type":"redacted_thinking"')

SchemaFilter = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The content blocks of one message, each as JSON; tool results are apart because they must come first."""

    role: bytes
    results: tuple[bytes, ...] = ()
    others: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Tools:
    """The wire form of a tool set, and how to get from names on the wire back to ours."""

    json: bytes
    names: dict[str, str]


def body(request: ModelRequest, *, cache: bytes, filter_schema: SchemaFilter) -> bytes:
    """The whole request; what is the same from turn to turn comes first, the newest message last."""
    settings = request.settings
    limit = settings.max_output_tokens or DEFAULT_MAX_TOKENS
    fields = [b'"model":' + dumps(request.model), b'"max_tokens":%d' % limit]
    if request.stream:
        fields.append(b'"stream":true')
    thinking, output = reasoning(request.model, settings, limit)
    if settings.response_schema is not None:
        schema = _filtered(dict(settings.response_schema), filter_schema)
        output = {**output, "format": {"type": "json_schema", "schema": schema}}
    if thinking:
        fields.append(b'"thinking":' + dumps(thinking))
    if output:
        fields.append(b'"output_config":' + dumps(output))
    if request.tools.schemas:
        if request.tool_choice == "none":
            fields.append(b'"tool_choice":{"type":"none"}')
        fields.append(b'"tools":' + _with_cache(tools(request.tools).json, cache, closing=b"}]"))
    if request.system.strip():
        fields.append(b'"system":' + _with_cache(_system(request.system), cache, closing=b"}]"))
    fields.append(b'"messages":' + conversation(request.messages, cache=cache))
    return b"{" + b",".join(fields) + b"}"


def reasoning(model: str, settings: ModelSettings, limit: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The `thinking` and `output_config` fields for the wanted effort; empty ones leave it to the model."""
    effort = settings.reasoning_effort
    if effort is None:
        return {}, {}
    if not model.startswith(BUDGET_MODELS):
        return {"type": "adaptive", "display": "summarized"}, {"effort": effort}
    budget = min(BUDGETS[effort], limit // 2)  # it is part of max_tokens, and the answer needs room too
    return ({"type": "enabled", "budget_tokens": budget} if budget >= LEAST_BUDGET else {}), {}


def tools(toolset: ToolSet) -> Tools:
    """The wire form of a tool set, made once."""
    found = toolset.memo.get(NAME)
    if found is None:
        entries = [
            {"name": wire_name(schema.name), "description": schema.description, "input_schema": dict(schema.parameters)}
            for schema in toolset.schemas
        ]
        names = {wire_name(schema.name): schema.name for schema in toolset.schemas}
        found = toolset.memo[NAME] = Tools(dumps(entries), names)
    assert isinstance(found, Tools)
    return found


def conversation(messages: Sequence[Message], *, cache: bytes) -> bytes:
    """All messages, neighbours of one role merged, with cache marks at the end of the last two user turns."""
    turns: list[tuple[bytes, list[bytes]]] = []
    for role, group in _groups(blocks(message) for message in messages):
        turns.append((role, [block for one in group for block in one.results]))
        turns[-1][1].extend(block for one in group for block in one.others)
    if not turns or turns[0][0] != b"user":
        turns.insert(0, (b"user", [_text("(The beginning of this conversation was left out.)")]))
    if turns[-1][0] != b"user":  # the API would take it for the beginning of an answer
        turns.append((b"user", [_text("Continue.")]))
    marked = [index for index, (role, _) in enumerate(turns) if role == b"user"][-2:]
    for index in marked:
        _mark_last(turns[index][1], cache)
    return b"[" + b",".join(_turn(role, content) for role, content in turns) + b"]"


def blocks(message: Message) -> Blocks:
    """The wire form of a message, made once."""
    found = message._memo.get(NAME)
    if found is None:
        found = message._memo[NAME] = _blocks(message)
    assert isinstance(found, Blocks)
    return found


def _groups(all_blocks: Iterable[Blocks]) -> Iterable[tuple[bytes, list[Blocks]]]:
    role, group = b"", list[Blocks]()
    for one in all_blocks:
        if not one.results and not one.others:
            continue
        if group and one.role != role:
            yield role, group
            group = []
        role = one.role
        group.append(one)
    if group:
        yield role, group


def _turn(role: bytes, content: list[bytes]) -> bytes:
    return b'{"role":"' + role + b'","content":[' + b",".join(content) + b"]}"


def _mark_last(content: list[bytes], cache: bytes) -> None:
    for index in range(len(content) - 1, -1, -1):
        if not content[index].startswith(_UNCACHEABLE):
            content[index] = _with_cache(content[index], cache, closing=b"}")
            return


def _with_cache(data: bytes, cache: bytes, *, closing: bytes) -> bytes:
    """A copy with a cache mark in its last object."""
    return data[: -len(closing)] + b',"cache_control":' + cache + closing if cache else data


def _blocks(message: Message) -> Blocks:
    if message.role is Role.MODEL:
        return Blocks(b"assistant", (), tuple(filter(None, map(_model_part, message.parts))))
    results = tuple(_result(part.function_response) for part in message.parts if part.function_response is not None)
    return Blocks(b"user", results, tuple(filter(None, map(_user_part, message.parts))))


def _model_part(part: Part) -> bytes | None:
    if part.function_call is not None:
        return _call(part.function_call)
    if part.thought is not None:
        return _thought(part)
    return _user_part(part)


def _user_part(part: Part) -> bytes | None:
    if part.text is not None:
        return _text(part.text) if part.text.strip() else None
    return dumps(_attachment(part.inline_data)) if part.inline_data is not None else None


def _text(text: str) -> bytes:
    return dumps({"type": "text", "text": text})


def _call(call: FunctionCall) -> bytes:
    return dumps({"type": "tool_use", "id": wire_id(call.id), "name": wire_name(call.name), "input": dict(call.args)})


def _thought(part: Part) -> bytes | None:
    mark = part.signature
    if mark is None or mark.provider != NAME:
        return None
    value = mark.value if isinstance(mark.value, str) else mark.value.decode("ascii", "replace")
    if mark.kind == "redacted":
        return dumps({"type": "redacted_thinking", "data": value})
    return dumps({"type": "thinking", "thinking": part.thought, "signature": value})


def _result(result: ToolResult) -> bytes:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": wire_id(result.call_id)}
    text = result.text
    if not text.strip():
        text = "The tool failed without saying why." if result.is_error else ""
    attached = [_attachment(attachment) for attachment in result.attachments or ()]
    if attached:
        block["content"] = ([{"type": "text", "text": text}] if text else []) + attached
    elif text:
        block["content"] = text
    if result.is_error:
        block["is_error"] = True
    return dumps(block)


def _attachment(attachment: Attachment) -> dict[str, Any]:
    kind = attachment.mime_type.partition(";")[0].strip().lower()
    if kind in IMAGE_TYPES or kind == "application/pdf":
        data = base64.b64encode(attachment.data).decode("ascii")
        source = {"type": "base64", "media_type": kind, "data": data}
        return {"type": "image" if kind in IMAGE_TYPES else "document", "source": source}
    name = attachment.display_name or "attachment"
    if kind.startswith("text/") or kind == "application/json":
        return {"type": "text", "text": f"[{name}]\n{attachment.data.decode('utf-8', 'replace')}"}
    return {"type": "text", "text": f"[{name}: {kind}, {len(attachment.data):,} bytes, which this model cannot read]"}


def wire_id(call_id: str) -> str:
    """A call id in the letters this API allows; ids of its own are kept."""
    return call_id if call_id and not _NOT_ALLOWED.search(call_id) else "call_" + _digest(call_id)


def wire_name(name: str) -> str:
    """A tool name in the letters and length this API allows; different names stay different."""
    if name and len(name) <= _LONGEST_NAME and not _NOT_ALLOWED.search(name):
        return name
    return f"{_NOT_ALLOWED.sub('_', name)[: _LONGEST_NAME - 9]}_{_digest(name)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


@functools.lru_cache(maxsize=64)
def _system(text: str) -> bytes:
    return dumps([{"type": "text", "text": text}])


def _filtered(schema: dict[str, Any], filter_schema: SchemaFilter) -> dict[str, Any]:
    try:
        return filter_schema(schema)
    except (ValueError, TypeError):  # a schema the filter does not understand: let the API judge it
        return schema


def dumps(value: Any) -> bytes:
    """Compact JSON that any server can read: no NaN, no broken characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)
        text = json.dumps(finite, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
