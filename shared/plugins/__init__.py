"""Built-in plugins, one package each, and the names that plugin authors import from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.plugin import CommandCompletion, CommandParameter, PermissionDisplayInfo, ToolPlugin, UserCommand

__all__ = ["CommandCompletion", "CommandParameter", "PermissionDisplayInfo", "ToolPlugin", "UserCommand"]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shared import plugin

    return getattr(plugin, name)
