"""The shared HTTP transport: cancel from another thread, one pool for many threads, errors, retry-after."""

from __future__ import annotations

import email.utils
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.wire import PATIENCE, Answer, Request, WireServer

from shared.cancel import CancelToken
from shared.errors import CancelledException, ConfigError, ConnectionFailed, IncompleteStream
from shared.executors.threads import workers
from shared.providers.base import ProviderConfig
from shared.providers.transport import Lease, cancellable, check_base_url, failure, lease, retry_after


def ok(request: Request) -> Answer:
    return Answer(request.body or b"ok")


@pytest.fixture
def trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[WireServer], None]:
    def trust(server: WireServer) -> None:
        if server.ca_pem:
            (tmp_path / "ca.pem").write_bytes(server.ca_pem)
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

    return trust


@contextmanager
def client_for(url: str, **config: Any) -> Iterator[httpx2.Client]:
    held = lease(ProviderConfig(**config), provider="test", base_url=url, credentials="key")
    try:
        yield held.client
    finally:
        held.release()


def post(client: httpx2.Client, url: str, token: CancelToken, body: bytes = b"x") -> bytes:
    """A whole call, as a provider makes it: transport errors are translated, a cancel first."""
    try:
        with cancellable(token), client.stream("POST", url, content=body) as response:
            return b"".join(response.iter_bytes())
    except httpx2.HTTPError as error:
        raise failure(error, provider="test", url=url, cancel=token) from error


def cancelled_while(blocked: Callable[[], None], call: Callable[[CancelToken], object]) -> None:
    """Start a call that blocks, cancel it from here once it does, and see it end as cancelled."""
    token = CancelToken()
    task = workers.submit(lambda: call(token))
    blocked()
    assert not task.done
    token.cancel("enough")
    assert task.wait(PATIENCE), "the cancel did not wake the call"
    with pytest.raises(CancelledException, match="enough"):
        task.result()


@pytest.mark.parametrize("tls", [False, True], ids=["http", "tls"])
@pytest.mark.parametrize("answer", [Answer(b"x" * 99).mute(), Answer(b"x" * 99).hang(10)], ids=["headers", "body"])
def test_cancel_wakes_a_blocked_read_and_the_pool_stays_usable(
    tls: bool, answer: Answer, trust: Callable[[WireServer], None]
) -> None:
    def handler(request: Request) -> Answer:
        return answer if request.body == b"block" else ok(request)

    with WireServer(handler, tls=tls) as server:
        trust(server)
        with client_for(server.url) as client:
            for n in range(1, 4):
                cancelled_while(lambda: server.wait_hanging(1), lambda token: post(client, server.url, token, b"block"))
                server.wait_hangups(n)
                assert post(client, server.url, CancelToken(), b"again") == b"again"


@pytest.mark.parametrize("tls", [False, True], ids=["http", "tls"])
def test_cancel_wakes_a_blocked_write(tls: bool, trust: Callable[[WireServer], None]) -> None:
    # The peer takes the connection (and the handshake) but never reads the request, so the buffers fill up.
    with WireServer(ok, tls=tls) as server, socket.create_server(("127.0.0.1", 0)) as listener:
        trust(server)
        filled = threading.Event()

        def peer() -> None:
            raw, _ = listener.accept()
            with server._tls.wrap_socket(raw, server_side=True) if server._tls else raw as connection:
                connection.recv(1)
                filled.set()
                finished.wait(PATIENCE)

        finished = threading.Event()
        threading.Thread(target=peer, daemon=True).start()
        url = f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
        with client_for(url) as client:
            cancelled_while(
                lambda: assert_true(filled.wait(PATIENCE)),
                lambda token: post(client, url, token, b"x" * 50_000_000),
            )
        finished.set()


def assert_true(value: object) -> None:
    assert value


def test_cancel_wakes_a_tls_handshake() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"

        def hello_arrived() -> None:
            connection, _ = listener.accept()
            connections.append(connection)
            assert connection.recv(5)[:1] == b"\x16", "that was no TLS hello"

        connections: list[socket.socket] = []
        with client_for(url) as client:
            cancelled_while(hello_arrived, lambda token: post(client, url, token))
        connections[0].close()


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the state of a connect is only visible on Linux")
def test_cancel_wakes_a_tcp_connect() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]  # a full queue leaves the next one waiting for an answer
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        before = connecting(port)
        with client_for(f"http://127.0.0.1:{port}") as client:
            cancelled_while(
                lambda: wait_for(lambda: connecting(port) > before),
                lambda token: post(client, f"http://127.0.0.1:{port}", token),
            )
        for filler in fillers:
            filler.close()


def connecting(port: int) -> int:
    """Sockets of this machine that have asked for a connection to a port and wait for the answer."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "02" for row in rows)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        threading.Event().wait(0.005)


def test_a_token_cancelled_before_the_call_sends_nothing() -> None:
    token = CancelToken()
    token.cancel("never mind")
    with WireServer(ok) as server, client_for(server.url) as client:
        with pytest.raises(CancelledException, match="never mind"):
            post(client, server.url, token)
        assert server.requests == []


def test_two_hundred_threads_share_one_client_without_waiting_for_a_connection() -> None:
    with WireServer(lambda request: Answer(request.body).mute()) as server:
        with client_for(server.url) as client:
            calls = [
                workers.submit(partial(post, client, server.url, CancelToken(), str(n).encode())) for n in range(200)
            ]
            server.wait_hanging(200)  # all of them are on the wire at the same time
            server.release()
            assert [call_result(call) for call in calls] == [str(n).encode() for n in range(200)]
        assert server.peak == 200


def call_result(task: Any) -> Any:
    assert task.wait(PATIENCE)
    return task.result()


def test_a_hundred_blocked_calls_are_cancelled_through_one_parent_token() -> None:
    def handler(request: Request) -> Answer:
        return Answer().mute() if request.body == b"x" else ok(request)

    with WireServer(handler) as server, client_for(server.url) as client:
        parent = CancelToken()
        calls = [workers.submit(lambda: post(client, server.url, parent.child())) for _ in range(100)]
        server.wait_hanging(100)
        parent.cancel()
        for call in calls:
            assert call.wait(PATIENCE)
            with pytest.raises(CancelledException):
                call.result()
        assert post(client, server.url, CancelToken(), b"after") == b"after"


@pytest.mark.parametrize("tls", [False, True], ids=["http", "tls"])
def test_a_late_cancel_never_hurts_a_connection_that_serves_someone_else(
    tls: bool, trust: Callable[[WireServer], None]
) -> None:
    # Half of the callers are cancelled at every possible moment, also just after their call; the others never are,
    # and must not fail once although they share a few connections with the first.
    with WireServer(ok, tls=tls) as server:
        trust(server)
        with client_for(server.url, max_connections=4) as client:
            stop = threading.Event()
            outcomes = {"whole": 0, "cancelled": 0}

            def doomed(seed: int) -> None:
                turn = seed
                while not stop.is_set():
                    turn += 1
                    token = CancelToken()
                    killer = workers.submit(partial(cancel_after, token, turn % 40 / 5000))
                    try:
                        assert post(client, server.url, token, b"doomed") == b"doomed"
                        token.cancel()  # its connection may have a new user by now
                        outcomes["whole"] += 1
                    except CancelledException:
                        outcomes["cancelled"] += 1
                    call_result(killer)

            def steady(count: int) -> int:
                return sum(post(client, server.url, CancelToken(), b"steady") == b"steady" for _ in range(count))

            victims = [workers.submit(partial(doomed, n * 7)) for n in range(3)]
            others = [workers.submit(lambda: steady(150)) for _ in range(3)]
            try:
                assert [call_result(task) for task in others] == [150, 150, 150]
            finally:
                stop.set()
            for task in victims:
                call_result(task)
            assert outcomes["whole"], outcomes
            assert outcomes["cancelled"], outcomes


@pytest.mark.parametrize("tls", [False, True], ids=["http", "tls"])
def test_a_cancel_between_two_reads_leaves_the_next_user_of_the_connection_alone(
    tls: bool, trust: Callable[[WireServer], None]
) -> None:
    def handler(request: Request) -> Answer:
        return Answer(b"whole").hang(2) if request.body == b"second" else ok(request)

    with WireServer(handler, tls=tls) as server:
        trust(server)
        with client_for(server.url, max_connections=1) as client:
            token = CancelToken()
            with cancellable(token):  # the first call is over, but its scope is still open
                assert client.post(server.url, content=b"first").content == b"first"
                second = workers.submit(lambda: post(client, server.url, CancelToken(), b"second"))
                server.wait_hanging(1)
                token.cancel()
            server.release()
            assert call_result(second) == b"whole"
        assert server.connections == 1


def cancel_after(token: CancelToken, seconds: float) -> None:
    token.wait(seconds)
    token.cancel()


def test_a_nested_call_has_its_own_token() -> None:
    def handler(request: Request) -> Answer:
        return Answer(b"x" * 9).hang(3) if request.body == b"outer" else ok(request)

    with WireServer(handler) as server, client_for(server.url) as client:
        outer = CancelToken()
        with cancellable(outer), client.stream("POST", server.url, content=b"outer") as response:
            pieces = response.iter_bytes()
            assert next(pieces) == b"xxx"
            assert post(client, server.url, CancelToken(), b"inner") == b"inner"
            outer.cancel()
            with pytest.raises(httpx2.HTTPError):
                next(pieces)


def test_equal_settings_share_a_client_until_the_last_lease_ends() -> None:
    def take(**overrides: Any) -> Lease:
        arguments = {"provider": "test", "base_url": "http://127.0.0.1:1", "credentials": "a", **overrides}
        return lease(ProviderConfig(), **arguments)

    first, second, other = take(), take(), take(credentials="b")
    assert first.client is second.client
    assert other.client is not first.client
    closed = []
    for held in (first, first, second, other):  # giving the same one back twice counts once
        held.release()
        closed.append((second.client.is_closed, other.client.is_closed))
    assert closed == [(False, False), (False, False), (True, False), (True, True)]


def test_calls_go_through_the_proxy_of_the_environment_and_can_be_cancelled_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with WireServer(lambda request: Answer().mute() if request.body == b"block" else ok(request)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        with client_for("http://model.invalid") as client:
            assert post(client, "http://model.invalid/v1", CancelToken(), b"hi") == b"hi"
            cancelled_while(
                lambda: proxy.wait_hanging(1), lambda token: post(client, "http://model.invalid/v1", token, b"block")
            )
        assert proxy.requests[0].path == "http://model.invalid/v1"


def test_an_unknown_authority_is_named_and_not_retried() -> None:
    with WireServer(ok, tls=True) as server, client_for(server.url) as client:
        with pytest.raises(ConnectionFailed, match="SSL_CERT_FILE") as caught:
            post(client, server.url, CancelToken())
        assert not caught.value.retryable
        assert server.url in str(caught.value)


def test_a_refused_connection_and_an_unknown_host_name_the_url() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        refused = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for url in (refused, "http://no-such-host.invalid"):
        with client_for(url) as client, pytest.raises(ConnectionFailed, match="check the base URL") as caught:
            post(client, url, CancelToken())
        assert url in str(caught.value)
        assert caught.value.retryable


def test_silence_longer_than_the_limit_is_a_failed_connection() -> None:
    with (
        WireServer(lambda _: Answer(b"x" * 9).hang(3)) as server,
        client_for(server.url, timeout_seconds=0.1) as client,
        pytest.raises(ConnectionFailed, match="silent"),
    ):
        post(client, server.url, CancelToken())


def test_patience_shortens_the_silence_of_one_call_only() -> None:
    with WireServer(lambda _: Answer(b"x" * 9).hang(3)) as server, client_for(server.url) as client:
        with cancellable(CancelToken()) as scope, client.stream("POST", server.url) as response:
            pieces = response.iter_bytes()
            assert next(pieces) == b"xxx"
            scope.patience = 0.05
            with pytest.raises(httpx2.ReadTimeout):
                next(pieces)
        server.release()
        assert post(client, server.url, CancelToken()) == b"x" * 9


def test_a_slow_drip_is_not_silence() -> None:
    with WireServer(lambda _: Answer(b"x" * 500).drip(1)) as server, client_for(server.url) as client:
        assert post(client, server.url, CancelToken()) == b"x" * 500


def test_a_broken_answer_is_incomplete_and_a_cancel_explains_everything_else() -> None:
    error = httpx2.RemoteProtocolError("peer\nclosed")
    found = failure(error, provider="p", url="http://x", streaming=True)
    assert isinstance(found, IncompleteStream)
    assert "\n" not in str(found)
    token = CancelToken()
    token.cancel("stop")
    assert isinstance(failure(error, provider="p", url="http://x", cancel=token), CancelledException)


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://host", "http://", "http://[::1", "https:///path"])
def test_a_base_url_that_is_none_is_refused_with_its_source(url: str) -> None:
    with pytest.raises(ConfigError, match="SOME_VARIABLE"):
        check_base_url(url, source="SOME_VARIABLE")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": " 1.5 "}, 1.5),
        ({"retry-after": "250ms"}, 0.25),
        ({"retry-after": "3s"}, 3.0),
        ({"retry-after-ms": "1200", "retry-after": "9"}, 1.2),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_in_every_notation(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_takes_a_date_in_the_future() -> None:
    wait = retry_after({"retry-after": email.utils.formatdate(time.time() + 100, usegmt=True)})
    assert wait is not None
    assert 90 < wait <= 100


def test_the_provider_seam_alone_loads_no_http_library() -> None:
    code = "import sys, shared.providers.base, shared.cancel; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0


def test_tls_with_a_private_authority_works_through_the_usual_variable(trust: Callable[[WireServer], None]) -> None:
    with WireServer(ok, tls=True) as server:
        trust(server)
        with client_for(server.url) as client:
            assert post(client, server.url, CancelToken(), b"secret") == b"secret"
