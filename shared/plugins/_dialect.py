"""What the plugins share that offer the engine of subagents under other names."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from shared.errors import SubagentConfigError
from shared.plugin import Executor
from shared.plugins._base import ConfiguredPlugin
from shared.plugins.subagent.answering import execute
from shared.subagents.delegates import Delegates, delegates_of, spares_the_question
from shared.tools import Tool

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime


class DialectPlugin(ConfiguredPlugin):
    """Tools that speak to the one engine of the runtime; settings, profiles and limits are its own."""

    #: The tool that spawns, and its parameters with the profile and with all that goes beyond it.
    spawn_tool: ClassVar[tuple[str, str, frozenset[str]]]
    _runtime: JaatoRuntime | None = None
    _tools: list[Tool] | None = None

    def attach(self, runtime: JaatoRuntime) -> None:
        """Work on this runtime."""
        self._runtime = runtime

    def tools(self) -> list[Tool]:
        """The tools; a trusted profile may spare the question before a spawn."""
        if self._tools is None:
            spawn = self.spawn_tool[0]
            found = super().tools()
            self._tools = [replace(each, approves=self._approves) if each.name == spawn else each for each in found]
        return self._tools

    def get_executors(self) -> dict[str, Executor]:
        """The tools for host code, which acts for the main session."""
        return {each.name: functools.partial(execute, each) for each in self.tools()}

    @property
    def delegates(self) -> Delegates:
        """The engine and its profiles."""
        if self._runtime is None:
            raise SubagentConfigError(
                f"the plugin '{self.name}' has no runtime yet: call client.configure_tools() first"
            )
        return delegates_of(self._runtime)

    def _approves(self, args: Mapping[str, Any]) -> bool:
        _, profile, beyond = self.spawn_tool
        plain = not any(args.get(name) is not None for name in beyond)
        return plain and spares_the_question(self.delegates, str(args.get(profile) or ""))
