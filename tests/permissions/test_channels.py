"""Queue, webhook and file channels: only a clear yes is a yes."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.permission_calls import WRITE, Asking, caller, outcome, until

from shared.cancel import CancelToken
from shared.errors import ConfigError
from shared.permissions import PermissionBroker, Policy, build_gate
from shared.permissions.channels import FileChannel, QueueChannel, WebhookChannel, create_channel
from shared.permissions.policy import ChannelSettings

# -- webhook -------------------------------------------------------------------------------------------------------

Reply = Callable[[BaseHTTPRequestHandler, dict[str, Any]], object]


class Hook:
    """A loopback server that answers as it is told and keeps what it was sent."""

    def __init__(self) -> None:
        hook = self
        self.received: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Reply = lambda handler, body: send(handler, {"decision": "allow"})

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.headers.append(dict(self.headers))
                hook.received.append(body)
                hook.reply(self, body)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/ask?x=1"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


def send(handler: BaseHTTPRequestHandler, body: Any, *, status: int = 200) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_webhook_is_sent_everything_and_its_answer_counts(hook: Hook) -> None:
    broker = build_gate({"channel": {"type": "webhook", "endpoint": hook.url, "headers": {"X-Token": "t"}}})
    assert outcome(broker, WRITE, {"path": "a"}, caller("a1", path="main \u203a a1")) == "yes"
    sent = hook.received[0]
    assert (sent["tool"], sent["arguments"], sent["agent"]["path"]) == ("write_file", {"path": "a"}, "main \u203a a1")
    assert hook.headers[0]["X-Token"] == "t"
    hook.reply = lambda handler, body: send(handler, {"decision": "deny", "reason": "no way"})
    assert "no way" in outcome(broker, WRITE, {})
    hook.reply = lambda handler, body: send(handler, {"decision": "allow_session", "request_id": body["id"]})
    assert outcome(broker, WRITE, {"path": "b"}) == "yes"
    assert until(lambda: broker.evaluate(WRITE, {"path": "b"}).action == "allow")


BAD_REPLIES: list[Reply] = [
    lambda handler, body: send(handler, {"decision": "allow"}, status=201),
    lambda handler, body: send(handler, {"decision": "allow"}, status=302),
    lambda handler, body: send(handler, {"decision": "allow"}, status=500),
    lambda handler, body: send(handler, b"allow"),
    lambda handler, body: send(handler, b""),
    lambda handler, body: send(handler, b"\xff\xfe"),
    lambda handler, body: send(handler, b'"allow"'),
    lambda handler, body: send(handler, {"allow": True}),
    lambda handler, body: send(handler, {"decision": True}),
    lambda handler, body: send(handler, {"decision": "sure"}),
    lambda handler, body: send(handler, {"decision": "allow", "request_id": "another"}),
    lambda handler, body: send(handler, b'{"decision": "allow"}' + b" " * 100_000),
    lambda handler, body: send(handler, b"[" * 50_000),
    lambda handler, body: handler.wfile.write(b"garbage\r\n\r\n"),
    lambda handler, body: handler.connection.shutdown(socket.SHUT_RDWR),
]


@pytest.mark.parametrize("reply", BAD_REPLIES)
def test_anything_but_a_clear_yes_denies(hook: Hook, reply: Reply) -> None:
    hook.reply = reply
    assert "webhook channel failed" in outcome(build_gate("ask", channel=WebhookChannel(hook.url)), WRITE, {})


def test_a_webhook_that_is_not_there_or_silent_denies(hook: Hook) -> None:
    silent = threading.Event()
    hook.reply = lambda handler, body: silent.wait(20)
    try:
        slow = build_gate("ask", channel=WebhookChannel(hook.url, timeout_seconds=0.1))
        assert "within 0.1 s" in outcome(slow, WRITE, {})
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/"
            assert "channel failed" in outcome(build_gate("ask", channel=WebhookChannel(nobody)), WRITE, {})
    finally:
        silent.set()


def test_cancel_hangs_up_on_a_silent_webhook(hook: Hook) -> None:
    gone = threading.Event()

    def wait_for_hang_up(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if handler.connection.recv(1) == b"":
            gone.set()

    hook.reply = wait_for_hang_up
    token = CancelToken()
    asking = Asking(build_gate("ask", channel=WebhookChannel(hook.url)), WRITE, {}, caller(cancel=token))
    until(lambda: hook.received)
    token.cancel()
    assert asking.join() == "cancelled"
    assert gone.wait(20)


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "not a url", "http://[", "file:///etc/passwd"])
def test_a_webhook_needs_an_address(url: str) -> None:
    with pytest.raises(ConfigError, match="http"):
        WebhookChannel(url)


# -- file ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "asks"


def ask(folder: Path, **options: Any) -> tuple[PermissionBroker, Asking, Path]:
    broker = PermissionBroker(Policy(), channel=FileChannel(folder, poll_seconds=0.01), **options)
    asking = Asking(broker, WRITE, {"path": "a"})
    request: Path = until(lambda: list(folder.glob("*.request.json")))[0]
    return broker, asking, request


def respond(request: Path, data: bytes) -> None:
    draft = request.with_name("mine.tmp")
    draft.write_bytes(data)
    os.replace(draft, request.with_name(request.name.replace(".request.", ".response.")))


def test_a_request_file_is_private_and_its_answer_counts(folder: Path) -> None:
    _, asking, request = ask(folder)
    assert request.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    sent = json.loads(request.read_text())
    assert (sent["tool"], request.name) == ("write_file", f"{sent['id']}.request.json")
    respond(request, json.dumps({"decision": "allow", "request_id": sent["id"]}).encode())
    assert asking.join() == "yes"
    until(lambda: os.listdir(folder) == [])


@pytest.mark.parametrize(
    "data", [b"allow", b"{}", b'{"decision": "perhaps"}', b'{"decision": "allow", "id": "x"}', b"x" * 100_000, b"\xff"]
)
def test_a_bad_answer_file_denies(folder: Path, data: bytes) -> None:
    _, asking, request = ask(folder)
    respond(request, data)
    assert "file channel failed" in asking.join()
    until(lambda: os.listdir(folder) == [])


def test_a_link_or_folder_is_no_answer(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "yes.json").write_text('{"decision": "allow"}')
    _, asking, request = ask(folder)
    request.with_name(request.name.replace("request", "response")).symlink_to(tmp_path / "yes.json")
    assert "file channel failed" in asking.join()
    _, asking, request = ask(folder)
    request.with_name(request.name.replace("request", "response")).mkdir()
    assert "file channel failed" in asking.join()


def test_a_half_written_answer_is_read_again(folder: Path) -> None:
    _, asking, request = ask(folder)
    answer = request.with_name(request.name.replace(".request.", ".response."))
    with answer.open("wb", buffering=0) as file:
        file.write(b'{"decision": ')
        file.write(b'"allow"}')
    assert asking.join() == "yes"


def test_a_folder_that_others_may_write_proves_nothing(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    assert "others" in outcome(build_gate("ask", channel=FileChannel(folder)), WRITE, {})
    assert os.listdir(folder) == []


def test_a_folder_that_cannot_be_made_denies(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "channel failed" in outcome(build_gate("ask", channel=FileChannel(tmp_path / "file" / "x")), WRITE, {})


def test_timeout_cancel_and_close_clear_the_folder(folder: Path) -> None:
    _, asking, _ = ask(folder, ttl_seconds=0.3)
    assert "timed out" in asking.join()
    until(lambda: os.listdir(folder) == [])
    broker, asking, _ = ask(folder)
    broker.close()
    assert "closed" in asking.join()
    until(lambda: os.listdir(folder) == [])


# -- making them ---------------------------------------------------------------------------------------------------


def test_channels_are_made_from_settings(tmp_path: Path) -> None:
    assert isinstance(create_channel(ChannelSettings("queue")), QueueChannel)
    assert isinstance(create_channel(ChannelSettings("file", str(tmp_path))), FileChannel)
    assert isinstance(create_channel(ChannelSettings("webhook", "http://localhost/")), WebhookChannel)
    assert create_channel(ChannelSettings("console")).name == "console"
    with pytest.raises(ConfigError, match="Did you mean 'queue'"):
        create_channel(ChannelSettings("queu"))


def test_a_queue_calls_back_and_skips_what_is_over() -> None:
    seen: list[str] = []
    queue = QueueChannel(on_request=lambda request: seen.append(request.tool))
    broker = build_gate("ask", channel=queue)
    token = CancelToken()
    first = Asking(broker, WRITE, {}, caller(cancel=token))
    until(lambda: seen == ["write_file"])
    token.cancel()
    assert first.join() == "cancelled"
    second = Asking(broker, WRITE, {"second": True})
    until(lambda: len(seen) == 2)
    request = until(lambda: (found := queue.next(1)) and found.arguments and found)
    assert queue.answer(request.id, "y") is True
    assert queue.answer(request.id, "y") is False
    assert second.join() == "yes"
