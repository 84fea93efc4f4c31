"""Questions as MCP elicitation: the form a user sees, and what their answer means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mcp.server.session import ServerSession
from mcp.types import ClientCapabilities, ElicitRequestFormParams, ElicitResult, RequestId

from shared.errors import ConfigError
from shared.mcp_server.desk import Inquiry
from shared.permissions.console import prompt_text
from shared.permissions.request import Decision, PermissionRequest
from shared.toolbox import clip

_DETAILS = 20_000  # characters of what a call would do
_CHOICES = ("once", "agent", "session", "session tool", "deny")
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "once: this call; agent or session: this same call again, by this agent or by any; "
            "session tool: every call of this tool; deny: no",
            "enum": list(_CHOICES),
            "default": "once",
        },
        "comment": {"type": "string", "title": "Comment", "description": "A word to the agent, if you like"},
    },
    "required": ["decision"],
}


def can_elicit(capabilities: ClientCapabilities | None) -> bool:
    """Whether a client can show a form to its user."""
    able = capabilities.elicitation if capabilities is not None else None
    return able is not None and (able.form is not None or able.url is None)


def form(request: PermissionRequest) -> ElicitRequestFormParams:
    """The question of one call: who wants to do what."""
    return ElicitRequestFormParams(message=_message(request), requested_schema=FORM)


def decision(result: ElicitResult) -> Decision:
    """What a user's answer means; anything doubtful is a no."""
    if result.action == "cancel":
        return Decision(False, comment="the question was dismissed")
    content = result.content or {}
    comment = content.get("comment")
    said = comment if isinstance(comment, str) else ""
    if result.action != "accept":
        return Decision(False, comment=said)
    chosen = content.get("decision", "once")
    try:
        if chosen not in _CHOICES:
            raise ConfigError("not one of the choices")
        return Decision.parse(str(chosen), comment=said)
    except ConfigError as error:
        return Decision(False, comment=f"the answer could not be read: {error}")


class DirectClerk:
    """Puts questions to a client that takes requests from its server, as all did before 2026-07-28."""

    def __init__(
        self, session: ServerSession, request_id: RequestId | None, *, covers: Callable[[str], bool] = lambda _: False
    ) -> None:
        self.covers = covers
        self._session = session
        self._request_id = request_id  # None: on the connection, apart from any request
        self._asking: dict[Inquiry, asyncio.Task[None]] = {}

    def take(self, inquiry: Inquiry) -> None:
        """Ask at once; the client decides how to show several questions."""
        self._asking[inquiry] = asyncio.get_running_loop().create_task(self._ask(inquiry))

    def drop(self, inquiry: Inquiry) -> None:
        """Withdraw a question, which tells the client so."""
        if task := self._asking.pop(inquiry, None):
            task.cancel()

    async def _ask(self, inquiry: Inquiry) -> None:
        params = form(inquiry.request)
        try:
            result = await self._session.elicit_form(params.message, params.requested_schema, self._request_id)
        except Exception as error:  # refused, gone, or an answer that is none: whatever it was, it is no yes
            inquiry.fail(f"the MCP client could not ask its user: {error}")
        else:
            inquiry.answer(decision(result))


def _message(request: PermissionRequest) -> str:
    """The question as on a terminal: every line that comes from an agent is marked, so that none can pass for ours."""
    details = request.display.details or json.dumps(dict(request.arguments), ensure_ascii=False, indent=2, default=str)
    shown = replace(request, display=replace(request.display, details=details))
    return clip(prompt_text(shown, lines=None).strip(), _DETAILS)
