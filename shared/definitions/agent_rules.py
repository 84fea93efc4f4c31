"""Rules by tool, as opencode writes them: patterns of tool names, of which the last that matches counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from shared.definitions.profile_fields import Unfit, shown
from shared.definitions.source import Severity
from shared.definitions.tool_names import our_names

Report = Callable[[str, str, str, Severity], None]  # field, code, text, level
Rule = tuple[str, bool]

_NAME = re.compile(r"[A-Za-z0-9_*][A-Za-z0-9_.*/:-]*")
_ACTIONS = ("allow", "ask", "deny")
_NATIVE = (
    "read",
    "edit",
    "write",
    "patch",
    "glob",
    "grep",
    "list",
    "bash",
    "task",
    "todowrite",
    "todoread",
    "websearch",
)
_EDITING = ("edit", "write", "patch", "apply_patch", "multiedit")  # what opencode calls `edit` in rules
_NOBODY = "\0"  # a name that only a pattern for everything matches


@dataclass(frozen=True)
class Outcome:
    """What rules come to: everything but `denied`, or nothing but `allowed`; unknown names are left as written."""

    everything: bool
    allowed: tuple[str, ...] = ()
    unknown_allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    unknown_denied: tuple[str, ...] = ()


def switched(value: Mapping[Any, Any]) -> list[Rule]:
    """The rules of a map from tool to true or false; raises Unfit if it holds anything else."""
    for name, each in value.items():
        if not isinstance(each, bool):
            text = f"must say true or false for '{name}', not {shown(each)}"
            raise Unfit(text, inside=(str(name),), code="tools-unreadable")
    return [(_name(name), each) for name, each in value.items()]


def permitted(key: str, value: Any, report: Report) -> list[Rule]:
    """The rules of a permission map; what would be asked about, or is allowed in part only, is not given."""
    if isinstance(value, str):
        value = {"*": value}
    if not isinstance(value, Mapping) or not value:
        raise Unfit(f"must be an object of tools with allow, ask or deny, not {shown(value)}", code="tools-unreadable")
    rules: list[Rule] = []
    for tool, action in value.items():
        allowed = _allowed(key, str(tool), action, report)
        names = _EDITING if _name(tool) == "edit" else (_name(tool),)
        rules += [(name, allowed) for name in names]
    return rules


def _name(written: Any) -> str:
    """The name or pattern of a rule; one that can match nothing would deny nothing."""
    plain_name = isinstance(written, str) and _NAME.fullmatch(written) is not None
    if not plain_name or (written != "*" and sum(map(str.isalnum, written)) < 2):
        raise Unfit(f"must name tools, not {shown(written)}", code="tools-unreadable")
    return str(written).lower()


def _allowed(key: str, tool: str, action: Any, report: Report) -> bool:
    actions = list(action.values()) if isinstance(action, Mapping) else [action]
    if not actions or any(each not in _ACTIONS for each in actions if isinstance(each, str)):
        raise Unfit(
            f"must say allow, ask or deny for '{tool}', not {shown(action)}", inside=(tool,), code="tools-unreadable"
        )
    if any(not isinstance(each, str) for each in actions):
        raise Unfit(
            f"must say allow, ask or deny for '{tool}', not {shown(action)}", inside=(tool,), code="tools-unreadable"
        )
    if set(actions) <= {"allow"}:
        return True
    if set(actions) != {"deny"} and our_names(tool) != ():
        text = f"'{tool}' is allowed in part, or after a question, which cannot be enforced here: it is not given"
        report(key, "tool-pattern", text, "warning")
    return False


def apply_rules(rules: list[Rule]) -> Outcome:
    """Let the last rule that matches decide about each tool; one that nothing matches is allowed."""
    explicit = [name for name, _ in rules if name != "*"]
    names = tuple(dict.fromkeys((*_NATIVE, *(name for name in explicit if not _is_glob(name)))))
    decided = {name: _decide(name, rules) for name in names}
    patterns = {name: _decide(name, rules) for name in explicit if _is_glob(name)}
    known = {name: mapped for name in names if (mapped := our_names(name)) is not None}
    refused = [name for name in names if not decided[name]]
    if _decide(_NOBODY, rules):
        denied = _ours(known, refused)
        unknown = tuple(name for name in refused if name not in known)
        return Outcome(
            True, denied=(*denied, *(name for name, allowed in patterns.items() if not allowed)), unknown_denied=unknown
        )
    against = _ours(known, [name for name in refused if _is_named(name, rules)])
    given = _ours(known, [name for name in names if decided[name]])
    elsewhere = [name for name in names if decided[name] and name not in known]
    elsewhere += [name for name, allowed in patterns.items() if allowed]
    return Outcome(False, tuple(name for name in given if name not in against), tuple(elsewhere))


def _decide(name: str, rules: list[Rule]) -> bool:
    return next((allowed for pattern, allowed in reversed(rules) if _matches(name, pattern)), True)


def _is_named(name: str, rules: list[Rule]) -> bool:
    return any(pattern != "*" and _matches(name, pattern) for pattern, _ in rules)


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def _ours(known: Mapping[str, tuple[str, ...]], names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ours for name in names for ours in known.get(name, ())))


def _is_glob(name: str) -> bool:
    return any(char in name for char in "*?[")
