"""A question to a person comes after what led to it, as far as a view has been told."""

from __future__ import annotations

import threading
from typing import ClassVar

from support.tools import steps

from shared.cancel import CancelToken
from shared.events import Event, ToolStarted
from shared.permissions import Channel, Decision, PermissionRequest, build_gate
from shared.plugins.subagent import SubagentPlugin
from shared.testing import Reply, scripted_client


class _Recorded(Channel):
    name: ClassVar[str] = "recorded"

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        self._seen.append(f"asked about {request.tool}")
        return Decision(True)


def test_a_slow_view_has_shown_the_call_before_the_question_is_asked() -> None:
    seen: list[str] = []

    def show(event: Event) -> None:
        assert isinstance(event, ToolStarted)
        threading.Event().wait(0.05)  # a terminal takes its time
        seen.append(f"{event.tool_name} is called")

    script = steps(Reply(calls=(("set_shared_state", {"key": "k", "value": 1}),)), "done")
    gate = build_gate("ask", channel=_Recorded(seen))
    with scripted_client(script, SubagentPlugin(), permissions=gate) as client:
        client.get_runtime().bus.subscribe(show, interest=frozenset({ToolStarted}))
        assert client.send_message("go") == "done"
    assert seen == ["set_shared_state is called", "asked about set_shared_state"]
