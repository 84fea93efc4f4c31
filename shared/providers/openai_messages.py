"""From our messages, tools and settings to the JSON of a chat completions request."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.providers.base import ModelRequest, ToolSet
from shared.providers.wire_json import dumps, wire_id, wire_name
from shared.types import Attachment, FunctionCall, Message, Role, ToolResult

NAME = "openai_compatible"

Wire = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """What one server and model take, as data."""

    official: bool  # OpenAI itself, which refuses fields that others want, and the other way round
    reasoning: bool = False  # thinks by itself and refuses a temperature
    effort_with_tools: bool = True  # False: tools are refused unless the effort is 'none'
    stream_usage: bool = True
    extra_body: Mapping[str, Any] | None = None


# (prefix of the model name, thinks, may think while it has tools); the longest matching prefix wins
_MODELS: tuple[tuple[str, bool, bool], ...] = (
    ("", False, True),
    ("o1", True, True),
    ("o3", True, True),
    ("o4", True, True),
    ("codex-", True, True),
    ("gpt-5", True, True),
    ("gpt-5.", True, False),
    ("gpt-5-chat", False, True),
    *((f"gpt-5.{minor}-chat", False, True) for minor in range(10)),
    ("gpt-6", True, False),
)


def dialect(
    model: str, *, official: bool, stream_usage: bool = True, extra_body: Mapping[str, Any] | None = None
) -> Dialect:
    """How to speak to this model on this server."""
    name = model.rsplit("/", 1)[-1]
    _, thinks, both = max((row for row in _MODELS if name.startswith(row[0])), key=lambda row: len(row[0]))
    return Dialect(official, thinks, both or not official, stream_usage, extra_body)


@dataclass(frozen=True, slots=True)
class Fragment:
    """One message of ours as JSON; `images` of tool results must wait until all results were given."""

    messages: bytes = b""
    images: tuple[Wire, ...] = ()


@dataclass(frozen=True, slots=True)
class Tools:
    """The wire form of a tool set, and how to get from names on the wire back to ours."""

    json: bytes
    names: dict[str, str]


def body(request: ModelRequest, spoken: Dialect) -> bytes:
    """The whole request; a turn only joins what was converted before."""
    fields = [b'"model":' + dumps(request.model)]
    fields += [b'"%s":%s' % (name.encode(), dumps(value)) for name, value in _settings(request, spoken).items()]
    if request.tools.schemas:
        fields.append(b'"tools":' + tools(request.tools).json)
    fields.append(b'"messages":[' + conversation(request.system, request.messages, official=spoken.official) + b"]")
    return b"{" + b",".join(fields) + b"}"


def _settings(request: ModelRequest, spoken: Dialect) -> Wire:
    settings, with_tools = request.settings, bool(request.tools.schemas)
    found: Wire = {"stream": request.stream}
    if request.stream and spoken.stream_usage:
        found["stream_options"] = {"include_usage": True}
    if settings.temperature is not None and not spoken.reasoning:
        found["temperature"] = settings.temperature
    if settings.max_output_tokens is not None:
        field = "max_completion_tokens" if spoken.official else "max_tokens"
        found[field] = settings.max_output_tokens
    if with_tools and not spoken.effort_with_tools:
        found["reasoning_effort"] = "none"
    elif settings.reasoning_effort is not None and (spoken.reasoning or not spoken.official):
        found["reasoning_effort"] = settings.reasoning_effort
    if settings.response_schema is not None:
        schema = {"name": "answer", "schema": dict(settings.response_schema)}
        found["response_format"] = {"type": "json_schema", "json_schema": schema}
    if with_tools and request.tool_choice == "none":
        found["tool_choice"] = "none"
    return {**found, **(spoken.extra_body or {})}


def tools(toolset: ToolSet) -> Tools:
    """The wire form of a tool set, made once."""
    found = toolset.memo.get(NAME)
    if found is None:
        entries = [
            {
                "type": "function",
                "function": {
                    "name": wire_name(schema.name),
                    "description": schema.description,
                    "parameters": dict(schema.parameters),
                },
            }
            for schema in toolset.schemas
        ]
        names = {wire_name(schema.name): schema.name for schema in toolset.schemas}
        found = toolset.memo[NAME] = Tools(dumps(entries), names)
    assert isinstance(found, Tools)
    return found


def conversation(system: str, messages: Sequence[Message], *, official: bool) -> bytes:
    """All messages, separated by commas."""
    key = f"{NAME}:official" if official else NAME
    joined = [_system(system)] if system else []
    images: list[Wire] = []
    for message in messages:
        fragment = message._memo.get(key)
        if fragment is None:
            fragment = message._memo[key] = _fragment(message, official)
        if images and message.role is not Role.TOOL:
            joined.append(_images(images))
            images = []
        if fragment.messages:
            joined.append(fragment.messages)
        images.extend(fragment.images)
    if images:
        joined.append(_images(images))
    return b",".join(joined)


@functools.lru_cache(maxsize=64)
def _system(text: str) -> bytes:
    return dumps({"role": "system", "content": text})


def _fragment(message: Message, official: bool) -> Fragment:
    if message.role is Role.MODEL:
        return Fragment(_assistant(message, official))
    if message.role is Role.USER:
        return Fragment(_user(message))
    results = b",".join(_result(result) for result in message.results)
    images: list[Wire] = []
    for result in message.results:
        shown = [_attachment(attachment) for attachment in result.attachments or ()]
        if shown:
            images += [{"type": "text", "text": f"Attached to the result of {result.name}:"}, *shown]
    return Fragment(results, tuple(images))


def _images(content: list[Wire]) -> bytes:
    return dumps({"role": "user", "content": content})


def _user(message: Message) -> bytes:
    if all(part.inline_data is None for part in message.parts):
        return dumps({"role": "user", "content": message.text or ""}) if message.parts else b""
    content: list[Wire] = []
    for part in message.parts:
        if part.text:
            content.append({"type": "text", "text": part.text})
        elif part.inline_data is not None:
            content.append(_attachment(part.inline_data))
    return dumps({"role": "user", "content": content})


def _assistant(message: Message, official: bool) -> bytes:
    found: Wire = {"role": "assistant", "content": message.text or None}
    calls = [_call(call) for call in message.function_calls]
    if calls:
        found["tool_calls"] = calls
    elif not found["content"]:
        shown = any(part.inline_data is not None for part in message.parts)
        if not shown:
            return b""  # nothing but another model's thoughts
        found["content"] = "[an image, which cannot be shown here]"
    if not official:
        found.update(_reasoning(message))
    return dumps(found)


def _reasoning(message: Message) -> Wire:
    """Servers that tell their model's thoughts want them back in the field they came in."""
    found: Wire = {}
    for part in message.parts:
        mark = part.signature
        if part.thought and mark is not None and mark.provider == NAME and isinstance(mark.value, str):
            found[mark.value] = found.get(mark.value, "") + part.thought
    return found


def _call(call: FunctionCall) -> Wire:
    arguments = dumps(dict(call.args)).decode()
    return {
        "id": wire_id(call.id),
        "type": "function",
        "function": {"name": wire_name(call.name), "arguments": arguments},
    }


def _result(result: ToolResult) -> bytes:
    return dumps({"role": "tool", "tool_call_id": wire_id(result.call_id), "content": result.text})


def _attachment(attachment: Attachment) -> Wire:
    kind = attachment.mime_type.partition(";")[0].strip().lower()
    name = attachment.display_name or "attachment"
    if kind.startswith("text/") or kind == "application/json":
        return {"type": "text", "text": f"[{name}]\n{attachment.data.decode('utf-8', 'replace')}"}
    url = f"data:{kind};base64,{base64.b64encode(attachment.data).decode()}"
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    if kind == "application/pdf":
        return {"type": "file", "file": {"filename": name, "file_data": url}}
    return {"type": "text", "text": f"[{name}: {kind}, {len(attachment.data):,} bytes, which cannot be shown here]"}
