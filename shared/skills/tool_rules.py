"""The tool lists of skills in our names: what a skill grants, and what it forbids while it is in use."""

from __future__ import annotations

from collections.abc import Iterable

from shared.definitions.profile_fields import Unfit
from shared.definitions.tool_list import ToolEntry, tool_entries
from shared.definitions.tool_names import mcp_name, our_names
from shared.permissions.call import SHELL_TOOLS
from shared.permissions.rules import Rules


def granted_names(entries: Iterable[str]) -> list[str]:
    """The tools that a list names; one with a pattern stays as it is written, for it grants less than the tool."""
    found: list[str] = []
    for text in entries:
        found += [text] if "(" in text else our_names(text) or [mcp_name(text) or text]
    return found


def denied_rules(entries: Iterable[str]) -> Rules:
    """The rules of a list of forbidden tools; what cannot be said exactly forbids the whole tool."""
    tools: list[str] = []
    patterns: list[str] = []
    for text in entries:
        entry = _entry(text)
        names = our_names(entry.name or "") or (mcp_name(entry.name or "") or entry.name or text,)
        if entry.pattern and all(name in SHELL_TOOLS for name in names):
            patterns.append(_command_pattern(entry.pattern))
        else:
            tools += names
    return Rules(tuple(dict.fromkeys(tools)), tuple(dict.fromkeys(patterns)))


def _entry(text: str) -> ToolEntry:
    try:
        return tool_entries([text])[0]
    except Unfit:
        return ToolEntry(text, text)


def _command_pattern(written: str) -> str:
    """`git push:*` and `git push *` mean the command with anything behind it, and without."""
    for ending in (":*", " *"):
        if written.endswith(ending):
            return f"{written.removesuffix(ending)}*"
    return written
