"""jaato-subagent: delegation you can trust for tool-calling models.

Names are loaded when they are first used, so that `import shared` is quick, opens nothing and
imports no vendor SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.cancel import CancelToken as CancelToken
    from shared.client import JaatoClient as JaatoClient
    from shared.errors import CancelledException as CancelledException
    from shared.errors import JaatoError as JaatoError
    from shared.ledger import TokenLedger as TokenLedger
    from shared.plugin import CommandCompletion as CommandCompletion
    from shared.plugin import CommandParameter as CommandParameter
    from shared.plugin import Plugin as Plugin
    from shared.plugin import ToolPlugin as ToolPlugin
    from shared.plugin import UserCommand as UserCommand
    from shared.providers.base import ModelSettings as ModelSettings
    from shared.providers.base import ProviderConfig as ProviderConfig
    from shared.registry import PluginRegistry as PluginRegistry
    from shared.runtime import JaatoRuntime as JaatoRuntime
    from shared.session import JaatoSession as JaatoSession
    from shared.toolbox import ToolOutput as ToolOutput
    from shared.tools import ToolContext as ToolContext
    from shared.tools import tool as tool
    from shared.types import Attachment as Attachment
    from shared.types import FinishReason as FinishReason
    from shared.types import FunctionCall as FunctionCall
    from shared.types import Message as Message
    from shared.types import Part as Part
    from shared.types import ProviderResponse as ProviderResponse
    from shared.types import Role as Role
    from shared.types import TokenUsage as TokenUsage
    from shared.types import ToolResult as ToolResult
    from shared.types import ToolSchema as ToolSchema

__version__ = "0.1.0"

_HOMES = {
    "cancel": ("CancelToken",),
    "client": ("JaatoClient",),
    "errors": ("CancelledException", "JaatoError"),
    "ledger": ("TokenLedger",),
    "plugin": ("CommandCompletion", "CommandParameter", "Plugin", "ToolPlugin", "UserCommand"),
    "providers.base": ("ModelSettings", "ProviderConfig"),
    "registry": ("PluginRegistry",),
    "runtime": ("JaatoRuntime",),
    "session": ("JaatoSession",),
    "toolbox": ("ToolOutput",),
    "tools": ("ToolContext", "tool"),
    "types": (
        "Attachment",
        "FinishReason",
        "FunctionCall",
        "Message",
        "Part",
        "ProviderResponse",
        "Role",
        "TokenUsage",
        "ToolResult",
        "ToolSchema",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'shared' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"shared.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
