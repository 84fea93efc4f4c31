"""From our messages, tools and settings to the JSON that Gemini's generateContent takes."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.providers.base import ModelRequest, ModelSettings, ToolSet
from shared.providers.wire_json import plain, wire_name
from shared.types import Attachment, FunctionCall, Message, Part, Role, Signature, ToolResult

NAME = "google_genai"
MINTED = "minted_"  # begins the ids of calls that came without one; such an id never leaves this process

# From Gemini 3 on, a call without a thought signature is refused. For calls that another model made,
# Google documents this value, to be sent as it stands.
PLACEHOLDER = "skip_thought_signature_validator"

Wire = dict[str, Any]

# (prefix of the model name, what each effort means); the longest matching prefix wins, None = cannot think
_LEVELS: Wire = {effort: {"thinkingLevel": effort.upper()} for effort in ("low", "medium", "high")}
_EFFORTS: tuple[tuple[str, Wire | None], ...] = (
    ("", None),
    ("gemini-", _LEVELS),
    ("gemini-1", None),
    ("gemini-2", None),
    (
        "gemini-2.5",
        {"low": {"thinkingBudget": 1024}, "medium": {"thinkingBudget": 8192}, "high": {"thinkingBudget": 24576}},
    ),
    ("gemini-3-pro", {**_LEVELS, "medium": {"thinkingLevel": "HIGH"}}),  # knows two levels only
)


@dataclass(frozen=True, slots=True)
class Tools:
    """The wire form of a tool set, and how to get from names on the wire back to ours."""

    declarations: list[Wire]
    names: dict[str, str]


def base_name(model: str) -> str:
    """The model's own name, without `models/` or a publisher's path."""
    return model.rsplit("/", 1)[-1]


def is_modern(model: str) -> bool:
    """Whether the model follows the rules of Gemini 3 and later: signed calls, images within results."""
    name = base_name(model)
    return name.startswith("gemini-") and not name.startswith(("gemini-1", "gemini-2"))


def body(request: ModelRequest) -> Wire:
    """The whole request, apart from the model, which is in the URL."""
    modern = is_modern(request.model)
    found: Wire = {}
    if request.system:
        found["systemInstruction"] = {"parts": [{"text": plain(request.system)}]}
    config = _generation_config(request.settings, request.model)
    with_tools = bool(request.tools.schemas)
    if with_tools and not modern and "responseJsonSchema" in config:
        # Before Gemini 3, tools and a response schema in one request are refused: the one that matters now wins.
        with_tools = request.tool_choice == "auto"
        if with_tools:
            del config["responseJsonSchema"], config["responseMimeType"]
    if with_tools:
        found["tools"] = tools(request.tools).declarations
        if request.tool_choice == "none":
            found["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    if config:
        found["generationConfig"] = config
    found["contents"] = contents(request.messages, modern=modern)
    return found


def contents(messages: Sequence[Message], *, modern: bool) -> list[Wire]:
    """The history; each message is converted once in its life."""
    key = NAME if modern else f"{NAME}:2"
    found: list[Wire] = []
    answered: Wire | None = None  # the content of the tool message just before
    for message in messages:
        wire = message._memo.get(key)
        if wire is None:
            wire = message._memo[key] = _content(message, modern)
        if not wire["parts"]:  # nothing but another model's thoughts
            continue
        if message.role is Role.TOOL and answered is not None:  # all results of one turn belong into one content
            wire = found[-1] = {"role": "user", "parts": [*answered["parts"], *wire["parts"]]}
        else:
            found.append(wire)
        answered = wire if message.role is Role.TOOL else None
    return found


def tools(toolset: ToolSet) -> Tools:
    """The wire form of a tool set, made once."""
    found = toolset.memo.get(NAME)
    if found is None:
        entries = [
            {
                "name": wire_name(schema.name),
                "description": schema.description,
                "parametersJsonSchema": dict(schema.parameters),
            }
            for schema in toolset.schemas
        ]
        names = {wire_name(schema.name): schema.name for schema in toolset.schemas}
        found = toolset.memo[NAME] = Tools([{"functionDeclarations": plain(entries)}], names)
    assert isinstance(found, Tools)
    return found


def _generation_config(settings: ModelSettings, model: str) -> Wire:
    found: Wire = {}
    if settings.temperature is not None:
        found["temperature"] = settings.temperature
    if settings.max_output_tokens is not None:
        found["maxOutputTokens"] = settings.max_output_tokens
    if settings.response_schema is not None:
        found["responseMimeType"] = "application/json"
        found["responseJsonSchema"] = dict(settings.response_schema)
    if settings.reasoning_effort is not None:
        fitting = [row for row in _EFFORTS if base_name(model).startswith(row[0])]
        efforts = max(fitting, key=lambda row: len(row[0]))[1]
        if efforts is not None:
            found["thinkingConfig"] = {"includeThoughts": True, **efforts[settings.reasoning_effort]}
    return found


def _content(message: Message, modern: bool) -> Wire:
    parts: list[Wire] = []
    for part in message.parts:
        parts.extend(_part(part, modern))
    calls = [part for part in parts if "functionCall" in part]
    if modern and calls and not any("thoughtSignature" in call for call in calls):
        calls[0]["thoughtSignature"] = PLACEHOLDER  # of parallel calls only the first bears one
    return {"role": "model" if message.role is Role.MODEL else "user", "parts": plain(parts)}


def _part(part: Part, modern: bool) -> list[Wire]:
    signed = _signed(part.signature)
    if part.function_call is not None:
        return [{"functionCall": _call(part.function_call), **signed}]
    if part.function_response is not None:
        return _response(part.function_response, modern)
    if part.inline_data is not None:
        return [{**_inline(part.inline_data), **signed}]
    if part.text is not None:
        return [{"text": part.text, **signed}] if part.text or signed else []
    # Google wants a thought back only for the sake of its signature.
    return [{"text": part.thought or "", "thought": True, **signed}] if signed else []


def _signed(signature: Signature | None) -> Wire:
    if signature is None or signature.provider != NAME:
        return {}
    value = signature.value
    return {"thoughtSignature": base64.b64encode(value).decode() if isinstance(value, bytes) else value}


def _call(call: FunctionCall) -> Wire:
    return {"name": wire_name(call.name), "args": dict(call.args), **_id(call.id)}


def _id(call_id: str) -> Wire:
    return {} if call_id.startswith(MINTED) else {"id": call_id}


def _response(result: ToolResult, modern: bool) -> list[Wire]:
    response: Wire = {
        "name": wire_name(result.name),
        "response": {"error" if result.is_error else "output": result.result},
        **_id(result.call_id),
    }
    media = [_inline(attachment) for attachment in result.attachments or ()]
    if media and modern:
        response["parts"] = media
        media = []
    return [{"functionResponse": response}, *media]


def _inline(attachment: Attachment) -> Wire:
    data = base64.b64encode(attachment.data).decode()
    return {"inlineData": {"mimeType": attachment.mime_type, "data": data}}


def with_continuation(request_body: Mapping[str, Any], token: bytes) -> Wire:
    """The request that goes on where a long answer was interrupted."""
    return {**request_body, "continuationToken": base64.b64encode(token).decode()}
