"""AgentRights: which of our tools an agent of another host asks for, and which it is denied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.definitions.agent_rules import Report, Rule, apply_rules, permitted, switched
from shared.definitions.profile_fields import Unfit, shown
from shared.definitions.rights_keys import plain
from shared.definitions.tool_list import ToolEntry, tool_entries
from shared.definitions.tool_names import CHANGING, mcp_name, our_names, plugin_of
from shared.errors import unknown_name

_MODES = {
    "default": "",
    "manual": "",
    "plan": "",
    **dict.fromkeys(
        ("acceptEdits", "auto", "dontAsk", "bypassPermissions"),
        "is not taken over: the permission policy of this host decides what is asked",
    ),
}
ALLOWING_KEYS, _DENY = ("tools", "allowedtools"), ("disallowedtools", "deniedtools", "excludedtools", "blockedtools")


@dataclass
class AgentRights:
    """Gathers the rights of one agent; `allowed` None means all that its caller has.

    Each key can only take away from what the others leave: in whatever order they are written,
    two lists allow what is in both.
    """

    report: Report
    own: frozenset[str] = frozenset()  # tools that go by these names, whatever other hosts call so
    allowed: dict[str, None] | None = None
    unmapped: dict[str, None] = field(default_factory=dict)
    denied: dict[str, None] = field(default_factory=dict)
    unmapped_denied: dict[str, None] = field(default_factory=dict)
    agents: tuple[str, ...] | None = None  # whom it may spawn, where it says so

    def take(self, key: str, value: Any) -> None:
        """Take one key that narrows rights; raises Unfit if it cannot be read."""
        kind = plain(key)
        if kind in ALLOWING_KEYS:
            self._allow(key, value)
        elif kind in _DENY:
            self._deny(key, value)
        elif kind == "permissionmode":
            self._mode(key, value)
        else:
            self._permission(key, value)

    def forbid_all(self) -> None:
        """No tools, where a dialect means that by saying nothing."""
        self.allowed, self.unmapped = {}, {}

    @property
    def plugins(self) -> tuple[str, ...] | str:
        """The plugins that the tools need."""
        if self.allowed is None:
            return "inherit"
        needed = (plugin_of(tool) for tool in self.allowed if tool not in self.denied)
        return tuple(dict.fromkeys(plugin for plugin in needed if plugin is not None))

    # -- the keys --------------------------------------------------------------------------------

    def _allow(self, key: str, value: Any) -> None:
        if isinstance(value, Mapping):
            self._by_rules(key, switched(value))
            return
        if value is None or (isinstance(value, str) and not value.strip()):
            self.report(
                key, "tools-null", f"'{key}' is empty, so no tools are given; write [] if that is meant", "warning"
            )
            self.forbid_all()
            return
        entries = tool_entries(value)
        if [entry.text for entry in entries] == ["*"]:
            return
        names: dict[str, None] = {}
        rest: dict[str, None] = {}
        for entry in entries:
            found = self._tools(key, entry)
            names |= dict.fromkeys(found)
            rest |= {} if found else {_elsewhere(entry): None}
        self._say_unmapped(key, rest)
        self._only(names, rest)

    def _tools(self, key: str, entry: ToolEntry) -> tuple[str, ...]:
        """Our names for an entry of an allow list; empty if it gives nothing, with the reason reported."""
        if entry.text in self.own:
            return (entry.text,)
        names = our_names(entry.name) if entry.name is not None else None
        if entry.pattern is not None and names and "spawn_subagent" in names:
            wanted = tuple(each.text for each in tool_entries(entry.pattern))
            if any(char in name for name in wanted for char in "?["):
                raise Unfit(f"must name agents, not {shown(entry.pattern)}", code="tools-unreadable")
            self.agents = tuple(dict.fromkeys((*(self.agents or ()), *wanted)))
        elif entry.pattern is not None and entry.pattern.strip() != "*":
            text = f"'{entry.text}' allows a part of what a tool does, which cannot be enforced here: it is not given"
            self.report(key, "tool-pattern", text, "warning")
            return ()
        if entry.text == "*":
            self.report(key, "tool-pattern", "'*' beside other names is doubtful and gives nothing", "warning")
        return names or ()

    def _say_unmapped(self, key: str, names: Iterable[str]) -> None:
        """What may still be known when an agent is started is worth a word, but no warning."""
        if shown_names := ", ".join(f"'{name}'" for name in names if "__" not in name and "(" not in name):
            text = f"no tool here is known by these names, which count only if a plugin brings them: {shown_names}"
            self.report(key, "tool-unmapped", text, "info")

    def _deny(self, key: str, value: Any) -> None:
        if value is None:
            raise Unfit("is null: write [] or leave it out to deny none", code="null-value")
        for entry in tool_entries(value):
            if entry.name is None:
                raise Unfit(f"cannot be read: {shown(entry.text)} is no name of a tool", code="tools-unreadable")
            names = (entry.name,) if entry.name == "*" or entry.name in self.own else our_names(entry.name)
            if entry.pattern is not None and names:
                text = f"'{entry.text}' denies a part of what a tool does: here all of it is denied"
                self.report(key, "tool-pattern", text, "warning")
            if names is None and (mcp := mcp_name(entry.name)) is not None:
                names = (_as_pattern(mcp),)
            if names is None:
                self.unmapped_denied[entry.name] = None
                self.report(
                    key, "tool-unmapped", f"tool '{entry.name}' is not known and cannot be denied yet", "warning"
                )
            self.denied |= dict.fromkeys(names or ())

    def _mode(self, key: str, value: Any) -> None:
        if not isinstance(value, str) or value not in _MODES:
            raise Unfit(f"is wrong: {unknown_name('mode', str(value), list(_MODES))}")
        if value == "plan":
            self.denied |= dict.fromkeys(CHANGING)
        elif _MODES[value]:
            self.report(key, "permission-mode", f"'{key}: {value}' {_MODES[value]}", "warning")

    def _permission(self, key: str, value: Any) -> None:
        """Rules by tool as opencode has them, or lists named allow, ask and deny as Claude's settings have them."""
        if isinstance(value, Mapping) and value and {str(name).lower() for name in value} <= {"allow", "ask", "deny"}:
            if any(isinstance(each, str) and each in ("allow", "ask", "deny") for each in value.values()):
                raise Unfit(f"must name tools, not {shown(value)}", code="tools-unreadable")
            self._lists(key, {str(name).lower(): each for name, each in value.items()})
            return
        self._by_rules(key, permitted(key, value, self.report))

    def _lists(self, key: str, lists: Mapping[str, Any]) -> None:
        if lists.get("allow") is not None:
            self._allow(key, lists["allow"])
        for name in ("ask", "deny"):
            if lists.get(name):
                self._deny(key, lists[name])

    def _by_rules(self, key: str, rules: list[Rule]) -> None:
        outcome = apply_rules(rules)
        if outcome.everything:
            self.denied |= dict.fromkeys(outcome.denied)
            self.unmapped_denied |= dict.fromkeys(outcome.unknown_denied)
        else:
            self._say_unmapped(key, outcome.unknown_allowed)
            self._only(dict.fromkeys(outcome.allowed), dict.fromkeys(outcome.unknown_allowed))

    def _only(self, names: dict[str, None], unmapped: dict[str, None]) -> None:
        if self.allowed is not None:
            names = {name: None for name in names if name in self.allowed}
            unmapped = {name: None for name in unmapped if name in self.unmapped}
        self.allowed, self.unmapped = names, unmapped


def _elsewhere(entry: ToolEntry) -> str:
    """The name under which an entry may be known when an agent is started."""
    return (mcp_name(entry.text) if entry.pattern is None else None) or entry.text


def _as_pattern(name: str) -> str:
    """A name as a pattern for itself: one that is denied need not exist, as a server may not be there."""
    return name if name.endswith("*") else f"{name[:-1]}[{name[-1]}]"
