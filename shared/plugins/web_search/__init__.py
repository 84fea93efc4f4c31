"""The `web_search` plugin: search the web."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.plugins.web_search.plugin import WebSearchPlugin

PLUGIN_KIND = "tool"


def create_plugin() -> WebSearchPlugin:
    """A new instance of the plugin."""
    from shared.plugins.web_search.plugin import WebSearchPlugin

    return WebSearchPlugin()
