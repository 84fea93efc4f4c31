"""The seam between the web_search tool and a search service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from shared.cancel import CancelToken

TimeRange = Literal["day", "week", "month", "year"]
TITLE_CHARS = 200
SNIPPET_CHARS = 500
URL_CHARS = 2_000


@dataclass(frozen=True)
class WebQuery:
    """What to look for; `region` is a language tag such as `en-US`."""

    text: str
    max_results: int
    region: str | None = None
    time_range: TimeRange | None = None


@dataclass(frozen=True)
class Hit:
    """One page that was found."""

    title: str
    url: str
    snippet: str


class SearchEngine(Protocol):
    """A search service."""

    def search(self, query: WebQuery, cancel: CancelToken) -> list[Hit]:
        """Search; raises ToolError when the service fails, CancelledException at once on cancel."""
        ...


def hits(entries: Iterable[Any], *, url: str, snippet: str, most: int) -> list[Hit]:
    """The usable entries of a service's answer, tidied and capped; `url` and `snippet` name its fields."""
    found: dict[str, Hit] = {}
    for entry in entries:
        if not isinstance(entry, Mapping) or len(found) == most:
            continue
        address = str(entry.get(url) or "").strip()
        if address.startswith(("http://", "https://")) and len(address) <= URL_CHARS:
            title = _tidy(entry.get("title"), TITLE_CHARS) or address
            found.setdefault(address, Hit(title, address, _tidy(entry.get(snippet), SNIPPET_CHARS)))
    return list(found.values())


def _tidy(value: object, limit: int) -> str:
    text = " ".join(str(value or "").split())
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."
