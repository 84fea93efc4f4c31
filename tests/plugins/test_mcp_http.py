"""The plugin `mcp` against servers over HTTP on the loopback interface."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.mcp_hosts import open_files, web_server
from support.mcp_legacy_web import LegacyWebServer

from shared.cancel import CancelToken
from shared.errors import CancelledException, ToolError
from shared.plugins.mcp import McpPlugin, create_plugin
from shared.tools import ToolContext

Begin = Callable[..., McpPlugin]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Start plugins on given servers, and shut them down at the end."""
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / "no-home"))
    made: list[McpPlugin] = []

    def start(entry: dict[str, Any], **config: Any) -> McpPlugin:
        plugin = create_plugin()
        made.append(plugin)
        plugin.initialize({"workspace": str(tmp_path), "servers": {"w": entry}, "wait_seconds": 30, **config})
        return plugin

    yield start
    for plugin in made:
        plugin.shutdown()


def call(plugin: McpPlugin, tool: str, *, cancel: CancelToken | None = None, output: Any = None, **args: Any) -> Any:
    found = next(each for each in plugin.tools() if each.name == tool)
    return found.invoke(args, ToolContext("main", cancel or CancelToken(), output=output or (lambda text: None)))


@pytest.mark.parametrize(
    ("kind", "transport", "options"),
    [("http", "http", []), ("streamable-http", "http", ["--json"]), ("sse", "sse", [])],
)
def test_list_and_call_from_many_threads(begin: Begin, kind: str, transport: str, options: list[str]) -> None:
    with web_server(*options, transport=transport) as server, ThreadPoolExecutor(50) as pool:
        plugin = begin({"type": kind, "url": server.url})
        answers = list(pool.map(lambda n: call(plugin, "w__add", a=n, b=1).result, range(60)))
        assert answers == [str(n + 1) for n in range(60)]
        assert call(plugin, "w__picture").attachments[0].mime_type == "image/png"
        plugin.shutdown()


def test_headers_carry_the_token_from_the_environment(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "s3cret")
    with web_server("--token=s3cret") as server:
        plugin = begin({"url": server.url, "headers": {"Authorization": "Bearer ${SERVICE_TOKEN}"}})
        assert call(plugin, "w__add", a=1, b=2).result == "3"
        refused = begin({"url": server.url, "headers": {"Authorization": "Bearer guess"}})
        assert refused.tools() == []
        assert "HTTP 401" in refused.status()[0].error
        assert "guess" not in repr(refused.status())


def test_a_path_that_is_not_there(begin: Begin) -> None:
    with web_server() as server:
        plugin = begin({"url": server.url + "/nowhere"})
        assert plugin.tools() == []
        assert "HTTP 404" in plugin.status()[0].error


def test_cancel_reaches_the_server_and_leaves_the_session(begin: Begin) -> None:
    with web_server() as server:
        plugin = begin({"url": server.url})
        token = CancelToken()
        with pytest.raises(CancelledException):
            call(plugin, "w__block", cancel=token, output=lambda text: token.cancel("enough"))
        assert call(plugin, "w__wait_for_cancel").result == "cancelled"


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_server_that_goes_and_comes_back(begin: Begin, transport: str) -> None:
    started = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with web_server(transport=transport) as first:
            plugin = begin({"url": first.url, "type": transport})
            future = pool.submit(call, plugin, "w__block", output=lambda text: started.set())
            assert started.wait(30)
            first.kill()
            with pytest.raises(ToolError):
                future.result(30)
        with pytest.raises(ToolError):
            call(plugin, "w__add", a=1, b=1)
        with pytest.raises(ToolError, match=r"cannot reach http://127\.0\.0\.1"):
            call(plugin, "w__add", a=1, b=1)
        with web_server(transport=transport, port=first.port):
            assert call(plugin, "w__add", a=1, b=1).result == "2"


def test_a_forgotten_session_is_opened_anew_and_the_call_sent_again(begin: Begin) -> None:
    with LegacyWebServer() as server:
        plugin = begin({"url": server.url})
        assert call(plugin, "w__echo", text="one").result == "one"
        server.sessions.clear()
        assert call(plugin, "w__echo", text="two").result == "two"
        assert server.ran == ["one", "two"]
        server.broken = True
        with pytest.raises(ToolError, match="HTTP 500"):
            call(plugin, "w__echo", text="three")


def test_changed_tools_are_announced(begin: Begin) -> None:
    with web_server() as server:
        plugin = begin({"url": server.url})
        changed = threading.Event()
        plugin.tools()
        plugin.on_tools_changed.append(changed.set)
        call(plugin, "w__grow")
        assert changed.wait(30)
        assert call(plugin, "w__extra").result == "late"


def test_shutdown_closes_all_connections(begin: Begin) -> None:
    with web_server() as server:
        plugin = begin({"url": server.url})
        assert call(plugin, "w__add", a=1, b=1).result == "2"
        plugin.shutdown()
        files = open_files()
        plugin.initialize({"workspace": "/", "servers": {"w": {"url": server.url}}, "wait_seconds": 30})
        assert call(plugin, "w__add", a=1, b=1).result == "2"
        plugin.shutdown()
        assert open_files() == files
