"""SubagentPlugin: the twelve tools by which a model delegates; thin, the engine does the work."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shared.plugin import Executor, PermissionDisplayInfo, UserCommand
from shared.plugins.subagent.answering import execute
from shared.plugins.subagent.spawn_tools import SpawnTools
from shared.plugins.subagent.state_tools import StateTools
from shared.plugins.subagent.watch_tools import WatchTools
from shared.tools import Tool


class SubagentPlugin(StateTools, WatchTools, SpawnTools):
    """Spawn, continue, steer, wait for, cancel and close subagents, and share state among them."""

    instructions = """You can delegate with spawn_subagent: give a self-contained task, and a profile when one fits
(list_subagent_profiles). Independent tasks go in parallel: several calls in one reply, or background=true. Finished
background subagents are announced to you; wait_for_subagents waits without using model calls, so never poll."""

    def __init__(self) -> None:
        super().__init__()
        self._tools: list[Tool] | None = None

    def tools(self) -> list[Tool]:
        """The twelve tools; a trusted profile may spare the question before a spawn."""
        if self._tools is None:
            self._tools = [
                replace(each, approves=self._is_approved) if each.name == "spawn_subagent" else each
                for each in super().tools()
            ]
        return self._tools

    def get_executors(self) -> dict[str, Executor]:
        """The tools for host code, which acts for the main session; and the `profiles` command."""
        found = {each.name: functools.partial(execute, each) for each in self.tools()}
        return {**found, "profiles": lambda args=None, **keywords: self.list_subagent_profiles()}

    def get_user_commands(self) -> list[UserCommand]:
        """`profiles` lists what can be delegated to."""
        return [UserCommand("profiles", "List available subagent profiles", share_with_model=True)]

    def format_permission_request(
        self, tool_name: str, arguments: dict[str, Any], channel_type: str
    ) -> PermissionDisplayInfo | None:
        """What a person sees before a subagent is spawned: the task, and everything else that was asked for."""
        if tool_name != "spawn_subagent":
            return None
        profile = arguments.get("profile") or "no profile: your own tools"
        others = {key: value for key, value in arguments.items() if key not in ("task", "profile")}
        details = [str(arguments.get("task", ""))]
        if others:
            details.append(json.dumps(others, indent=2, ensure_ascii=False, default=repr))
        return PermissionDisplayInfo(f"spawn a subagent ({profile})", "\n\n".join(details))

    def _is_approved(self, args: Mapping[str, Any]) -> bool:
        """Whether a profile that somebody vouched for spares the question before this spawn."""
        if args.get("inline_config"):
            return False
        profile = self.catalogue.find(str(args.get("profile") or ""))
        return profile is not None and profile.auto_approved and profile.source.trusted
