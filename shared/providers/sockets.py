"""Sockets that a cancel token can wake: the network layer under every provider's HTTP client.

A blocked read, write, connect or TLS handshake ends when another thread shuts its socket down.
A socket is tied to a token only for the length of one such operation, in the thread that performs
it, so a cancel that comes late finds nothing and cannot hurt a pooled connection that meanwhile
serves someone else.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore2

from shared.cancel import CancelToken
from shared.executors.threads import workers

SocketOptions = Iterable[httpcore2.SOCKET_OPTION]
Address = tuple[int, int, int, Any]


class Scope:
    """One call in one thread: its token, and the socket it is blocked on, if any.

    `patience`, once set, shortens the longest silence for the rest of the call.
    """

    __slots__ = ("_lock", "_socket", "patience", "token")

    def __init__(self, token: CancelToken) -> None:
        self.token = token
        self.patience: float | None = None
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def enter(self, sock: socket.socket) -> None:
        """Begin an operation that may block."""
        with self._lock:
            if self.token.is_cancelled:
                raise ConnectionAbortedError("cancelled")
            self._socket = sock

    def leave(self) -> None:
        """End the operation."""
        with self._lock:
            self._socket = None

    def abort(self) -> None:
        """Wake the thread that is blocked, if it is."""
        # The lock makes sure that the owner cannot close the socket (and the system reuse its number) meanwhile.
        with self._lock:
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    # Not SSLSocket.shutdown, which takes the TLS layer away under the owner's hands.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Current(threading.local):
    # Thread-local, not a context variable: a context may be copied into another thread, a scope must not.
    scope: Scope | None = None


_current = _Current()


@contextlib.contextmanager
def cancellable(token: CancelToken) -> Iterator[Scope]:
    """Within this block, network operations of the current thread end at once when the token is cancelled."""
    scope, before = Scope(token), _current.scope
    forget = token.on_cancel(scope.abort)
    _current.scope = scope
    try:
        yield scope
    finally:
        _current.scope = before
        forget()


@contextlib.contextmanager
def _blocked_on(sock: socket.socket) -> Iterator[None]:
    scope = _current.scope
    if scope is None:
        yield
        return
    scope.enter(sock)
    try:
        yield
    finally:
        scope.leave()


def _limited(timeout: float | None) -> float | None:
    patience = _current.scope.patience if _current.scope is not None else None
    if patience is None or timeout is None:
        return timeout if patience is None else patience
    return min(timeout, patience)


@contextlib.contextmanager
def _translated(timed_out: type[Exception], failed: type[Exception]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise timed_out(str(error)) from error
    except OSError as error:  # ssl.SSLError is one
        raise failed(str(error)) from error


class Stream(httpcore2.NetworkStream):
    """A connected socket, plain or TLS."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Up to `max_bytes`, empty at the end."""
        with _translated(httpcore2.ReadTimeout, httpcore2.ReadError), _blocked_on(self._sock):
            self._sock.settimeout(_limited(timeout))
            return self._sock.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it; the timeout is for each step, so that a slow line is not a dead one."""
        view = memoryview(buffer)
        with _translated(httpcore2.WriteTimeout, httpcore2.WriteError), _blocked_on(self._sock):
            self._sock.settimeout(timeout)
            while view:
                view = view[self._sock.send(view) :]

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """The same connection, encrypted."""
        try:
            with _translated(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                if isinstance(self._sock, ssl.SSLSocket):
                    return self._tls_in_tls(self._sock, ssl_context, server_hostname, timeout)
                # The handshake is done apart, because wrapping moves the connection into a new socket object.
                self._sock = ssl_context.wrap_socket(
                    self._sock, server_hostname=server_hostname, do_handshake_on_connect=False
                )
                with _blocked_on(self._sock):
                    self._sock.settimeout(timeout)
                    self._sock.do_handshake()
        except BaseException:
            self.close()
            raise
        return Stream(self._sock)

    def _tls_in_tls(
        self, outer: ssl.SSLSocket, context: ssl.SSLContext, hostname: str | None, timeout: float | None
    ) -> httpcore2.NetworkStream:
        from httpcore2._backends.sync import TLSinTLSStream

        with _blocked_on(outer):
            return _Nested(outer, TLSinTLSStream(outer, context, hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """What the pool asks about a connection."""
        if info == "ssl_object":
            return getattr(self._sock, "_sslobj", None)
        if info == "client_addr":
            return self._sock.getsockname()
        if info == "server_addr":
            return self._sock.getpeername()
        if info == "socket":
            return self._sock
        return _readable(self._sock) if info == "is_readable" else None


class _Nested(httpcore2.NetworkStream):
    """TLS within TLS, for a proxy that is itself reached over TLS."""

    def __init__(self, outer: socket.socket, inner: httpcore2.NetworkStream) -> None:
        self._outer = outer
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _translated(httpcore2.ReadTimeout, httpcore2.ReadError), _blocked_on(self._outer):
            return self._inner.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _translated(httpcore2.WriteTimeout, httpcore2.WriteError), _blocked_on(self._outer):
            self._inner.write(buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class Backend(httpcore2.NetworkBackend):
    """Opens connections whose every blocking step can be cancelled, name resolution included."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: SocketOptions | None = None,
    ) -> httpcore2.NetworkStream:
        """A connection to the first address of the host that answers."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with _translated(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            failure: OSError = OSError(f"{host} has no address")
            for address in _resolve(host, port, timeout):
                try:
                    return Stream(_connect(address, deadline, local_address, socket_options or ()))
                except OSError as error:
                    failure = error
            raise failure


def _resolve(host: str, port: int, timeout: float | None) -> list[Address]:
    with contextlib.suppress(socket.gaierror):
        return _addresses(host, port, socket.AI_NUMERICHOST)
    # The system's resolver cannot be interrupted: it runs on a thread that may be left behind.
    scope = _current.scope
    lookup = workers.submit(lambda: _addresses(host, port, 0))
    if lookup.wait(timeout, cancel=scope.token if scope is not None else None):
        return lookup.result()
    if scope is not None and scope.token.is_cancelled:
        raise ConnectionAbortedError("cancelled")
    raise TimeoutError(f"no answer to the name lookup of {host}")


def _addresses(host: str, port: int, flags: int) -> list[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, kind, protocol, address) for family, kind, protocol, _, address in found]


def _connect(
    address: Address, deadline: float | None, local_address: str | None, options: SocketOptions
) -> socket.socket:
    family, kind, protocol, target = address
    sock = socket.socket(family, kind, protocol)
    try:
        for option in options:
            sock.setsockopt(*option)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if local_address is not None:
            sock.bind((local_address, 0))
        sock.settimeout(_remaining(deadline))
        with _blocked_on(sock):
            sock.connect(target)
    except BaseException:
        sock.close()
        raise
    return sock


def _remaining(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _readable(sock: socket.socket) -> bool:
    import select

    if sock.fileno() < 0:
        return True
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])
