"""Subagents in the background, at the end of a program: nothing that was begun is thrown away."""

from __future__ import annotations

from typing import Any

from shared.client import JaatoClient
from shared.plugin import Executor

DELEGATING = frozenset({"subagent", "sessions", "spawn_agent"})  # one engine under three dialects


class Background:
    """The subagents of a client that work without anybody waiting for them."""

    def __init__(self, client: JaatoClient) -> None:
        self._client = client

    def executor(self, name: str) -> Executor | None:
        """A tool of the subagent plugin for the host itself; None if there are no subagents."""
        registry = self._client.get_runtime().registry
        if registry is None or DELEGATING.isdisjoint(registry.list_exposed()):
            return None
        plugin = registry.get_plugin("subagent")
        return plugin.get_executors().get(name) if plugin is not None else None

    def active(self) -> list[dict[str, Any]]:
        """All subagents that there are, as the model would see them listed."""
        listing = self.executor("list_active_subagents")
        return list(listing({}).get("active_sessions", ())) if listing is not None else []

    def names(self) -> list[str]:
        """The names of those at work."""
        return [str(each["name"]) for each in self.active() if each["type"] == "background" and each["can_cancel"]]

    def results(self, timeout_seconds: float | None = None) -> list[dict[str, Any]]:
        """Wait for all of them; the results that the model has not heard of."""
        wait = self.executor("wait_for_subagents")
        limit = {} if timeout_seconds is None else {"timeout_seconds": timeout_seconds}
        return list(wait(limit).get("results", ())) if wait is not None else []
