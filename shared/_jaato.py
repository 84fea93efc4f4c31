"""The module `jaato`: the names that published jaato plugins import, from where they live here."""

from shared.client import JaatoClient
from shared.plugin import CommandCompletion, CommandParameter, PermissionDisplayInfo, ToolPlugin, UserCommand
from shared.registry import PluginRegistry
from shared.types import (
    Attachment,
    FinishReason,
    FunctionCall,
    Message,
    Part,
    ProviderResponse,
    Role,
    TokenUsage,
    ToolResult,
    ToolSchema,
)

__version__ = "1.0.0"  # of the interface, which plugins ask for as jaato>=1.0.0

__all__ = [
    "Attachment",
    "CommandCompletion",
    "CommandParameter",
    "FinishReason",
    "FunctionCall",
    "JaatoClient",
    "Message",
    "Part",
    "PermissionDisplayInfo",
    "PluginRegistry",
    "ProviderResponse",
    "Role",
    "TokenUsage",
    "ToolPlugin",
    "ToolResult",
    "ToolSchema",
    "UserCommand",
]
