"""Duckduckgo: search through the optional `ddgs` package."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from shared.cancel import CancelToken
from shared.errors import ToolError
from shared.executors.threads import workers
from shared.plugins.web_search.engine import Hit, WebQuery, hits


def is_installed() -> bool:
    """Whether the `ddgs` package is there, without loading it."""
    return importlib.util.find_spec("ddgs") is not None


class Duckduckgo:
    """Keyless search; the package blocks, so it works in a thread that a cancel leaves behind."""

    def __init__(self, *, timeout: float) -> None:
        self._timeout = timeout

    def search(self, query: WebQuery, cancel: CancelToken) -> list[Hit]:
        """Ask the package; a cancel or the time limit returns at once."""
        task = workers.submit(lambda: self._ask(query))
        if not task.wait(self._timeout, cancel=cancel):
            cancel.raise_if_cancelled()
            raise ToolError(f"the search did not answer within {self._timeout:g} s")
        return hits(task.result(), url="href", snippet="body", most=query.max_results)

    def _ask(self, query: WebQuery) -> list[Any]:
        ddgs = importlib.import_module("ddgs")
        options: dict[str, Any] = {"max_results": query.max_results}
        if query.region:
            options["region"] = _region(query.region)
        if query.time_range:
            options["timelimit"] = query.time_range[0]
        try:
            return list(ddgs.DDGS(timeout=max(1, round(self._timeout))).text(query.text, **options))
        except Exception as error:  # the package has no stable error tree, and says "no results" by raising
            if "no results" in str(error).lower():
                return []
            raise ToolError(f"the search failed: {type(error).__name__}: {error}") from None


def _region(tag: str) -> str:
    """A language tag in the package's order: `en-US` is `us-en`; a language alone stands for its own country."""
    language, _, country = tag.lower().partition("-")
    return f"{country or language}-{language}"
