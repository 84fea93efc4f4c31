"""Tools, contexts and waiting for tests about permissions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shared.cancel import CancelToken
from shared.errors import CancelledException, ToolDenied
from shared.permissions import PermissionBroker
from shared.plugin import PermissionDisplayInfo
from shared.tools import Tool, ToolContext
from shared.types import ToolSchema

CLI = Tool(ToolSchema("cli"), lambda args, context: None, plugin="cli")
WRITE = Tool(ToolSchema("write_file"), lambda args, context: None, plugin="file_edit")
READ = Tool(ToolSchema("read_file"), lambda args, context: None, plugin="file_edit", auto_approved=True)


def _waits_quietly(phase: str, cancel: object) -> nullcontext[None]:
    return nullcontext()


def tool(name: str, **options: Any) -> Tool:
    """A tool that does nothing."""
    return Tool(ToolSchema(name), lambda args, context: None, **options)


def shown(name: str, summary: str, details: str, hint: str = "text") -> Tool:
    """A tool with a display of its own."""
    return tool(name, display=lambda args, context: PermissionDisplayInfo(summary, details, hint))


def caller(
    agent_id: str = "main", *, path: str = "", profile: str | None = None, cancel: CancelToken | None = None
) -> ToolContext:
    """The context of a call, with a session that knows where its agent stands in the tree."""
    session: Any = SimpleNamespace(
        agent_path=path or agent_id, profile=profile, spec=SimpleNamespace(profile=profile), stand_by=_waits_quietly
    )
    return ToolContext(agent_id, cancel or CancelToken(), session=session, workspace=Path.cwd())


def outcome(broker: PermissionBroker, used: Tool, args: Mapping[str, Any], context: ToolContext | None = None) -> str:
    """ "yes", "cancelled", or the text of the denial."""
    try:
        broker.check(used, args, context or caller())
    except ToolDenied as error:
        return str(error)
    except CancelledException:
        return "cancelled"
    return "yes"


class Asking:
    """A check that runs in a thread of its own."""

    def __init__(
        self, broker: PermissionBroker, used: Tool, args: Mapping[str, Any], context: ToolContext | None = None
    ) -> None:
        self.result = ""
        self._thread = threading.Thread(target=self._run, args=(broker, used, args, context), daemon=True)
        self._thread.start()

    def _run(self, *call: Any) -> None:
        self.result = outcome(*call)

    def join(self) -> str:
        """What came of it."""
        self._thread.join(20)
        assert not self._thread.is_alive(), "the check still waits"
        return self.result

    @property
    def waits(self) -> bool:
        """Whether it has not come to an end."""
        return self._thread.is_alive()


def until(condition: Callable[[], Any]) -> Any:
    """Wait for a condition that another thread brings about."""
    pause = threading.Event()
    for _ in range(4_000):
        if found := condition():
            return found
        pause.wait(0.005)
    raise AssertionError("it never happened")
