"""The HTTP client under all providers: one pool per credentials, cancellable calls, errors in our words."""

from __future__ import annotations

import email.utils
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx2

from shared.cancel import CancelToken
from shared.errors import CancelledException, ConfigError, ConnectionFailed, IncompleteStream
from shared.providers.base import ProviderConfig
from shared.providers.sockets import Backend, Scope, cancellable
from shared.types import TokenUsage

__all__ = ["Lease", "Scope", "cancellable", "check_base_url", "failure", "lease", "one_line", "retry_after", "timeouts"]

KEEPALIVE_SECONDS = 30.0  # a tool call between two model calls should not cost a new TLS handshake
WRITE_SECONDS = 60.0
LONGEST_TEXT = 600

_Key = tuple[Any, ...]
_lock = threading.Lock()
_clients: dict[_Key, tuple[httpx2.Client, int]] = {}


class Lease:
    """A share in a client; the last one to be released closes its connections."""

    def __init__(self, key: _Key, client: httpx2.Client) -> None:
        self._key = key
        self._released = False
        self.client = client

    def release(self) -> None:
        """Give the share back; doing so twice is harmless."""
        with _lock:
            if self._released:
                return
            self._released = True
            client, count = _clients[self._key]
            if count > 1:
                _clients[self._key] = (client, count - 1)
                return
            del _clients[self._key]
        client.close()


def lease(config: ProviderConfig, *, provider: str, base_url: str, credentials: str) -> Lease:
    """The process-wide client for one provider, address and credentials.

    Proxies and certificates come from the usual environment variables (HTTPS_PROXY, NO_PROXY,
    SSL_CERT_FILE, SSL_CERT_DIR).
    """
    key: _Key = (
        provider,
        base_url,
        credentials,
        config.timeout_seconds,
        config.connect_timeout_seconds,
        config.max_connections,
    )
    with _lock:
        if key in _clients:
            client, count = _clients[key]
            _clients[key] = (client, count + 1)
            return Lease(key, client)
    fresh = _new_client(config)  # reads certificates: not under the lock
    with _lock:
        client, count = _clients.get(key, (fresh, 0))
        _clients[key] = (client, count + 1)
    if client is not fresh:
        fresh.close()
    return Lease(key, client)


def timeouts(config: ProviderConfig) -> httpx2.Timeout:
    """The limits of silence on the wire; SDKs that set their own are given this one."""
    return httpx2.Timeout(
        connect=config.connect_timeout_seconds,
        read=config.timeout_seconds,
        write=min(WRITE_SECONDS, config.timeout_seconds),
        pool=config.connect_timeout_seconds,
    )


def _new_client(config: ProviderConfig) -> httpx2.Client:
    client = httpx2.Client(
        timeout=timeouts(config),
        limits=httpx2.Limits(
            max_connections=config.max_connections,
            max_keepalive_connections=config.max_connections,
            keepalive_expiry=KEEPALIVE_SECONDS,
        ),
        follow_redirects=True,
    )
    backend = Backend()
    # httpx2 has no public way to give the network layer to a client that still honours proxy variables.
    for transport in (client._transport, *client._mounts.values()):
        if isinstance(transport, httpx2.HTTPTransport):
            transport._pool._network_backend = backend
    return client


def check_base_url(url: str, *, source: str) -> str:
    """The URL without a trailing slash; a ConfigError if it is none."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ConfigError(f"{source} '{url}' is not a URL: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigError(f"{source} '{url}' is not a web address: it should look like https://host[:port][/path]")
    return url.rstrip("/")


def failure(
    error: BaseException,
    *,
    provider: str,
    url: str,
    cancel: CancelToken | None = None,
    streaming: bool = False,
    usage: TokenUsage | None = None,
) -> ConnectionFailed | CancelledException:
    """What to raise for a transport error: a cancel first of all, because it looks like a dropped line.

    `streaming` says that the answer had begun. SDK exceptions are looked through for their cause.
    """
    if cancel is not None and cancel.is_cancelled:
        return CancelledException(cancel.reason)
    cause = _root(error)
    if streaming and not isinstance(cause, httpx2.TimeoutException):
        text = f"{provider}: the answer from {url} broke off: {one_line(cause)}"
        return IncompleteStream(text, provider=provider, usage=usage)
    found = ConnectionFailed(f"{provider}: {_explain(cause, url)}", provider=provider, usage=usage)
    if _is_certificate(cause):
        found.retryable = False
    return found


def _explain(cause: BaseException, url: str) -> str:
    if _is_certificate(cause):
        return (
            f"the certificate of {url} was not accepted: {one_line(cause)}; "
            "set SSL_CERT_FILE if a private authority signed it"
        )
    if isinstance(cause, httpx2.ConnectTimeout):
        return f"no connection to {url} in time; check the base URL, the network and any proxy"
    if isinstance(cause, httpx2.PoolTimeout):
        return f"all connections to {url} are in use; raise max_connections or run fewer sessions at once"
    if isinstance(cause, httpx2.TimeoutException):
        return f"{url} stayed silent for too long; raise timeout_seconds if it needs more time"
    if isinstance(cause, httpx2.ConnectError | httpx2.ProxyError | httpx2.UnsupportedProtocol):
        return f"cannot connect to {url}: {one_line(cause)}; check the base URL, the network and any proxy"
    return f"the connection to {url} failed: {one_line(cause)}"


def _root(error: BaseException) -> BaseException:
    """The httpx2 exception inside an SDK's, or the error itself."""
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, httpx2.HTTPError):
            return current
        current = current.__cause__ or current.__context__
    return error


def _is_certificate(error: BaseException) -> bool:
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, ssl.SSLCertVerificationError):
            return True
        current = current.__cause__ or current.__context__
    return False


def one_line(value: object) -> str:
    """A text for an error message: one line, of bearable length, never empty."""
    text = " ".join(str(value).split()) or type(value).__name__
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds a service asks to wait: `retry-after-ms`, `retry-after` as seconds or as a date."""
    lower = {name.lower(): value for name, value in headers.items()}
    if (milliseconds := _number(lower.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = lower.get("retry-after")
    if value is None:
        return None
    if (seconds := _number(value.strip().removesuffix("ms"))) is not None:
        return seconds / 1000 if value.strip().endswith("ms") else seconds
    if (seconds := _number(value.strip().removesuffix("s"))) is not None:
        return seconds
    parsed = email.utils.parsedate_tz(value)
    return max(0.0, email.utils.mktime_tz(parsed) - time.time()) if parsed is not None else None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
