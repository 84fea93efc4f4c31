"""The `references` plugin: documents that an agent should know of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.plugins.references.plugin import ReferencesPlugin

PLUGIN_KIND = "tool"


def create_plugin() -> ReferencesPlugin:
    """A new instance of the plugin."""
    from shared.plugins.references.plugin import ReferencesPlugin

    return ReferencesPlugin()
