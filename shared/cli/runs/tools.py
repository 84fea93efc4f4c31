"""What an agent from the store needs to go on as it was: the plugins of the tools it had."""

from __future__ import annotations

from dataclasses import replace

from shared.cli.host import HostOptions, open_registry, usual_plugins
from shared.cli.tool_owners import tool_owners
from shared.errors import SubagentConfigError
from shared.plugins.mcp.plugin import McpPlugin
from shared.registry import PluginRegistry
from shared.settings import load_settings
from shared.store.records import AgentRecord


def registry_for(agent: AgentRecord, options: HostOptions, *, fewer: bool) -> PluginRegistry:
    """The plugins that were asked for or are set, and those whose tools the agent had.

    Rights only ever narrow, and what is lost is lost for good; so tools that are not to be had here are an error,
    unless `fewer` says that they are not needed.
    """
    settings, owners = load_settings(), tool_owners()
    had = frozenset(map(str, agent.spec.get("tools") or ()))
    chosen = [*(options.plugins or settings.plugins), *(owners[name] for name in sorted(had & owners.keys()))]
    if had - owners.keys() and "mcp" in usual_plugins(settings):
        chosen.append("mcp")
    registry = open_registry(replace(options, plugins=tuple(dict.fromkeys([*chosen, "subagent"]))))
    lost = had - _offered(registry)
    if lost and not fewer:
        raise SubagentConfigError(
            f"{agent.agent_id} had tools that are not to be had here: {', '.join(sorted(lost))}. Continue it in the "
            "program that has them, or let it go on without them for good with --fewer-tools"
        )
    return registry


def _offered(registry: PluginRegistry) -> frozenset[str]:
    """The tools of all exposed plugins, those of MCP servers once they are connected."""
    servers = registry.get_plugin("mcp") if registry.is_exposed("mcp") else None
    if not isinstance(servers, McpPlugin):
        return frozenset(tool.name for tool in registry.tools())
    servers.settle()
    return frozenset(tool.name for tool in [*registry.tools(), *servers.known_tools()])
