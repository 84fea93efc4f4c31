"""Fetching a skill's archive from an address or from ClawHub, bounded in size and time."""

from __future__ import annotations

import concurrent.futures
import re
from urllib.parse import quote, urljoin, urlsplit

from shared.aio import run_coroutine
from shared.cancel import CancelToken
from shared.errors import SkillLoadError
from shared.skills.archive import MAX_PACKED

CLAWHUB = "https://clawhub.com"
TIMEOUT_SECONDS = 60.0
MAX_HOPS = 5
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?:/[A-Za-z0-9][A-Za-z0-9_-]{0,63})?")


def is_slug(text: str) -> bool:
    """Whether a text can be the name of a skill at ClawHub."""
    return _SLUG.fullmatch(text) is not None


def clawhub_address(slug: str, base: str = CLAWHUB) -> str:
    """Where ClawHub has the archive of a skill."""
    return f"{base.rstrip('/')}/api/skills/{quote(slug)}/download"


def fetch(address: str, cancel: CancelToken, *, timeout: float = TIMEOUT_SECONDS) -> bytes:
    """What an http or https address gives; raises SkillLoadError for anything else."""
    try:
        return bytes(run_coroutine(_fetch(address), cancel, timeout))
    except (TimeoutError, concurrent.futures.TimeoutError):
        raise SkillLoadError(f"{_shown(address)} did not answer within {timeout:g} s") from None


async def _fetch(address: str) -> bytes:
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False) as client:
            for _ in range(MAX_HOPS + 1):
                _require_web(address)
                async with client.stream("GET", address) as response:
                    if response.is_redirect:
                        address = _next(address, response.headers.get("location", ""))
                        continue
                    if response.status_code != 200:
                        raise SkillLoadError(_refusal(address, response.status_code))
                    body = bytearray()
                    async for chunk in response.aiter_bytes():
                        body += chunk
                        if len(body) > MAX_PACKED:
                            raise SkillLoadError(f"{_shown(address)} sends more than {MAX_PACKED >> 20} MiB")
                    return bytes(body)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise SkillLoadError(f"{_shown(address)} cannot be reached: {error or type(error).__name__}") from None
    raise SkillLoadError(f"{_shown(address)} leads from one address to the next more than {MAX_HOPS} times")


def _next(address: str, location: str) -> str:
    target = urljoin(address, location)
    if urlsplit(address).scheme == "https" and urlsplit(target).scheme != "https":
        raise SkillLoadError(f"{_shown(address)} leads to an address that is not protected: {_shown(target)}")
    return target


def _require_web(address: str) -> None:
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise SkillLoadError(f"'{_shown(address)}' is not an http or https address")


def _refusal(address: str, status: int) -> str:
    why = {404: "there is no such skill", 401: "it asks for a login", 403: "it refuses", 429: "too many requests"}
    return f"{_shown(address)} answered with status {status}: {why.get(status, 'try again later')}"


def _shown(address: str) -> str:
    """An address without what may be secret in it."""
    text = address.partition("?")[0].partition("#")[0]
    head, at, tail = text.rpartition("@")
    return f"{head.partition('//')[0]}//{tail}"[:200] if at else text[:200]
