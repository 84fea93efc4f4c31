"""The `cli` plugin: run shell commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.plugins.cli.plugin import CliPlugin

PLUGIN_KIND = "tool"


def create_plugin() -> CliPlugin:
    """A new instance of the plugin."""
    from shared.plugins.cli.plugin import CliPlugin

    return CliPlugin()
