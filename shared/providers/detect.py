"""Which model servers run on this machine: a quick look at the usual loopback ports, and nowhere else."""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from shared import config
from shared.cancel import CancelToken
from shared.executors.threads import workers
from shared.latch import Latch

TIMEOUT = 0.3  # seconds for all of them together
MAX_ANSWER = 1_000_000  # bytes of a list of models
OLLAMA_PORT = 11434


@dataclass(frozen=True)
class LocalServer:
    """A server that answers; `base_url` is what the provider `openai_compatible` takes."""

    kind: str
    base_url: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where a server may listen, and the path under which it lists its models."""

    kind: str
    port: int
    path: str = "/v1/models"
    host: str = "127.0.0.1"


def usual_places() -> list[Place]:
    """The ports that Ollama, llama.cpp and LM Studio have unless told otherwise; OLLAMA_HOST if it is loopback."""
    ollama = _ollama(config.ollama_host())
    return [*([ollama] if ollama else []), Place("llama.cpp", 8080), Place("lm_studio", 1234)]


def detect_local(
    *, timeout: float = TIMEOUT, cancel: CancelToken | None = None, places: Sequence[Place] | None = None
) -> list[LocalServer]:
    """The servers that answer in time, in the order of the places; models for talk before models for embeddings.

    Never raises and never leaves this machine; a cancel ends it at once with what was found.
    """
    probes = [_Probe(place, timeout) for place in (usual_places() if places is None else places)]
    deadline = time.monotonic() + timeout
    for probe in probes:
        workers.submit(probe.run)
    for probe in probes:
        probe.done.wait(max(0.0, deadline - time.monotonic()), cancel=cancel)
    for probe in probes:
        probe.abort()
    return [probe.found for probe in probes if probe.found is not None]


class _Probe:
    """One look at one place, in a thread of its own."""

    def __init__(self, place: Place, timeout: float) -> None:
        self.done = Latch()
        self.found: LocalServer | None = None
        self._place = place
        self._connection = http.client.HTTPConnection(place.host, place.port, timeout=timeout)
        self._socket: socket.socket | None = None  # the connection forgets it while an answer is read

    def run(self) -> None:
        try:
            self.found = self._asked()
        except (OSError, ValueError, RecursionError, http.client.HTTPException):  # nobody there, or somebody else
            pass
        finally:
            self._connection.close()
            self.done.open()

    def abort(self) -> None:
        """Wake the thread of a server that takes its time."""
        if not self.done.is_open and self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _asked(self) -> LocalServer | None:
        place = self._place
        self._connection.connect()
        self._socket = self._connection.sock
        self._connection.request("GET", place.path, headers={"Accept": "application/json"})
        response = self._connection.getresponse()
        answer = response.read(MAX_ANSWER)
        if response.status != 200:
            return None
        models = _models(json.loads(answer))
        host = f"[{place.host}]" if ":" in place.host else place.host
        return None if models is None else LocalServer(place.kind, f"http://{host}:{place.port}/v1", models)


def _models(answer: Any) -> tuple[str, ...] | None:
    """Names out of Ollama's list or an OpenAI list; None if it is neither."""
    entries = (answer.get("models") or answer.get("data")) if isinstance(answer, Mapping) else None
    if entries is None and isinstance(answer, Mapping) and ("models" in answer or answer.get("object") == "list"):
        entries = []
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        return None
    names = [name for entry in entries if isinstance(name := entry.get("name") or entry.get("id"), str)]
    return tuple(sorted(names, key=lambda name: "embed" in name.lower()))


def _ollama(given: str | None) -> Place | None:
    """Ollama's place; None if its variable leads to another machine, which is not ours to ask."""
    if given is None:
        return Place("ollama", OLLAMA_PORT, "/api/tags")
    try:
        url = urlsplit(given if "://" in given else f"http://{given}")
        host, port = url.hostname or "127.0.0.1", url.port or OLLAMA_PORT
    except ValueError:
        return None
    if host in ("localhost", "0.0.0.0", "::"):  # noqa: S104 - how a server is told to listen everywhere, here included
        host = "127.0.0.1"
    with suppress(ValueError):
        if url.scheme == "http" and ipaddress.ip_address(host).is_loopback:
            return Place("ollama", port, "/api/tags", host)
    return None
