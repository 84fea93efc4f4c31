"""A loopback HTTP/1.1 server for wire tests: records requests, plays scripted answers, injects faults.

    server = WireServer(Script(anthropic_wire.render, Reply(text="hi"), Answer(status=529)))
    with server:                       # or WireServer(handler, tls=True, max_concurrent=5)
        ... talk to server.url ...
    server.requests[0].json["model"]

A handler is any function from `Request` to `Answer`. `Script` is a handler that plays steps in order;
a step is a `Reply` (neutral, given to the format's renderer), an `Answer`, or a handler.
Faults are fields of `Answer`, counted in body bytes:

    Answer(body).cut(40)      ends cleanly after 40 bytes (a stream without its closing event)
    Answer(body).drop(40)     the connection breaks after 40 bytes
    Answer(body).hang(40)     silence after 40 bytes, until server.release() or the client goes away
    Answer(body).drip(7)      arrives in pieces of 7 bytes, each its own packet
    Answer().mute()           not even headers, until server.release() or the client goes away
    Answer(delay=0.05)        answers after a while, as a model would

To wait for the right moment without sleeping: `server.wait_requests(n)`, `server.wait_hanging(n)`,
`server.wait_hangups(n)` (clients that went away while the server was silent).
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer as _TCPServer
from socketserver import ThreadingMixIn
from typing import Any, Literal

PATIENCE = 60.0  # a wait of this length means that the test is broken


@dataclass(frozen=True)
class Call:
    """A tool call in a neutral reply; `raw_args`, when given, is sent instead of the JSON of `args`."""

    id: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    raw_args: str | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of a neutral reply; `input` excludes what came from or went to the cache."""

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_write: int = 0
    thinking: int = 0


@dataclass(frozen=True)
class Reply:
    """What the model says, before a format gives it a shape. `finish` None follows from `calls`."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thought: str = ""
    signature: str = ""
    redacted: str = ""
    usage: Usage = Usage()
    finish: Literal["stop", "tool_use", "max_tokens", "refusal"] | str | None = None

    @property
    def finish_reason(self) -> str:
        """The neutral reason why the reply ends."""
        return self.finish or ("tool_use" if self.calls else "stop")


@dataclass(frozen=True)
class Request:
    """One recorded request; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int  # number of the connection it came over

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What goes back for one request, faults included."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    delay: float = 0.0
    piece: int | None = None
    cut_at: int | None = None
    drop_at: int | None = None
    hang_at: int | None = None
    silent: bool = False

    @staticmethod
    def of_json(value: Any, status: int = 200, **headers: str) -> Answer:
        """A JSON answer; underscores in header names become dashes."""
        return Answer(json.dumps(value).encode(), status, {k.replace("_", "-"): v for k, v in headers.items()})

    @staticmethod
    def of_events(body: bytes) -> Answer:
        """A stream of server-sent events."""
        return Answer(body, content_type="text/event-stream")

    def cut(self, at: int) -> Answer:
        """The same, ended cleanly after `at` bytes."""
        return replace(self, cut_at=at)

    def drop(self, at: int) -> Answer:
        """The same, broken off after `at` bytes."""
        return replace(self, drop_at=at)

    def hang(self, at: int) -> Answer:
        """The same, silent after `at` bytes until released."""
        return replace(self, hang_at=at)

    def drip(self, piece: int) -> Answer:
        """The same, in pieces of this many bytes."""
        return replace(self, piece=piece)

    def mute(self) -> Answer:
        """The same, but nothing at all is sent until released."""
        return replace(self, silent=True)


Handler = Callable[[Request], Answer]
Renderer = Callable[[Reply, Request], Answer]
Step = Reply | Answer | Handler


class Script:
    """A handler that plays its steps in order; the last one is repeated when `repeat` is set."""

    def __init__(self, render: Renderer, *steps: Step, repeat: bool = False) -> None:
        self._render = render
        self._steps = list(steps)
        self._repeat = repeat
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            if not self._steps:
                return Answer.of_json({"error": {"message": "the script has no more steps"}}, 418)
            step = self._steps[0] if self._repeat and len(self._steps) == 1 else self._steps.pop(0)
        if isinstance(step, Reply):
            return self._render(step, request)
        return step if isinstance(step, Answer) else step(request)


class WireServer:
    """Serves one handler on a free loopback port, one thread per connection."""

    def __init__(
        self,
        handler: Handler,
        *,
        tls: bool = False,
        max_concurrent: int | None = None,
        refusal: Answer | None = None,
    ) -> None:
        self.handler = handler
        self.requests: list[Request] = []
        self.refused = self.in_flight = self.peak = self.connections = self.hanging = self.hangups = 0
        self.ca_pem: bytes = b""
        self.max_concurrent = max_concurrent
        self._refusal = refusal or Answer.of_json({"error": {"type": "rate_limit_error", "message": "busy"}}, 429)
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._wake_read, self._wake_write = socket.socketpair()
        self._tls = self._tls_context() if tls else None
        self._server = _Listener(self)
        self.port: int = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> WireServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), name="wire", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.release()
        self.drop_connections()

    def release(self) -> None:
        """End every silence, now and later."""
        self._wake_write.close()  # the other end becomes readable, for good

    def drop_connections(self) -> None:
        """Break every open connection, idle ones too."""
        with self._changed:
            connections = list(self._open)
        for connection in connections:
            _break(connection)

    def wait_requests(self, count: int) -> None:
        """Block until that many requests have arrived."""
        self._await(lambda: len(self.requests) >= count, f"{count} requests")

    def wait_hanging(self, count: int) -> None:
        """Block until that many answers are silent."""
        self._await(lambda: self.hanging >= count, f"{count} silent answers")

    def wait_hangups(self, count: int) -> None:
        """Block until that many clients went away during a silence."""
        self._await(lambda: self.hangups >= count, f"{count} clients gone")

    def wait_idle(self) -> None:
        """Block until no request is being answered."""
        self._await(lambda: self.in_flight == 0, "no request in flight")

    def _await(self, met: Callable[[], bool], what: str) -> None:
        with self._changed:
            assert self._changed.wait_for(met, PATIENCE), f"the server never saw {what}"

    def _tls_context(self) -> ssl.SSLContext:
        import trustme

        authority = trustme.CA()
        self.ca_pem = authority.cert_pem.bytes()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        return context

    def _silence(self, connection: socket.socket, seconds: float | None) -> bool:
        """Say nothing for a time, or until released; False if the client went away meanwhile."""
        forever = seconds is None
        with self._changed:
            self.hanging += forever
            self._changed.notify_all()
        watched: list[socket.socket] = [connection, self._wake_read]
        ready, _, _ = select.select(watched, [], [], seconds)
        gone = connection in ready
        with self._changed:
            self.hanging -= forever
            self.hangups += gone
            self._changed.notify_all()
        return not gone

    def _begin(self, request: Request) -> bool:
        with self._changed:
            self.requests.append(request)
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
            allowed = self.max_concurrent is None or self.in_flight <= self.max_concurrent
            self.refused += not allowed
            self._changed.notify_all()
            return allowed

    def _end(self) -> None:
        with self._changed:
            self.in_flight -= 1
            self._changed.notify_all()


class _Listener(ThreadingMixIn, _TCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 1024

    def __init__(self, wire: WireServer) -> None:
        self.wire = wire
        super().__init__(("127.0.0.1", 0), _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that break off are the point of these tests."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def setup(self) -> None:
        wire = self.server.wire
        if wire._tls is not None:
            self.request = wire._tls.wrap_socket(self.request, server_side=True)
        with wire._changed:
            wire.connections += 1
            self._number = wire.connections
            wire._open.add(self.request)
        super().setup()

    def finish(self) -> None:
        with self.server.wire._changed:
            self.server.wire._open.discard(self.request)
        super().finish()
        if self.server.wire._tls is not None:  # the listener knows only the raw socket, which is detached by now
            self.request.close()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body, self._number)
        wire = self.server.wire
        allowed = wire._begin(request)
        try:
            self._answer(wire.handler(request) if allowed else wire._refusal)
        except (OSError, ssl.SSLError):
            self.close_connection = True
        finally:
            wire._end()

    do_GET = do_POST  # noqa: N815

    def _answer(self, answer: Answer) -> None:
        wire = self.server.wire
        if (answer.silent and not wire._silence(self.request, None)) or (
            answer.delay and not wire._silence(self.request, answer.delay)
        ):
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in {"content-type": answer.content_type, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        body = answer.body if answer.cut_at is None else answer.body[: answer.cut_at]
        if answer.hang_at is not None:
            self._send(body[: answer.hang_at], answer.piece)
            if not wire._silence(self.request, None):
                self.close_connection = True
                return
        sent = answer.hang_at or 0
        if answer.drop_at is not None:
            self._send(body[sent : answer.drop_at], answer.piece)
            self.close_connection = True
            _break(self.request)
            return
        self._send(body[sent:], answer.piece)
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, data: bytes, piece: int | None) -> None:
        step = piece or len(data) or 1
        for start in range(0, len(data), step):
            chunk = data[start : start + step]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))

    def log_message(self, *_: object) -> None:
        """Tests read `requests`, not a log."""


def _break(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # gone already
        connection.shutdown(socket.SHUT_RDWR)


def sse(events: Sequence[tuple[str | None, Any]]) -> bytes:
    """Server-sent events: pairs of event name (None for none) and data (text as it is, else JSON)."""
    lines: list[str] = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        lines.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
    return "".join(lines).encode()
