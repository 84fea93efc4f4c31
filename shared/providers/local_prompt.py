"""From a request to the prompt of the embedded model: its own chat format, tools as one line each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shared.providers.base import ModelRequest, ToolSet
from shared.providers.local_grammar import CLOSE, OPEN
from shared.types import Message, Part, Role, ToolSchema

START, END = "<|im_start|>", "<|im_end|>"
MAX_DESCRIPTION = 160  # of a tool: every word of the prompt costs time


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the prompt; marks of the format count only in a `control` piece, never in what people write."""

    text: str
    control: bool = False


def prompt(request: ModelRequest, tools: ToolSet) -> list[Piece]:
    """The whole request with the tools that may be called, up to where the model's answer begins."""
    pieces = list(_block("system", _system(request, tools)))
    for message in request.messages:
        if text := _text(message, calls=bool(tools.schemas)):
            pieces += _block("assistant" if message.role is Role.MODEL else "user", text)
    return [*pieces, Piece(START, control=True), Piece("assistant\n")]


def named_tools(request: ModelRequest) -> list[ToolSchema]:
    """The tools that the user just named."""
    if not request.messages or request.messages[-1].role is not Role.USER:
        return []
    words = {word.strip(".-") for word in re.findall(r"[\w.-]+", request.messages[-1].text or "")}
    return [schema for schema in request.tools.schemas if schema.name in words]


def _block(role: str, text: str) -> Iterator[Piece]:
    yield Piece(START, control=True)
    yield Piece(f"{role}\n{text}")
    yield Piece(END, control=True)
    yield Piece("\n")


def _system(request: ModelRequest, tools: ToolSet) -> str:
    system = request.system.strip() or "You are a helpful assistant."
    if not tools.schemas:
        return system
    listing = "\n".join(_described(schema) for schema in tools.schemas)
    form = f'{OPEN}{{"name": "tool", "arguments": {{"name": "value"}}}}{CLOSE}'
    return f"{system}\n\nTools:\n{listing}\nTo use a tool, answer with {form} and nothing else."


def _described(schema: ToolSchema) -> str:
    given, required = schema.parameters.get("properties"), schema.parameters.get("required") or ()
    properties = given if isinstance(given, Mapping) else {}
    fields = ", ".join(f"{name}{'' if name in required else '?'}: {_kind(value)}" for name, value in properties.items())
    lines = schema.description.strip().splitlines()
    return f"- {schema.name}({fields}): {lines[0][:MAX_DESCRIPTION] if lines else ''}".rstrip(": ")


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "value"
    kinds = next((given for word in ("enum", "type") if isinstance(given := schema.get(word), list) and given), None)
    return " or ".join(map(str, kinds[:8])) if kinds else str(schema.get("type", "value"))


def _text(message: Message, *, calls: bool) -> str:
    """A message as text; earlier calls are left out where none may be made, for they would be imitated."""
    parts = (part for part in message.parts if calls or part.function_call is None)
    return "\n".join(text for part in parts if (text := _part(part)))


def _part(part: Part) -> str:
    """A part as text: reasoning is left out, and what is no text is named."""
    if part.function_call is not None:
        return _written_call(part.function_call.name, part.function_call.args)
    if part.function_response is not None:
        result = part.function_response
        notes = [_left_out(each.mime_type) for each in result.attachments or ()]
        return "\n".join((f"The tool {result.name} answered: {result.text}", *notes))
    if part.inline_data is not None:
        return _left_out(part.inline_data.mime_type)
    return part.text or ""


def _written_call(name: str, args: Mapping[str, Any]) -> str:
    told = json.dumps({"name": name, "arguments": dict(args)}, ensure_ascii=False, default=str)
    return f"{OPEN}{told}{CLOSE}"


def _left_out(mime_type: str) -> str:
    return f"[{mime_type} left out: this model reads text only]"
