from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.plugin_calls import Caller, in_thread

from shared.cancel import CancelToken
from shared.errors import ConfigError
from shared.plugins.web_search import create_plugin


class Service:
    """A loopback SearXNG whose next answer a test sets."""

    def __init__(self) -> None:
        self.requests: list[dict[str, list[str]]] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body: bytes = b"{}"
        self.asked = threading.Event()
        self.closed_by_client = threading.Event()
        self.silent = False
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.requests.append(
                    {"path": [urlsplit(self.path).path], **parse_qs(urlsplit(self.path).query, keep_blank_values=True)}
                )
                service.asked.set()
                if service.silent:
                    if not self.connection.recv(1):
                        service.closed_by_client.set()
                    return
                self.send_response(service.status)
                for name, value in service.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(service.body)))
                self.end_headers()
                self.wfile.write(service.body)

            def log_message(self, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def results(self, *entries: Any) -> None:
        self.body = json.dumps({"results": list(entries)}).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.delenv("JAATO_SEARCH_URL", raising=False)
    made = Service()
    yield made
    made.close()


def configured(**config: Any) -> Caller:
    plugin = create_plugin()
    plugin.initialize(config or None)
    return Caller(plugin, Path.cwd())


def page(number: int, **changes: Any) -> dict[str, Any]:
    return {"title": f"T{number}", "url": f"https://e.org/{number}", "content": f"S{number}", "engine": "x"} | changes


def test_results_are_title_url_and_snippet(service: Service) -> None:
    service.results(page(1), page(2))
    search = configured(endpoint=service.url)
    assert search.ok("web_search", query=" what is é & ü ") == {
        "query": "what is é & ü",
        "results": [
            {"title": "T1", "url": "https://e.org/1", "snippet": "S1"},
            {"title": "T2", "url": "https://e.org/2", "snippet": "S2"},
        ],
        "count": 2,
    }
    assert service.requests == [{"path": ["/search"], "q": ["what is é & ü"], "format": ["json"]}]


def test_options_reach_the_service(service: Service) -> None:
    service.results(*(page(n) for n in range(20)))
    search = configured(endpoint=service.url + "/searx/search", region="de")
    found = search.ok("web_search", query="q", max_results=3, region="en-US", time_range="week")
    assert found["count"] == 3
    search.ok("web_search", query="q")
    assert service.requests[0] == {
        "path": ["/searx/search"],
        "q": ["q"],
        "format": ["json"],
        "language": ["en-US"],
        "time_range": ["week"],
    }
    assert service.requests[1]["language"] == ["de"]


def test_the_environment_names_the_service(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_SEARCH_URL", service.url)
    service.results(page(1))
    assert configured().ok("web_search", query="q")["count"] == 1
    monkeypatch.setenv("JAATO_SEARCH_URL", "not an address")
    assert "not a plain http(s) address" in configured().error("web_search", query="q")


def test_what_a_service_sends_is_tidied(service: Service) -> None:
    service.results(
        page(1, title="a \n b", content="x" * 5_000),
        page(1, title="the same address again"),
        page(2, url="javascript:alert(1)"),
        page(3, url=None),
        page(4, url="https://e.org/" + "x" * 3_000),
        "not an entry",
        page(5, title=None, content=None),
    )
    results = configured(endpoint=service.url).ok("web_search", query="q")["results"]
    assert [each["url"] for each in results] == ["https://e.org/1", "https://e.org/5"]
    assert results[0]["title"] == "a b"
    assert len(results[0]["snippet"]) == 500
    assert results[1] == {"title": "https://e.org/5", "url": "https://e.org/5", "snippet": ""}


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, b"", "search.formats"),
        (404, b"", "check the web_search setting 'endpoint'"),
        (429, b"", "too many requests"),
        (500, b"", "status 500"),
        (200, b"<html>", "did not answer with JSON"),
        (200, b"[" * 100_000, "did not answer with JSON"),
        (200, b"[]", "without a list of results"),
        (200, b'{"results": 5}', "without a list of results"),
        (200, b" " * (5 << 20), "sent more than"),
    ],
)
def test_bad_answers_are_sentences(service: Service, status: int, body: bytes, words: str) -> None:
    service.status, service.body = status, body
    assert words in configured(endpoint=service.url).error("web_search", query="q")


def test_a_redirect_is_not_followed(service: Service) -> None:
    service.status, service.headers = 302, {"location": "http://127.0.0.1:1/internal"}
    assert "it moved to http://127.0.0.1:1/internal" in configured(endpoint=service.url).error("web_search", query="q")
    assert len(service.requests) == 1


def test_nobody_listens(service: Service) -> None:
    service.close()
    assert "cannot be reached" in configured(endpoint=service.url).error("web_search", query="q")


def test_silence_ends_with_the_time_limit(service: Service) -> None:
    service.silent = True
    assert "did not answer within 0.3 s" in configured(endpoint=service.url, timeout_seconds=0.3).error(
        "web_search", query="q"
    )


def test_cancel_returns_and_closes_the_connection(service: Service) -> None:
    service.silent = True
    token = CancelToken()
    search = configured(endpoint=service.url, timeout_seconds=100)
    thread, values = in_thread(lambda: search.run("web_search", token, query="q"))
    assert service.asked.wait(30)
    token.cancel()
    thread.join(30)
    assert "Cancelled" in values[0].text
    assert service.closed_by_client.wait(30)


def test_without_any_service_it_says_what_to_do(service: Service) -> None:
    error = configured(backend="searxng").error("web_search", query="q")
    assert "JAATO_SEARCH_URL" in error
    assert "jaato-subagent[web]" in error


DDGS = """
import threading
calls = []
class DDGS:
    def __init__(self, timeout=5): self.timeout = timeout
    def text(self, query, **options):
        calls.append((query, options))
        if query == "nothing": raise RuntimeError("No results found.")
        if query == "broken": raise RuntimeError("blocked")
        if query == "slow": threading.Event().wait(1000)
        return [{"title": "T", "href": "https://e.org", "body": "B"}]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service) -> Iterator[None]:
    """A stand-in for the optional package, found first on the path."""
    import sys

    (tmp_path / "ddgs.py").write_text(DDGS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ddgs", raising=False)
    yield
    sys.modules.pop("ddgs", None)


@pytest.mark.usefixtures("package")
def test_the_optional_package_is_used() -> None:
    search = configured()
    assert search.ok("web_search", query="q", region="en-US", time_range="year", max_results=2)["results"] == [
        {"title": "T", "url": "https://e.org", "snippet": "B"}
    ]
    import ddgs  # type: ignore[import-not-found]

    assert ddgs.calls == [("q", {"max_results": 2, "region": "us-en", "timelimit": "y"})]
    assert search.ok("web_search", query="nothing")["count"] == 0
    assert "blocked" in search.error("web_search", query="broken")


@pytest.mark.usefixtures("package")
def test_cancel_leaves_the_package_behind() -> None:
    token = CancelToken()
    search = configured(timeout_seconds=500)
    thread, values = in_thread(lambda: search.run("web_search", token, query="slow"))
    token.cancel()
    thread.join(30)
    assert "Cancelled" in values[0].text
    assert "did not answer within" in configured(timeout_seconds=0.1).error("web_search", query="slow")


@pytest.mark.usefixtures("package")
def test_an_endpoint_goes_before_the_package_unless_told_otherwise(service: Service) -> None:
    service.results(page(1), page(2))
    assert configured(endpoint=service.url).ok("web_search", query="q")["count"] == 2
    assert configured(endpoint=service.url, backend="ddgs").ok("web_search", query="q")["count"] == 1


@pytest.mark.parametrize(
    "args",
    [
        {"query": ""},
        {"query": "   "},
        {"query": "q", "max_results": 0},
        {"query": "q", "max_results": 1000},
        {"query": "q", "region": "../../x"},
        {"query": "q", "time_range": "decade"},
        {"query": "x" * 501},
    ],
)
def test_bad_arguments_ask_nobody(service: Service, args: dict[str, Any]) -> None:
    configured(endpoint=service.url).error("web_search", **args)
    assert service.requests == []


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"endpoint": "ftp://x"}, "not a plain http(s) address"),
        ({"endpoint": "http://"}, "not a plain http(s) address"),
        ({"endpoint": "http://x:99999"}, "not a plain http(s) address"),
        ({"endpoint": "http://x/?q=1"}, "not a plain http(s) address"),
        ({"endpoint": 5}, "'endpoint': expected string or null"),
        ({"backend": "bing"}, "expected one of 'auto'"),
        ({"max_results": 99}, "max_results"),
        ({"url": "http://x"}, "unknown setting 'url'"),
    ],
)
def test_wrong_settings(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create_plugin().initialize(config)
    assert words in str(caught.value)


def test_schema_and_permission(service: Service) -> None:
    plugin = create_plugin()
    [schema] = plugin.get_tool_schemas()
    assert list(schema.parameters["properties"]) == ["query", "max_results", "region", "time_range"]
    assert schema.parameters["required"] == ["query"]
    assert plugin.get_auto_approved_tools() == []
    info = plugin.format_permission_request("web_search", {"query": "a\x1bb"}, "console")
    assert info is not None
    assert info.details == "a\\x1bb"
