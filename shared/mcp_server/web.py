"""Serving many clients over streamable HTTP, behind a token."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from shared.errors import ConfigError
from shared.mcp_server.edge import Edge
from shared.mcp_server.hub import Hub
from shared.mcp_server.server import SubagentServer
from shared.mcp_server.settings import ServerSettings

PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_MOST_SESSIONS = 256


@dataclass(frozen=True)
class Address:
    """Where the server listens, and the names by which clients may call it."""

    host: str = "127.0.0.1"
    port: int = 8765
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _is_loopback(self.host) and not self.names:
            raise ConfigError(
                f"--host {self.host} is reachable from other machines: say with --allow-host by which name "
                "(and only behind something that encrypts)"
            )


def serve_http(settings: ServerSettings, address: Address, *, token: str, ready: Callable[[str], object]) -> None:
    """Serve until a signal says so; `ready` hears the address as soon as clients can connect."""
    asyncio.run(Hub(settings).check(keep=False))
    with _listen(address) as listener:
        port = listener.getsockname()[1]
        ready(f"http://{_bracketed(address.host)}:{port}{PATH}")
        server = uvicorn.Server(
            uvicorn.Config(
                _app(settings, address, token=token),
                log_config=None,
                access_log=False,
                lifespan="on",
                timeout_graceful_shutdown=1,
            )
        )
        server.run(sockets=[listener])


def _app(settings: ServerSettings, address: Address, *, token: str) -> ASGIApp:
    hub = Hub(settings, token=token)
    server = _WebServer(hub)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=_security(address.host, address.names),
        session_idle_timeout=max(1.0, settings.keep_seconds),
        max_sessions=_MOST_SESSIONS,
    )
    return Edge(app, hub, token=token)


class _WebServer(SubagentServer):
    """Lives as long as the web server: conversations are swept meanwhile and closed at its end."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub)
        self.lifespan = _lifespan(hub)


def _lifespan(hub: Hub) -> Any:
    @asynccontextmanager
    async def live(server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        sweeping = asyncio.get_running_loop().create_task(hub.sweep())
        try:
            yield {}
        finally:
            sweeping.cancel()
            await hub.close()

    return live


def _security(host: str, names: Sequence[str]) -> TransportSecuritySettings:
    """Requests must name us as we are known, and come from no foreign web page."""
    known = [*_LOOPBACK, *names]
    if not _is_wildcard(host):
        known.append(_bracketed(host))
    hosts = [form for name in dict.fromkeys(known) for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{form}" for scheme in ("http", "https") for form in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise ConfigError(f"cannot listen on {address.host}:{address.port}: {error.strerror or error}") from error


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_wildcard(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
