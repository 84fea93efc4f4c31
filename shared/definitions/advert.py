"""Advert: the block of a system prompt that tells a model which agents it can delegate to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from shared.definitions.profile import SubagentProfile
from shared.definitions.source import one_line

MAX_CHARS = 12_000  # of a whole advert: it is paid for with every model call
_DESCRIPTION, _TOOLS = 400, 300  # characters of one agent's


def advert(profiles: Iterable[SubagentProfile], *, tool: str = "spawn_agent", max_chars: int = MAX_CHARS) -> str:
    """All agents that may be offered, with one example call; empty if there are none.

    The same profiles give the same bytes, in whatever order they come: a vendor can cache the prompt. Nothing
    is said of where a profile comes from or how it is instructed.
    """
    shown = [(each.name, _entry(each)) for each in profiles if each.visibility != "internal"]
    offered = sorted(set(shown))
    if not offered:
        return ""
    head = (
        f"Agents that you can delegate to with {tool}. An agent sees nothing of this conversation: "
        f"only its own instructions, the task, and the context you give it."
    )
    names, entries = zip(*offered, strict=True)
    kept = _fitting(entries, max_chars)
    rest = ", ".join(names[kept:])
    more = [f"- and {len(names) - kept} more: {_short(rest, _TOOLS)}"] if rest else []
    return "\n".join(
        ["<available-agents>", head, *entries[:kept], *more, _example(names[0], tool), "</available-agents>"]
    )


def _entry(profile: SubagentProfile) -> str:
    description = _short(profile.description, _DESCRIPTION) or "(no description)"
    return f"- {one_line(profile.name)}: {description}\n  tools: {_tools(profile)}\n  limit: {_limit(profile)}"


def _tools(profile: SubagentProfile) -> str:
    """What it has, in the words of the profile: which of it a caller may pass on is decided at the spawn."""
    if profile.tools is not None:
        given = ", ".join(name for name in profile.tools if not _is_denied(name, profile))
        without = ""
    else:
        given = "yours" if profile.inherits_plugins else ", ".join(f"all of {name}" for name in profile.plugins)
        without = f", without {', '.join(profile.disallowed_tools)}" if given and profile.disallowed_tools else ""
    if profile.unmapped_tools:
        given = f"{given}{', ' if given else ''}where available {', '.join(profile.unmapped_tools)}"
    return _short(f"{given or 'none'}{without}", _TOOLS)


def _is_denied(name: str, profile: SubagentProfile) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in profile.disallowed_tools)


def _limit(profile: SubagentProfile) -> str:
    limits = [f"{profile.max_turns} turns"]
    if profile.timeout_seconds is not None:
        limits.append(f"{profile.timeout_seconds:g} s")
    if profile.idle_timeout_seconds is not None:
        limits.append(f"{profile.idle_timeout_seconds:g} s without progress")
    return ", ".join(limits)


def _example(name: str, tool: str) -> str:
    call = {
        "agent": name,
        "task": "What to do, whole: what to look at, what to answer with",
        "context": "What it should know besides; may be left out",
    }
    return f"Example: {tool} {json.dumps(call, ensure_ascii=False)}"


def _fitting(entries: Sequence[str], room: int) -> int:
    """How many entries fit, at least one."""
    used = 0
    for count, entry in enumerate(entries):
        used += len(entry) + 1
        if used > room and count:
            return count
    return len(entries)


def _short(text: str, limit: int) -> str:
    """On one line, without what could pass for the end of the block."""
    flat = one_line(" ".join(text.split())).replace("<", "&lt;").replace(">", "&gt;")
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
