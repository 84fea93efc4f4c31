"""Which tools an agent of a plugin has, and the key under which its sessions are kept.

| agent | `tools` | has |
|---|---|---|
| of a plugin | a list | exactly those |
| of a plugin | none | core tools and its own plugin's, never another plugin's |
| any other | as its profile says | |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shared.definitions.profile import SubagentProfile

#: What a child never gets by saying nothing.
_NOT_CORE = frozenset({"subagent", "sessions", "spawn_agent"})


def profile_of(
    agent: SubagentProfile, plugin: str, *, core: Mapping[str, frozenset[str]], others: Mapping[str, frozenset[str]]
) -> SubagentProfile:
    """The profile of a plugin's agent, given the tools of the core plugins and of all others that are in use."""
    if agent.tools is None:
        plugins = [name for name in core if name not in _NOT_CORE]
        plugins += [plugin] if plugin not in plugins else []
        if not agent.inherits_plugins:  # it names some itself: then no others
            plugins = [name for name in plugins if name in agent.plugins]
    else:
        wanted = frozenset(agent.tools)
        plugins = [name for name, tools in {**core, **others}.items() if tools & wanted]
    return replace(agent, plugins=tuple(plugins), source=replace(agent.source, plugin=plugin))


def pool_key(agent: str, *, plugin: str | None = None) -> str:
    """The key of an agent's pooled sessions: two plugins may have agents of one name."""
    return f"plugin-{plugin}-{agent}" if plugin is not None else f"agent-{agent}"
