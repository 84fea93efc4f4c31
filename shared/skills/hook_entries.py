"""SkillHook: a program that a skill wants to be run at certain points while it is in use.

The shape is that of Claude Code: event → list of `{matcher, hooks: [{type: command, command, timeout, once}]}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shared.definitions.tool_names import ELSEWHERE

#: Events as skills call them, and the points of the hook bus.
POINTS: Mapping[str, str] = {
    "PreToolUse": "before_tool_call",
    "PostToolUse": "after_tool_call",
    "UserPromptSubmit": "message_received",
    "Stop": "message_sending",
    "SubagentStart": "subagent_start",
    "SubagentStop": "subagent_stop",
}
TIMEOUT_SECONDS = 60.0
MAX_TIMEOUT_SECONDS = 600.0
MAX_HOOKS = 64
_ALWAYS = ("", "*")


@dataclass(frozen=True)
class SkillHook:
    """One command of a skill."""

    event: str  # as the skill calls it
    command: str
    matcher: str = ""
    timeout_seconds: float = TIMEOUT_SECONDS
    once: bool = False

    @property
    def point(self) -> str:
        """Where on the hook bus it belongs."""
        return POINTS[self.event]

    def name_for(self, tool: str) -> str | None:
        """The name under which the hook wants to hear of a tool: ours, or that of the host it was written for."""
        if self.matcher in _ALWAYS:
            return tool
        names = (tool, *(name for name, ours in ELSEWHERE.items() if tool in ours))
        found = next((match for name in names if (match := self._matched(name))), None)
        return found and (tool if found.lower() == tool.lower() else found)

    def _matched(self, name: str) -> str | None:
        """The alternative of the matcher that is the name, as it is written there; else the name if it fits."""
        for each in self.matcher.split("|"):
            if each.strip().lower() == name.lower():
                return each.strip()
        return name if re.fullmatch(self.matcher, name) is not None else None


def read_hooks(given: Any) -> tuple[tuple[SkillHook, ...], tuple[str, ...]]:
    """The hooks of a skill's `hooks` field, and what in it cannot be used; never raises for what is written."""
    problems: list[str] = []
    if not isinstance(given, Mapping):
        return (), ("hooks must be an object of events",)
    found: list[SkillHook] = []
    for event, groups in given.items():
        if event not in POINTS:
            problems.append(f"hooks.{event}: there is no such event here (known: {', '.join(POINTS)})")
            continue
        for where, group in _listed(groups, f"hooks.{event}", problems):
            found += _group(event, group, where, problems)
    if len(found) > MAX_HOOKS:
        problems.append(f"hooks: there are {len(found)}; only the first {MAX_HOOKS} are used")
    return tuple(found[:MAX_HOOKS]), tuple(problems)


def _group(event: str, group: Any, where: str, problems: list[str]) -> Iterator[SkillHook]:
    if not isinstance(group, Mapping):
        problems.append(f"{where} must be an object with 'hooks'")
        return
    matcher = group.get("matcher") or ""
    try:
        re.compile(matcher if isinstance(matcher, str) and matcher not in _ALWAYS else "")
        entries = [(where, group)] if "command" in group else _listed(group.get("hooks"), f"{where}.hooks", problems)
    except (re.error, RecursionError, OverflowError):
        problems.append(f"{where}.matcher is not a regular expression: {str(matcher)[:60]!r}")
        return
    if not isinstance(matcher, str):
        problems.append(f"{where}.matcher must be text")
        return
    for place, entry in entries:
        hook = _hook(event, matcher.strip(), entry)
        if isinstance(hook, str):
            problems.append(f"{place} {hook}")
        else:
            yield hook


def _hook(event: str, matcher: str, entry: Any) -> SkillHook | str:
    """One hook, or what is wrong with it."""
    if not isinstance(entry, Mapping):
        return "must be an object with 'command'"
    if (kind := entry.get("type", "command")) != "command":
        return f"has the type '{kind}'; only commands can be run here"
    command, seconds = entry.get("command"), entry.get("timeout", TIMEOUT_SECONDS)
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        return "needs a 'command'"
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
        return "must have a number of seconds above 0 as 'timeout'"
    return SkillHook(event, command, matcher, min(float(seconds), MAX_TIMEOUT_SECONDS), entry.get("once") is True)


def _listed(value: Any, where: str, problems: list[str]) -> list[tuple[str, Any]]:
    if not isinstance(value, list):
        problems.append(f"{where} must be a list")
        return []
    return [(f"{where}[{index}]", each) for index, each in enumerate(value)]
