"""The `todo` plugin: a plan with steps, kept while an agent works."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.plugins.todo.plugin import TodoPlugin

PLUGIN_KIND = "tool"


def create_plugin() -> TodoPlugin:
    """A new instance of the plugin."""
    from shared.plugins.todo.plugin import TodoPlugin

    return TodoPlugin()
