"""Profiles as MCP prompts: a person picks one, gives a task, and the host's model delegates it."""

from __future__ import annotations

import json

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from shared.definitions.catalogue import ProfileCatalogue
from shared.errors import unknown_name

_ARGUMENTS = [
    PromptArgument(name="task", description="What the subagent should do", required=True),
    PromptArgument(name="context", description="What it should know besides", required=False),
]


def list_prompts(catalogue: ProfileCatalogue) -> list[Prompt]:
    """One prompt for each profile that is offered to models."""
    return [
        Prompt(
            name=profile.name,
            title=f"Delegate to {profile.name}",
            description=profile.description or f"Give a task to the subagent '{profile.name}'",
            arguments=_ARGUMENTS,
        )
        for profile in catalogue.list(internal=False)
    ]


def get_prompt(catalogue: ProfileCatalogue, name: str, arguments: dict[str, str]) -> GetPromptResult:
    """What the host's model is told: the very call to make."""
    offered = {profile.name: profile for profile in catalogue.list(internal=False)}
    if name not in offered:
        raise MCPError(INVALID_PARAMS, unknown_name("prompt", name, offered))
    known = [argument.name for argument in _ARGUMENTS]
    for each in arguments:
        if each not in known:
            raise MCPError(INVALID_PARAMS, unknown_name("argument", each, known))
    if not arguments.get("task", "").strip():
        raise MCPError(INVALID_PARAMS, "task: expected what the subagent should do, got nothing")
    call = {"profile": name, **{key: value for key, value in arguments.items() if value}}
    text = (
        f"Delegate this to the subagent profile '{name}': call spawn_subagent with these arguments, then tell me "
        f"what it found.\n\n{json.dumps(call, ensure_ascii=False, indent=2)}"
    )
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=offered[name].description or None, messages=[message])
