"""Show: the client, the plugins and the policy of the demo, with the story as its model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.cli.demo.story import POLICY
from shared.client import JaatoClient
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, ScriptProvider
from shared.registry import PluginRegistry


@contextmanager
def open_show(folder: Path, model: Callable[[ModelRequest], Reply]) -> Iterator[JaatoClient]:
    """A client that works on a folder, for real: engine, tools and permissions; only the model is scripted."""
    registry = PluginRegistry()
    registry.discover()
    for name in ("cli", "file_edit", "todo"):
        registry.expose_tool(name)
    registry.expose_tool("subagent", {"auto_discover_profiles": False})
    with JaatoClient(provider_name="script", workspace=folder, store=False) as client:
        client.register_provider("script", ScriptProvider(model))
        client.connect()
        client.configure_tools(registry, permissions=POLICY)
        yield client
