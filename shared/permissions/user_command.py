"""The `permissions` user command: show, check, allow, deny, default, clear."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shared.errors import ConfigError, unknown_name
from shared.permissions.policy import ACTIONS
from shared.permissions.rules import Rules
from shared.plugin import CommandCompletion, CommandParameter, UserCommand
from shared.tools import Tool
from shared.types import ToolSchema

if TYPE_CHECKING:
    from shared.permissions.broker import PermissionBroker

_ACTIONS = {
    "show": "the policy, this session's decisions and waiting questions",
    "check": "what would happen to a call: check <tool> [JSON arguments]",
    "allow": "allow a tool or a pattern for this session",
    "deny": "deny a tool or a pattern for this session",
    "default": "allow, ask or deny what no rule covers, for this session",
    "clear": "forget this session's decisions",
}


class PermissionsCommand:
    """What a person types as `permissions …`; it is no tool, so a model cannot reach it."""

    command = UserCommand(
        "permissions",
        "Show or change what tools may do",
        False,
        (
            CommandParameter("action", f"one of {', '.join(_ACTIONS)}"),
            CommandParameter("rest", "what the action is about", capture_rest=True),
        ),
    )

    def __init__(self, broker: PermissionBroker, *, tools: Callable[[], Iterable[Tool]] = tuple) -> None:
        self._broker = broker
        self._tools = tools

    def run(self, args: Mapping[str, Any]) -> str:
        """Run the command; a mistake is answered with one sentence."""
        action = str(args.get("action") or "show").strip()
        rest = args.get("rest") or ""
        text = " ".join(map(str, rest)) if isinstance(rest, list | tuple) else str(rest).strip()
        if action not in _ACTIONS:
            return f"Error: {unknown_name('action', action, _ACTIONS)}"
        try:
            return str(getattr(self, f"_{action}")(text))
        except ConfigError as error:
            return f"Error: {error}"

    def completions(self, args: Sequence[str]) -> list[CommandCompletion]:
        """Actions first, then tools or defaults."""
        typed = args[-1] if args else ""
        options: Mapping[str, str] = {}
        if len(args) <= 1:
            options = _ACTIONS
        elif len(args) == 2 and args[0] == "default":
            options = dict.fromkeys(ACTIONS, "")
        elif len(args) == 2 and args[0] in ("check", "allow", "deny"):
            options = {tool.name: tool.schema.description for tool in self._tools()}
        return [CommandCompletion(name, about) for name, about in options.items() if name.startswith(typed)]

    def _show(self, text: str) -> str:
        policy = self._broker.policy
        lines = [f"policy: {policy.source or 'set in code or none found'}", f"default: {policy.default}"]
        lines += [f"broken, everything is denied: {policy.problem}"] if policy.problem else []
        lines += [f"warning: {warning}" for warning in policy.warnings]
        for name, rules in (("blacklist", policy.blacklist), ("whitelist", policy.whitelist)):
            lines += [f"{name}: {line}" for line in rules.listing()]
        lines += [f"this session: {line}" for line in self._broker.list_grants()]
        lines += [f"waiting: {request.agent_path}: {request.tool}" for request in self._broker.pending()]
        return "\n".join(lines)

    def _check(self, text: str) -> str:
        name, _, arguments = text.partition(" ")
        if not name:
            raise ConfigError('check needs a tool: permissions check <tool> {"argument": "value"}')
        exposed = list(self._tools())
        found = next((tool for tool in exposed if tool.name == name), None)
        tool = found or Tool(ToolSchema(name), lambda args, context: None)
        verdict = self._broker.evaluate(tool, self._arguments(name, arguments.strip()))
        note = "" if found or not exposed else f" (no tool '{name}' is exposed)"
        return f"{verdict.action}: {verdict.reason}{note}"

    def _arguments(self, tool: str, text: str) -> dict[str, Any]:
        """JSON, or for a tool that runs shell lines the line itself."""
        shell = self._broker.policy.shell_tools.get(tool)
        if shell is not None and text and not text.startswith("{"):
            return {shell: text}
        try:
            value = json.loads(text or "{}")
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"the arguments are not valid JSON: {error}") from error
        if not isinstance(value, dict):
            raise ConfigError("the arguments must be a JSON object")
        return value

    def _allow(self, text: str) -> str:
        self._broker.allow(_rules(text, "allow"))
        return f"allowed for this session: {text}"

    def _deny(self, text: str) -> str:
        self._broker.deny(_rules(text, "deny"))
        return f"denied for this session: {text}"

    def _default(self, text: str) -> str:
        if text not in ACTIONS:
            raise ConfigError(unknown_name("default", text, ACTIONS))
        self._broker.set_default(text)
        return f"default for this session: {text}"

    def _clear(self, text: str) -> str:
        self._broker.clear_grants()
        return "this session's decisions are forgotten; the policy is in force"


def _rules(text: str, action: str) -> Rules:
    """One word is a tool and a command of that name; more words, or brackets, are a pattern."""
    if not text:
        raise ConfigError(f"{action} needs a tool name or a pattern, such as 'git *'")
    is_name = " " not in text and "(" not in text
    return Rules(tools=(text,) if is_name else (), patterns=(text,))
