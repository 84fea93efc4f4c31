"""All channels under one name, for hosts that make their own."""

from __future__ import annotations

from shared.permissions.channel import Channel, ChannelFailed, create_channel
from shared.permissions.console import ConsoleChannel
from shared.permissions.folder import FileChannel
from shared.permissions.host_queue import QueueChannel
from shared.permissions.webhook import WebhookChannel

__all__ = [
    "Channel",
    "ChannelFailed",
    "ConsoleChannel",
    "FileChannel",
    "QueueChannel",
    "WebhookChannel",
    "create_channel",
]
