"""A recorded request as text that people can read and compare line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from shared.subagents.inbox import HEAD as ANNOUNCED

#: How long an answer may be depends on what is left of a shared budget at that moment.
_MOVING_SETTINGS = frozenset({"max_output_tokens"})


def told(provider: str, request: Mapping[str, Any]) -> str:
    """The request, with everything that decides the answer."""
    settings = {name: value for name, value in request["settings"].items() if name not in _MOVING_SETTINGS}
    lines = [
        f"provider: {provider}",
        f"model: {request['model']}",
        f"tool_choice: {request['tool_choice']}",
        f"settings: {json.dumps(settings, ensure_ascii=False, sort_keys=True)}",
        "system:",
        *_indented(request["system"]),
    ]
    for each in request["tools"]:
        lines += [f"tool {each['name']}: {each['description']}", *_json(each["parameters"])]
    for message in filter(_counts, request["messages"]):
        lines += [f"{message['role']}:", *_parts(message)]
    return "\n".join(lines)


def _counts(message: Mapping[str, Any]) -> bool:
    """When background runs are announced is a matter of moments; their own exchanges are compared anyway."""
    return not any(part.get("text", "").startswith(ANNOUNCED) for part in message["parts"])


def _parts(message: Mapping[str, Any]) -> Iterator[str]:
    for part in message["parts"]:
        for kind, value in part.items():
            if kind == "call":
                yield f"  calls {value['name']} ({value['id']})"
                yield from _json(value["args"])
            elif kind == "result":
                failed = "failed " if value.get("error") else ""
                yield f"  {failed}result of {value['name']} ({value['id']})"
                yield from _json(value["value"])
                yield from _json(value.get("files", []))
            elif kind == "text":
                yield from _indented(value)
            else:
                yield f"  {kind}:"
                yield from _json(value)


def _indented(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"  {line}"


def _json(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _indented(f"  {value}" if "\n" not in value else value)
    elif value not in ({}, []):
        yield from _indented(json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True))
