"""replay: agents run offline; every model exchange is answered from a recording."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.cancel import CancelToken
from shared.errors import ConnectionFailed, ReplayMismatch, ServerFailed
from shared.providers.base import ModelRequest, OnChunk, Provider
from shared.providers.tap import opened
from shared.recording.exchange import Exchange, error_from, joined, reply_from, request_value
from shared.recording.nearest import Candidate, mismatch
from shared.recording.normal import Normal, Normalizer, translated, translation
from shared.recording.order import Order
from shared.recording.scrub import Scrubber
from shared.recording.stand_in import StandIn
from shared.recording.tape import Place, read_tape
from shared.recording.told import told
from shared.types import ProviderResponse

PATIENCE_SECONDS = 2.0
CANCEL_SECONDS = 60.0  # how long a call that was cancelled waits for it
LONG_WAIT_SECONDS = 60.0  # a service that asked for so much was perhaps told no, and must be again


@dataclass
class _Entry:
    """A recorded exchange, its request in normal form, and whether it was given out."""

    number: int
    exchange: Exchange
    agent: str
    asked: Normal
    used: bool = False


class Replayer:
    """A tap that asks nobody: equal requests get the recorded answers, each once."""

    def __init__(
        self, path: Path, *, secrets: Iterable[str] = (), ignore: Iterable[str] = (), patience: float = PATIENCE_SECONDS
    ) -> None:
        recording, patterns = read_tape(path), tuple(ignore)
        self.path = path
        self.mismatches: list[ReplayMismatch] = []
        self._providers = recording.providers
        self._here = Normalizer(Place.here(), ignore=patterns)
        self._scrub = Scrubber(secrets)
        self._order = Order(patience=patience)
        self._lock = threading.Lock()
        there = Normalizer(recording.place, ignore=patterns)
        self._entries = [
            _Entry(number, each, there.normal(each.agent).text, there.normal(told(each.provider, each.request)))
            for number, each in enumerate(recording.exchanges, 1)
        ]
        self._waiting: dict[str, list[_Entry]] = {}
        for entry in self._entries:
            self._waiting.setdefault(entry.asked.text, []).append(entry)

    @property
    def unused(self) -> list[str]:
        """The exchanges that nobody has asked for, by their number and agent."""
        with self._lock:
            return [f"{entry.number} of '{entry.agent}'" for entry in self._entries if not entry.used]

    def provider(self, name: str, make: Callable[[], Provider]) -> Provider:
        """A stand-in for a recorded provider, which needs neither key nor SDK; any other one is the real one."""
        found = self._providers.get(name)
        return make() if found is None else StandIn(found["name"], found["traits"])

    def exchange(
        self, provider: Provider, agent: str, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk
    ) -> ProviderResponse:
        """The recorded answer to an equal request of the same agent, else of another one."""
        cancel.raise_if_cancelled()
        asked = self._here.normal(told(provider.name, self._scrub.value(request_value(request))))
        entry = self._take(self._here.normal(agent).text, asked)
        exchange, words = entry.exchange, translation(entry.asked, asked)
        self._order.begun(exchange)
        if exchange.error is not None and exchange.error["type"] == "CancelledException":
            return self._until_cancelled(exchange, words, cancel, on_chunk)
        self._order.wait_for_end(exchange, cancel)
        cancel.raise_if_cancelled()
        _speak(exchange, words, on_chunk)
        if exchange.error is not None:
            raise _quick(error_from(translated(exchange.error, words), provider.name))
        return reply_from(translated(exchange.reply, words))

    def _take(self, agent: str, asked: Normal) -> _Entry:
        with self._lock:
            fitting = [entry for entry in self._waiting.get(asked.text, ()) if not entry.used]
            own = [entry for entry in fitting if entry.agent == agent]
            if fitting:
                entry = (own or fitting)[0]
                entry.used = True
                return entry
            candidates = [Candidate(each.number, each.agent, each.asked.text, each.used) for each in self._entries]
        raise self._differs(mismatch(agent, asked.text, candidates))

    def _differs(self, text: str) -> ReplayMismatch:
        """Remember it: whoever asked may keep the error to himself."""
        error = ReplayMismatch(text)
        with self._lock:
            self.mismatches.append(error)
        self._order.give_up()
        return error

    def _until_cancelled(
        self, exchange: Exchange, words: dict[str, str], cancel: CancelToken, on_chunk: OnChunk
    ) -> ProviderResponse:
        """A call that was cancelled then waits to be cancelled now."""
        _speak(exchange, words, on_chunk)
        cancel.wait(CANCEL_SECONDS)
        self._order.wait_for_end(exchange, cancel)
        cancel.raise_if_cancelled()
        raise self._differs(f"agent '{exchange.agent}' was cancelled here when it was recorded, and now it was not")


def _speak(exchange: Exchange, words: dict[str, str], on_chunk: OnChunk) -> None:
    """The chunks as they came; where a word changes they come in one piece, for it may span several."""
    chunks = list(exchange.chunks)
    whole = joined(chunks)
    if words and translated(whole, words) != [list(each) for each in whole]:
        chunks = [(kind, translated(text, words)) for kind, text in whole]
    for kind, text in chunks:
        on_chunk("thought" if kind == "thought" else "text", text)


def _quick(error: Any) -> Any:
    """The same error without the wait before the next attempt."""
    if isinstance(error, (ConnectionFailed, ServerFailed)) and (error.retry_after or 0) <= LONG_WAIT_SECONDS:
        error.retry_after = 0.0
    return error


@contextmanager
def replay(
    path: Path | str,
    *,
    secrets: Iterable[str] = (),
    ignore: Iterable[str] = (),
    patience: float = PATIENCE_SECONDS,
) -> Iterator[Replayer]:
    """Answer every model exchange in this process from a recording, until the block ends.

    A request that was not recorded fails with the nearest match and a diff: its agent at once, and the block at
    its end, whatever became of the first error on its way. `secrets` must be those of the recording; `ignore` holds
    regular expressions for what may differ.
    """
    replayer = Replayer(Path(path), secrets=secrets, ignore=ignore, patience=patience)
    try:
        with opened(replayer):
            yield replayer
    except Exception as error:
        first = replayer.mismatches[0] if replayer.mismatches else None
        if first is None or error is first:
            raise
        raise first from error
    if replayer.mismatches:
        raise replayer.mismatches[0]
