"""Results and transcripts as MCP resources, for the agents of one conversation."""

from __future__ import annotations

import json
import re
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from shared.errors import SubagentNotFoundError
from shared.mcp_server.conversation import Conversation
from shared.mcp_server.transcript import transcript
from shared.store.conversations import Conversation as StoredConversation
from shared.subagents.agent import Subagent

_ADDRESS = re.compile(r"jaato://agents/([^/?#]+)/(result|transcript)")
_TYPES = {"result": "application/json", "transcript": "text/markdown"}
_PAGE = 100  # resources in one answer
TEMPLATES = [
    ResourceTemplate(
        name="result",
        title="Result of a subagent",
        uri_template="jaato://agents/{agent_id}/result",
        description="The whole result of the newest run, as JSON",
        mime_type=_TYPES["result"],
    ),
    ResourceTemplate(
        name="transcript",
        title="Transcript of a subagent",
        uri_template="jaato://agents/{agent_id}/transcript",
        description="What was said and which tools were called, as Markdown",
        mime_type=_TYPES["transcript"],
    ),
]


def addresses(agent_id: str) -> tuple[str, str]:
    """The resources of one agent: its result, then its transcript."""
    return f"jaato://agents/{agent_id}/result", f"jaato://agents/{agent_id}/transcript"


def list_resources(conversation: Conversation, cursor: str | None) -> ListResourcesResult:
    """A page of the resources of all agents, newest first."""
    agents = conversation.tree.below(conversation.session.agent_id)[::-1]
    found = [resource for agent in agents for resource in _resources(agent)]
    if cursor is not None and not cursor.isdecimal():
        raise MCPError(INVALID_PARAMS, f"cursor: expected one that an earlier answer gave, got '{cursor[:40]}'")
    start = int(cursor or 0)
    end = start + _PAGE
    return ListResourcesResult(resources=found[start:end], next_cursor=str(end) if end < len(found) else None)


def read_resource(conversation: Conversation, uri: str) -> ReadResourceResult:
    """One resource; those of other clients do not exist here."""
    match = _ADDRESS.fullmatch(uri)
    if match is None:
        known = " or ".join(template.uri_template for template in TEMPLATES)
        raise MCPError(INVALID_PARAMS, f"no resource '{uri[:200]}': expected {known}")
    try:
        agent = conversation.tree.find(conversation.session.agent_id, match[1])
    except SubagentNotFoundError as error:
        raise MCPError(INVALID_PARAMS, f"no resource '{uri[:200]}': {error}") from error
    text = _result(agent) if match[2] == "result" else _transcript(agent, conversation.tree.conversation)
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type=_TYPES[match[2]])])


def _resources(agent: Subagent) -> list[Resource]:
    label = agent.agent_id if agent.name == agent.agent_id else f"{agent.name} ({agent.agent_id})"
    return [
        Resource(
            uri=uri, name=f"{agent.name} {kind}", description=f"{kind} of {label}, {agent.status.value}", mime_type=mime
        )
        for uri, (kind, mime) in zip(addresses(agent.agent_id), _TYPES.items(), strict=True)
    ]


def _result(agent: Subagent) -> str:
    result = agent.run.result
    found: dict[str, Any] = (
        {**result.as_dict(), "complete": True}
        if result is not None
        else {"success": True, "agent_id": agent.agent_id, "status": agent.status.value, "complete": False}
    )
    return json.dumps(found, ensure_ascii=False, indent=2, default=str)


def _transcript(agent: Subagent, kept: StoredConversation | None) -> str:
    session = agent.session
    if session is not None:
        return transcript(session.get_history())
    if kept is not None and agent.stored:  # at rest, closed, or of a server before this one
        return transcript([each.message for each in kept.store.reader.transcript(agent.stored)])
    if agent.closed:
        return f"{agent.agent_id} is closed and its conversation was let go; its result is still there.\n"
    return transcript(())
