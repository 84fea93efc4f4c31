"""The `file_edit` plugin: read, write, edit, list and search files of the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.plugins.file_edit.plugin import FileEditPlugin

PLUGIN_KIND = "tool"


def create_plugin() -> FileEditPlugin:
    """A new instance of the plugin."""
    from shared.plugins.file_edit.plugin import FileEditPlugin

    return FileEditPlugin()
