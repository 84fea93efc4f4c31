"""Model servers on this machine are found, on loopback only, and nothing else is taken for one."""

from __future__ import annotations

import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
from support.wire import Answer, WireServer

from shared.cancel import CancelToken
from shared.providers.detect import LocalServer, Place, detect_local, usual_places

PATIENT = 20.0  # so that a loaded machine finds what is there


def openai_list(*names: str) -> Answer:
    return Answer.of_json({"object": "list", "data": [{"id": name, "owned_by": "llamacpp"} for name in names]})


def place(server: WireServer, kind: str = "llama.cpp", path: str = "/v1/models") -> Place:
    return Place(kind, urlsplit(server.url).port or 0, path)


def found(answer: Answer) -> list[LocalServer]:
    with WireServer(lambda request: answer) as server:
        return detect_local(timeout=PATIENT, places=[place(server)])


def test_a_server_and_its_models() -> None:
    with WireServer(lambda request: openai_list("nomic-embed", "qwen", "llama")) as server:
        [one] = detect_local(timeout=PATIENT, places=[place(server)])
    assert one == LocalServer("llama.cpp", f"{server.url}/v1", ("qwen", "llama", "nomic-embed"))
    assert server.requests[0].path == "/v1/models"


def test_ollama_is_found_where_its_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = Answer.of_json({"models": [{"name": "llama3.2:latest", "size": 1}]})
    with WireServer(lambda request: tags if request.path == "/api/tags" else Answer(status=404)) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://"))
        servers = detect_local(timeout=PATIENT)
    assert LocalServer("ollama", f"{server.url}/v1", ("llama3.2:latest",)) in servers


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ("127.0.0.1", 11434)),
        ("0.0.0.0", ("127.0.0.1", 11434)),
        ("localhost:5000", ("127.0.0.1", 5000)),
        ("http://127.0.0.1:6000", ("127.0.0.1", 6000)),
        ("[::1]:7000", ("::1", 7000)),
        (":8000", ("127.0.0.1", 8000)),
        ("192.168.1.7:11434", None),
        ("https://models.example.org", None),
        ("127.0.0.1.example.org", None),
        ("127.0.0.1:port", None),
    ],
)
def test_only_loopback_is_asked(monkeypatch: pytest.MonkeyPatch, given: str | None, expected) -> None:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    if given is not None:
        monkeypatch.setenv("OLLAMA_HOST", given)
    places = {each.kind: each for each in usual_places()}
    assert (("ollama" in places) and (places["ollama"].host, places["ollama"].port)) == (expected or False)
    assert set(places) >= {"llama.cpp", "lm_studio"}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"<html>a web page</html>", 200, {}, "text/html"),
        Answer.of_json({"status": "ok"}),
        Answer.of_json(["a"]),
        Answer.of_json({"data": ["a", "b"]}),
        Answer.of_json({"error": "no"}, status=500),
        Answer(b"[" * 200_000),
        Answer(b"{").drop(1),
        Answer(b"", 302, {"Location": "http://example.org/v1/models"}),
    ],
    ids=["page", "other", "list", "strings", "error", "deep", "dropped", "redirect"],
)
def test_what_is_no_model_server_is_none(answer: Answer) -> None:
    assert found(answer) == []


def test_a_server_without_models_is_still_one() -> None:
    assert [server.models for server in (*found(Answer.of_json({"models": []})), *found(openai_list()))] == [(), ()]


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert detect_local(timeout=PATIENT, places=[Place("x", free.getsockname()[1])]) == []


def test_a_silent_server_holds_nobody_up_and_is_let_go() -> None:
    with (
        WireServer(lambda request: Answer().mute()) as silent,
        WireServer(lambda request: Answer(json.dumps({"data": [{"id": "x"}]}).encode()).hang(5)) as stuck,
        WireServer(lambda request: openai_list("quick")) as quick,
    ):
        places = [place(silent), place(stuck), place(quick)]
        servers = []
        while not servers:  # on a busy machine even the quick one may be late
            servers = detect_local(timeout=0.5, places=places)
        assert [server.models for server in servers] == [("quick",)]
        silent.wait_hangups(1)
        stuck.wait_hangups(1)


def test_a_cancel_ends_the_search() -> None:
    token, results = CancelToken(), []
    with WireServer(lambda request: Answer().mute()) as silent:

        def search() -> None:
            results.append(detect_local(timeout=600, cancel=token, places=[place(silent)]))

        thread = threading.Thread(target=search)
        thread.start()
        silent.wait_hanging(1)
        token.cancel()
        thread.join(20)
        assert results == [[]]
        silent.wait_hangups(1)


def test_found_servers_can_be_used() -> None:
    from shared.providers import get_provider
    from shared.providers.base import ProviderConfig

    with WireServer(lambda request: openai_list("qwen")) as server:
        [one] = detect_local(timeout=PATIENT, places=[place(server)])
        provider = get_provider("openai_compatible", ProviderConfig(base_url=one.base_url))
        assert provider.list_models() == ["qwen"]


def test_the_usual_places_are_quick_to_look_at() -> None:
    started = time.monotonic()
    detect_local()
    assert time.monotonic() - started < 10  # a third of a second where nothing else runs
