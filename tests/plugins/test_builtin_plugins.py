from __future__ import annotations

import subprocess
import sys

import pytest

import shared.plugins
from shared.plugin import Plugin, ToolPlugin
from shared.registry import PluginRegistry

NAMES = ("cli", "file_edit", "references", "todo", "web_search")


@pytest.mark.parametrize("name", NAMES)
def test_every_plugin_comes_through_the_registry(name: str) -> None:
    registry = PluginRegistry()
    registry.discover()
    assert registry.expose_tool(name)
    plugin = registry.get_plugin(name)
    assert isinstance(plugin, ToolPlugin)
    assert isinstance(plugin, Plugin)
    names = [tool.name for tool in registry.tools()]
    assert names == [tool.name for tool in plugin.tools()]
    assert set(names) <= set(plugin.get_executors())
    assert set(plugin.get_auto_approved_tools()) <= set(names)
    registry.unexpose_all()


def test_all_plugins_together_have_no_name_twice() -> None:
    registry = PluginRegistry()
    registry.discover()
    for name in NAMES:
        registry.expose_tool(name)
    names = [tool.name for tool in registry.tools()]
    assert len(names) == len(set(names)) == 16
    registry.unexpose_all()


def test_the_public_names() -> None:
    for name in shared.plugins.__all__:
        assert getattr(shared.plugins, name).__name__ == name
    with pytest.raises(AttributeError, match="NoSuchName"):
        shared.plugins.NoSuchName


def test_importing_and_making_plugins_loads_nothing_heavy() -> None:
    code = (
        "import sys, importlib\n"
        f"for name in {NAMES!r}: importlib.import_module(f'shared.plugins.{{name}}').create_plugin().tools()\n"
        "print([n for n in ('httpx2', 'asyncio', 'ddgs', 'jsonschema', 'anthropic', 'mcp') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
