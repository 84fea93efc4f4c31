"""Call the tools of a plugin the way a model does: through a toolbox, arguments checked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shared.cancel import CancelToken
from shared.plugin import Plugin
from shared.toolbox import Toolbox
from shared.tools import ToolContext
from shared.types import FunctionCall, ToolResult


class Caller:
    """One agent with the tools of one plugin."""

    def __init__(self, plugin: Plugin, workspace: Path, *, agent_id: str = "main") -> None:
        self.plugin = plugin
        self.workspace = workspace
        self.agent_id = agent_id
        self.chunks: list[str] = []
        self._toolbox = Toolbox(plugin.tools())

    def context(self, cancel: CancelToken | None = None, output: Callable[[str], None] | None = None) -> ToolContext:
        """Who calls."""
        return ToolContext(
            self.agent_id, cancel or CancelToken(), workspace=self.workspace, output=output or self.chunks.append
        )

    def run(self, tool: str, cancel: CancelToken | None = None, **args: Any) -> ToolResult:
        """The result of a call, whatever it is."""
        return self._toolbox.run(FunctionCall("1", tool, args), self.context(cancel))

    def ok(self, tool: str, **args: Any) -> Any:
        """What a call gives that must succeed."""
        result = self.run(tool, **args)
        assert not result.is_error, result.text
        return result.result

    def error(self, tool: str, **args: Any) -> str:
        """What a call says that must fail."""
        result = self.run(tool, **args)
        assert result.is_error, result.text
        return result.text


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Start work on a thread; its value lands in the list."""
    values: list[Any] = []
    thread = threading.Thread(target=lambda: values.append(work()), daemon=True)
    thread.start()
    return thread, values
