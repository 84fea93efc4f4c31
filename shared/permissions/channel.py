"""Channel: the seam between the approval queue and whoever answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import ClassVar

from shared.cancel import CancelToken
from shared.errors import ConfigError, JaatoError, unknown_name
from shared.permissions.policy import ChannelSettings
from shared.permissions.request import Decision, PermissionRequest


class ChannelFailed(JaatoError):
    """A channel could not get an answer, so the call is denied."""


class Channel(ABC):
    """Asks someone. Whatever it raises means no."""

    name: ClassVar[str]
    #: Whether a second question may be shown while the first one waits.
    one_at_a_time: ClassVar[bool] = True

    def available(self) -> bool:
        """Whether someone can be asked right now."""
        return True

    @abstractmethod
    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        """Get the answer to one request; stop when `ended` fires, because then it is no longer needed."""

    def close(self) -> None:  # noqa: B027 - most channels have nothing to close
        """Answer nothing any more."""


_CHANNELS = {
    "console": "shared.permissions.console:ConsoleChannel",
    "file": "shared.permissions.folder:FileChannel",
    "queue": "shared.permissions.host_queue:QueueChannel",
    "webhook": "shared.permissions.webhook:WebhookChannel",
}


def create_channel(settings: ChannelSettings) -> Channel:
    """The channel that a policy names."""
    if settings.type not in _CHANNELS:
        raise ConfigError(unknown_name("channel", settings.type, _CHANNELS))
    module, _, name = _CHANNELS[settings.type].partition(":")
    made = getattr(import_module(module), name).from_settings(settings)
    assert isinstance(made, Channel)
    return made
