"""RoundClerk: questions inside the answer of a call, for clients that take no requests from their server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp.types import ElicitRequest, ElicitResult, InputRequiredResult
from pydantic import ValidationError

from shared.mcp_server.desk import Inquiry
from shared.mcp_server.elicitation import decision, form

MOST_ROUNDS = 9  # clients give up at about ten
TOO_MANY = (
    "too many questions within one call: answer one of them with 'session tool', spawn in the background, or "
    "allow the tool in the policy"
)


class RoundClerk:
    """Collects questions until the call hands them to its client; the answers come with the client's next try."""

    def __init__(self, wake: Callable[[], object], *, covers: Callable[[str], bool]) -> None:
        self.covers = covers
        self._wake = wake
        self._waiting: dict[str, Inquiry] = {}
        self._asked: dict[str, Inquiry] = {}
        self._rounds = 0

    @property
    def has_questions(self) -> bool:
        """Whether something waits to be asked."""
        return bool(self._waiting)

    @property
    def expires_at(self) -> float:
        """When the last of its questions is answered by nobody, on the wall clock."""
        return max((each.request.expires_at for each in (*self._waiting.values(), *self._asked.values())), default=0.0)

    def take(self, inquiry: Inquiry) -> None:
        """Let the call return with this question."""
        if self._rounds >= MOST_ROUNDS:
            inquiry.fail(TOO_MANY)
            return
        self._waiting[inquiry.request.id] = inquiry
        self._wake()

    def drop(self, inquiry: Inquiry) -> None:
        """Forget a question."""
        self._waiting.pop(inquiry.request.id, None)
        self._asked.pop(inquiry.request.id, None)

    def round(self, state: str) -> InputRequiredResult:
        """The questions for the client, which comes back with `state`."""
        self._rounds += 1
        self._asked, self._waiting = self._waiting | self._asked, {}
        requests: dict[str, Any] = {
            key: ElicitRequest(params=form(inquiry.request)) for key, inquiry in self._asked.items()
        }
        return InputRequiredResult(input_requests=requests, request_state=state)

    def hear(self, responses: Mapping[str, Any]) -> None:
        """Take the client's answers; a question without one stays open."""
        for key, inquiry in list(self._asked.items()):
            if (said := responses.get(key)) is None:
                self._waiting[key] = self._asked.pop(key)
                self._wake()
                continue
            try:
                data = said if isinstance(said, ElicitResult) else ElicitResult.model_validate(said)
                inquiry.answer(decision(data))
            except ValidationError:
                inquiry.fail("the MCP client's answer was none")
            del self._asked[key]
