"""Searxng: search through the JSON interface of a SearXNG service."""

from __future__ import annotations

import concurrent.futures
import json
from typing import Any
from urllib.parse import urlsplit

from shared.aio import run_coroutine
from shared.cancel import CancelToken
from shared.errors import ConfigError, ToolError
from shared.plugins.web_search.engine import Hit, WebQuery, hits

MAX_BYTES = 4 << 20


class Searxng:
    """A service at an address such as `https://search.example.org`."""

    def __init__(self, endpoint: str, *, timeout: float) -> None:
        self._url = search_address(endpoint)
        self._timeout = timeout

    def search(self, query: WebQuery, cancel: CancelToken) -> list[Hit]:
        """Ask the service; a cancel closes the connection."""
        try:
            answer = run_coroutine(self._ask(query), cancel, self._timeout)
        except (TimeoutError, concurrent.futures.TimeoutError):
            raise ToolError(f"the search service {self._url} did not answer within {self._timeout:g} s") from None
        return hits(answer, url="url", snippet="content", most=query.max_results)

    async def _ask(self, query: WebQuery) -> list[Any]:
        import httpx2

        parameters = {"q": query.text, "format": "json"}
        if query.region:
            parameters["language"] = query.region
        if query.time_range:
            parameters["time_range"] = query.time_range
        try:
            async with (
                httpx2.AsyncClient(timeout=self._timeout, follow_redirects=False) as client,
                client.stream("GET", self._url, params=parameters, headers={"accept": "application/json"}) as response,
            ):
                self._require_success(response.status_code, response.headers.get("location"))
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise ToolError(f"the search service {self._url} sent more than {MAX_BYTES:,} bytes")
        except httpx2.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise ToolError(f"the search service {self._url} cannot be reached: {reason}") from None
        return self._results(bytes(body))

    def _require_success(self, status: int, location: str | None) -> None:
        if status == 200:
            return
        why = {
            403: "it refuses JSON: add 'json' to search.formats in its settings.yml",
            404: "there is no search at this address: check the web_search setting 'endpoint'",
            429: "too many requests: wait before the next search",
        }.get(status, f"it moved to {location}: set 'endpoint' to that" if location else "try again later")
        raise ToolError(f"the search service {self._url} answered with status {status}; {why}")

    def _results(self, body: bytes) -> list[Any]:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise ToolError(f"the search service {self._url} did not answer with JSON: is it a SearXNG?") from None
        results = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(results, list):
            raise ToolError(f"the search service {self._url} answered without a list of results: is it a SearXNG?")
        return results


def search_address(endpoint: str) -> str:
    """The address to ask, from that of the service or of its search page."""
    try:
        parts = urlsplit(endpoint.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment:
        raise ConfigError(f"the search endpoint '{endpoint}' is not a plain http(s) address, such as http://host:8080")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path if path.endswith('/search') else path + '/search'}"
