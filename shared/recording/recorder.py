"""record: every model exchange of every agent, written to one file as it happens."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shared.cancel import CancelToken
from shared.errors import CancelledException, ProviderError
from shared.providers.base import ChunkKind, ModelRequest, OnChunk, Provider
from shared.providers.tap import opened
from shared.recording.exchange import Chunk, Exchange, error_value, joined, reply_value, request_value
from shared.recording.scrub import Scrubber
from shared.recording.tape import TapeWriter
from shared.types import ProviderResponse


class Recorder:
    """A tap that lets everything pass and writes it down."""

    def __init__(self, path: Path, *, secrets: Iterable[str] = ()) -> None:
        self.path = path
        self._scrub = Scrubber(secrets)
        self._writer = TapeWriter(path)
        self._ticks = itertools.count()

    def provider(self, name: str, make: Callable[[], Provider]) -> Provider:
        """The real provider, noted for a replay that has no keys."""
        made = make()
        self._writer.provider(name, _description(made))
        return made

    def exchange(
        self, provider: Provider, agent: str, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk
    ) -> ProviderResponse:
        """Ask the provider and write down what comes."""
        self._writer.provider(provider.name, _description(provider))
        asked, started = request_value(request), next(self._ticks)  # at once: the history goes on
        chunks: list[Chunk] = []

        def heard(kind: ChunkKind, text: str) -> None:
            chunks.append((kind, text))
            on_chunk(kind, text)

        reply: dict[str, Any] | None = None
        error: dict[str, Any] | None = None
        try:
            response = provider.generate(request, cancel=cancel, on_chunk=heard)
            reply = reply_value(response)
            return response
        except (ProviderError, CancelledException) as failure:
            error = error_value(failure)
            raise
        finally:
            if reply is not None or error is not None:
                self._keep(agent, provider.name, asked, chunks, reply, error, started)

    def close(self) -> None:
        """End the file; what still runs is not in it."""
        self._writer.close()

    def _keep(
        self, agent: str, provider: str, asked: Any, chunks: list[Chunk], reply: Any, error: Any, started: int
    ) -> None:
        clean = self._scrub.value
        self._writer.exchange(
            Exchange(
                agent,
                provider,
                clean(asked),
                self._heard(chunks),
                clean(reply),
                clean(error),
                started,
                next(self._ticks),
            )
        )

    def _heard(self, chunks: list[Chunk]) -> tuple[Chunk, ...]:
        """The chunks as they came, or in one piece where a secret had to be taken out: it may span several."""
        whole = joined(chunks)
        cleaned = [(kind, self._scrub.text(text)) for kind, text in whole]
        return tuple(chunks if cleaned == whole else cleaned)


def _description(provider: Provider) -> dict[str, Any]:
    return {"name": provider.name, "traits": asdict(provider.traits)}


@contextmanager
def record(path: Path | str, *, secrets: Iterable[str] = ()) -> Iterator[Recorder]:
    """Write every model exchange in this process to a file, until the block ends.

    Keys and what looks like a secret are left out; `secrets` names more that must not be in the file.
    """
    recorder = Recorder(Path(path), secrets=secrets)
    try:
        with opened(recorder):
            yield recorder
    finally:
        recorder.close()
