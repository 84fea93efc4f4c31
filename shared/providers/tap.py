"""The tap: one place in front of all providers where model exchanges can be recorded, or answered from a record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from shared.cancel import CancelToken
from shared.errors import ConfigError
from shared.providers.base import ModelRequest, OnChunk, Provider
from shared.types import ProviderResponse


class Tap(Protocol):
    """What stands between agents and providers while it is open."""

    def provider(self, name: str, make: Callable[[], Provider]) -> Provider:
        """The provider that is known under a name; `make` gives the real one, which may need keys."""
        ...

    def exchange(
        self, provider: Provider, agent: str, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk
    ) -> ProviderResponse:
        """Answer a request of an agent, as `Provider.generate` does."""
        ...


_lock = threading.Lock()
_open: Tap | None = None


@contextmanager
def opened(tap: Tap) -> Iterator[None]:
    """Let all exchanges of this process pass a tap; one at a time."""
    global _open
    with _lock:
        if _open is not None:
            raise ConfigError("a recording or replay is under way already in this process: end it first")
        _open = tap
    try:
        yield
    finally:
        with _lock:
            _open = None


def provider_for(name: str, make: Callable[[], Provider]) -> Provider:
    """A provider by name, or what an open tap has in its place."""
    tap = _open
    return make() if tap is None else tap.provider(name, make)


def generate(
    provider: Provider, agent: str, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk
) -> ProviderResponse:
    """Ask a provider, through the tap if one is open."""
    tap = _open
    if tap is None:
        return provider.generate(request, cancel=cancel, on_chunk=on_chunk)
    return tap.exchange(provider, agent, request, cancel=cancel, on_chunk=on_chunk)
