"""WebhookChannel: posts each request to an address and takes the decision from the response."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import urlsplit

from shared.cancel import CancelToken
from shared.errors import ConfigError
from shared.permissions.channel import Channel, ChannelFailed
from shared.permissions.policy import ChannelSettings
from shared.permissions.policy_file import is_http_url
from shared.permissions.reply import MAX_REPLY, read_reply
from shared.permissions.request import Decision, PermissionRequest

TIMEOUT_SECONDS = 300.0


class WebhookChannel(Channel):
    """Only a 200 with a JSON decision says yes; redirects are not followed."""

    name: ClassVar[str] = "webhook"
    one_at_a_time: ClassVar[bool] = False

    def __init__(
        self, endpoint: str, *, timeout_seconds: float = TIMEOUT_SECONDS, headers: Mapping[str, str] | None = None
    ) -> None:
        if not is_http_url(endpoint):
            raise ConfigError(f"webhook channel: expected an http or https URL, got {endpoint!r}")
        self._url = urlsplit(endpoint)
        self._timeout = timeout_seconds
        self._headers = dict(headers or {})
        self._closed = False

    @staticmethod
    def from_settings(settings: ChannelSettings) -> WebhookChannel:
        """The webhook that a policy asks for."""
        return WebhookChannel(
            settings.endpoint or "", timeout_seconds=settings.timeout or TIMEOUT_SECONDS, headers=settings.headers
        )

    def available(self) -> bool:
        """Whether the channel has not been closed."""
        return not self._closed

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        """Post the request and read the decision."""
        if self._closed:
            raise ChannelFailed("the webhook is closed")
        body = json.dumps(request.as_dict(), default=repr).encode()
        connection = self._connection()
        try:
            connection.connect()
            line = connection.sock
            forget = ended.on_cancel(lambda: _hang_up(line))
            try:
                return read_reply(self._post(connection, body), request.id)
            finally:
                forget()
        except TimeoutError as error:
            raise ChannelFailed(f"no answer from {self._url.netloc} within {self._timeout:g} s") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ChannelFailed(f"{self._url.netloc}: {error or type(error).__name__}") from error
        finally:
            connection.close()

    def close(self) -> None:
        """Post nothing any more."""
        self._closed = True

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout)

    def _post(self, connection: http.client.HTTPConnection, body: bytes) -> bytes:
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        connection.request("POST", path, body, {"Content-Type": "application/json", **self._headers})
        response = connection.getresponse()
        if response.status != 200:
            raise ChannelFailed(f"{self._url.netloc} answered with status {response.status}")
        return response.read(MAX_REPLY + 1)


def _hang_up(line: socket.socket) -> None:
    """Wake a thread that is blocked on the socket."""
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
