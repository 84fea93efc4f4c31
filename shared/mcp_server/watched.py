"""Which agents a tool call waits for, found in the tree while the call is under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import SubagentNotFoundError
from shared.mcp_server.calls import ToolCall
from shared.mcp_server.conversation import Conversation
from shared.subagents.agent import Subagent
from shared.subagents.engine import SpawnCall

_NAMES = ("agent_id", "subagent_id", "name")


class Watched:
    """The agents of one call; what they spawn counts as theirs."""

    def __init__(self, conversation: Conversation, call: ToolCall) -> None:
        self._conversation = conversation
        self._call = call
        self._found: list[Subagent] = []

    def agents(self) -> list[Subagent]:
        """Those that the call waits for, as far as they exist yet."""
        if not self._found:
            self._found = self._look()
        return self._found

    def covers(self, agent_id: str) -> bool:
        """Whether an agent is one of them, or below one."""
        tree = self._conversation.tree
        agent = tree.get(agent_id)
        if agent is None:
            return False
        line = {agent.agent_id, *(each.agent_id for each in tree.above(agent))}
        return any(each.agent_id in line for each in self.agents())

    def _look(self) -> list[Subagent]:
        args, main = self._call.args, self._conversation.session.agent_id
        tree = self._conversation.tree
        if self._call.name == "spawn_subagent":  # an equal live one does not exist twice
            key = _key(args)
            return [agent for agent in tree.live_children(main) if agent.key == key]
        if self._call.name == "wait_for_subagents":
            return self._named(args["ids"]) if args.get("ids") else tree.live_children(main)
        return self._named([args[name] for name in _NAMES if args.get(name)])

    def _named(self, names: list[Any]) -> list[Subagent]:
        try:
            return [self._conversation.tree.find(self._conversation.session.agent_id, str(name)) for name in names]
        except SubagentNotFoundError:  # the call itself says so
            return []


def _key(args: Mapping[str, Any]) -> tuple[str, ...]:
    return SpawnCall(
        task=str(args.get("task")),
        profile=args.get("profile"),
        name=args.get("name"),
        context=args.get("context"),
        inline=args.get("inline_config"),
    ).key
