"""What this machine offers: Python, optional packages, the store, MCP servers."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from shared import __version__
from shared.cli.doctor.finding import Finding
from shared.cli.runs.counts import counted
from shared.definitions.source import one_line
from shared.plugins.mcp.plugin import McpPlugin
from shared.registry import PluginRegistry
from shared.settings import Settings
from shared.store.place import place_of

SECONDS = 10.0  # that MCP servers may take to start

#: extra → (module to look for, what it is for)
EXTRAS = {
    "mcp": ("mcp", "MCP servers as tools, and `jaato mcp`"),
    "web": ("ddgs", "the plugin web_search"),
    "otel": ("opentelemetry.sdk", "OpenTelemetry spans"),
}


def look_at_python() -> Iterator[Finding]:
    """Versions and optional packages."""
    yield Finding("machine", "ok", f"jaato {__version__}, Python {platform.python_version()}")
    for extra, (module, purpose) in EXTRAS.items():
        if not _is_installed(module):
            yield Finding("machine", "note", f"not installed: {purpose}", f"pip install 'jaato-subagent[{extra}]'")


def look_at_store(workspace: Path, settings: Settings) -> Iterator[Finding]:
    """Where runs are kept, and whether some were cut short."""
    place = place_of(None, workspace, configured=settings.get("store"))
    if place is None:
        yield Finding("store", "note", "switched off: runs are forgotten when their program ends", "unset JAATO_STORE")
        return
    if not place.path.exists():
        yield from _unborn(place.path)
        return
    from shared.store import Reader

    with Reader(place.path) as reader:
        agents = [agent for agent in reader.agents() if agent.parent_id is not None]
        newest = reader.newest_runs([agent.key for agent in agents])
    cut = [run for run in newest.values() if run.status == "interrupted"]
    yield Finding("store", "ok", one_line(f"{place.path}: {counted(len(agents), 'agent')}"))
    if cut:
        yield Finding("store", "note", f"{counted(len(cut), 'run')} interrupted", "jaato runs --status interrupted")


def look_at_servers(registry: PluginRegistry) -> Iterator[Finding]:
    """Start the configured MCP servers, wait a moment, and stop them again."""
    registry.expose_tool("mcp")
    try:
        plugin = registry.get_plugin("mcp")
        assert isinstance(plugin, McpPlugin)
        deadline = time.monotonic() + SECONDS
        plugin.settle()
        statuses = plugin.status()
        while any(status.state == "connecting" for status in statuses) and time.monotonic() < deadline:
            time.sleep(0.1)
            statuses = plugin.status()
        for status in statuses:
            text = one_line(str(status).replace("\n", "; "))
            if status.state == "connected":
                yield Finding("mcp servers", "ok", text)
            elif status.state == "disabled":
                yield Finding("mcp servers", "note", text, "jaato trust" if "trust" in status.error else "")
            else:
                yield Finding("mcp servers", "problem", text, f"see {status.source}")
        if not statuses:
            yield Finding("mcp servers", "ok", "none are configured")
    finally:
        registry.unexpose_tool("mcp")


def _unborn(path: Path) -> Iterator[Finding]:
    """A store that is not there yet: can it be made?"""
    folder = next(each for each in path.parents if each.exists())
    if os.access(folder, os.W_OK):
        yield Finding("store", "ok", one_line(f"{path}: made when it is first needed"))
    else:
        fix = "make the folder writable, or name another place with JAATO_STORE"
        yield Finding("store", "problem", one_line(f"{folder} cannot be written to: runs will not be kept"), fix)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False
