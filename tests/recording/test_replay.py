"""What a recording keeps, what it leaves out, and what a replay makes of it."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.subagents import Play, answers_in, calling, staged, task_of
from support.tools import Lab

from shared import Plugin, tool
from shared.cancel import CancelToken
from shared.errors import CancelledException, ConfigError, ProviderError, RateLimited, ReplayMismatch, ServerFailed
from shared.providers.base import ModelRequest, OnChunk
from shared.testing import Reply, ScriptProvider, Step, record, replay, scripted_client
from shared.types import ProviderResponse

Script = Callable[[ModelRequest], Step]


def silent(request: ModelRequest) -> Step:
    raise AssertionError("a replay asks nobody")


def test_answers_stream_usage_and_structure_come_back(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"

    def ask(script: Any) -> tuple[Any, ...]:
        heard: list[tuple[str, str]] = []
        with scripted_client(script, Lab()) as client:
            answer = client.send_message("go", lambda source, text, mode: heard.append((source, text)))
            usage = client.get_runtime().ledger.summarize()
            return answer, heard, usage, client.get_history()

    with record(tape):
        before = ask([Reply("Let me add.", (("add", {"a": 1, "b": 2}),), thought="Sums."), "Three."])
    with replay(tape) as replayed:
        after = ask(silent)
    assert after == before
    assert replayed.unused == []


def test_twins_that_ask_the_same_get_each_its_own_answer(tmp_path: Path) -> None:
    tape, counter = tmp_path / "tape.jsonl", itertools.count()

    def parent(request: ModelRequest) -> Step:
        if found := answers_in(request):
            return json.dumps([answer["response"] for answer in found])
        return calling(*(("spawn_subagent", {"task": "Draw a lot.", "name": f"twin{n}"}) for n in range(6)))

    with record(tape), staged(Play(parent, lambda request: f"lot {next(counter)}")) as stage:
        before = stage.ask()
    assert sorted(json.loads(before)) == [f"lot {n}" for n in range(6)]
    for _ in range(5):
        with replay(tape), staged(Play(silent, silent)) as stage:
            assert stage.ask() == before


def test_background_children_that_are_waited_for(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"

    def parent(request: ModelRequest) -> Step:
        found = answers_in(request)
        if not found:
            more = {"background": True}
            return calling(*(("spawn_subagent", {"task": f"t{n}", "name": f"c{n}", **more}) for n in range(3)))
        if len(found) == 3:
            return calling(("wait_for_subagents", {"ids": [answer["agent_id"] for answer in found], "mode": "all"}))
        return "all are back"

    with record(tape), staged(Play(parent, lambda request: f"done {task_of(request)}")) as stage:
        assert stage.ask() == "all are back"
    for _ in range(5):
        with replay(tape) as replayed, staged(Play(silent, silent)) as stage:
            assert stage.ask() == "all are back"
        assert replayed.unused == []


def test_errors_come_back_as_what_they_were_and_cost_no_waiting(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    failures = [ServerFailed("oops", status=500, retry_after=0.001), RateLimited("slow down", status=429)]
    with record(tape), scripted_client([*failures, "at last"]) as client:
        assert client.send_message("go") == "at last"
    told: list[str] = []
    with replay(tape), scripted_client(silent) as client:
        client.set_retry_callback(lambda message, *_: told.append(message))
        assert client.send_message("go") == "at last"
    assert ["oops" in told[0], "slow down" in told[1], len(told)] == [True, True, 2]


class Hesitant:
    """A provider that begins to speak and then says nothing until it is cancelled."""

    name, traits = "script", ScriptProvider.traits

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        on_chunk("text", "well, ")
        assert cancel.wait(60)
        raise CancelledException(cancel.reason)

    def list_models(self, prefix: str = "") -> list[str]:
        return []

    def close(self) -> None:
        pass


def test_a_call_that_was_cancelled_waits_to_be_cancelled_again(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"

    def cancelled() -> Any:
        speaking = threading.Event()

        class Ears:
            def on_agent_output(self, text: str, **more: Any) -> None:
                speaking.set()

        with staged(Play(silent, silent)) as stage:
            stage.client.register_provider("script", Hesitant())
            stage.client.set_ui_hooks(Ears())
            agent_id = stage.launch("wait", name="sleeper")
            assert speaking.wait(20)
            stage.call("cancel_subagent", agent_id=agent_id)
            return stage.result(agent_id)["status"]

    with record(tape):
        assert cancelled() == "cancelled"
    assert '"CancelledException"' in tape.read_text()
    with replay(tape) as replayed:
        assert cancelled() == "cancelled"
    assert replayed.unused == []


def test_secrets_are_in_no_line_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "correct-horse-battery")
    tape = tmp_path / "tape.jsonl"
    secrets = ["correct-horse-battery", "named-by-the-caller", "sk-ant-REDACTED", "hunter2-in-a-field"]

    class Leaky(Plugin):
        name = "leaky"

        @tool(auto_approved=True)
        def leak(self, api_key: str) -> dict[str, str]:
            """Say too much."""
            return {"password": "hunter2-in-a-field", "note": f"it is {secrets[0]} or {api_key}"}

    script = [
        Reply(f"I know {secrets[1]}", (("leak", {"api_key": secrets[2]}),)),
        f"Bearer {secrets[0]} and {secrets[1]}",
    ]
    with record(tape, secrets=secrets[1:2]), scripted_client(script, Leaky()) as client:
        client.send_message(f"My key is {secrets[2]}")
    text = tape.read_text()
    assert [secret for secret in secrets if secret in text] == []
    with replay(tape, secrets=secrets[1:2]), scripted_client(silent, Leaky()) as client:
        assert "[redacted]" in client.send_message(f"My key is {secrets[2]}")


def test_a_secret_that_arrives_in_pieces_is_left_out_too(tmp_path: Path) -> None:
    from shared.recording import Recorder

    class Dripping:
        name = "script"

        def __init__(self, inner: Any) -> None:
            self._inner, self.traits = inner, inner.traits

        def generate(self, request: Any, *, cancel: Any, on_chunk: Any) -> Any:
            return self._inner.generate(
                request, cancel=cancel, on_chunk=lambda kind, text: [on_chunk(kind, letter) for letter in text]
            )

    tape = tmp_path / "tape.jsonl"
    with (
        record(tape, secrets=["a-very-secret-word"]) as recorder,
        scripted_client(["it is a-very-secret-word"]) as client,
    ):
        assert isinstance(recorder, Recorder)
        runtime = client.get_runtime()
        runtime.register_provider("script", Dripping(runtime.provider()))  # type: ignore[arg-type]
        client.get_session().set_model("echo", "script")
        client.send_message("go")
    entry = json.loads(tape.read_text().splitlines()[-1])
    assert "".join(text for _, text in entry["chunks"]) == "it is [redacted]"


def test_folders_ids_and_times_may_differ(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"

    class Where(Plugin):
        name = "where"

        def __init__(self, folder: Path) -> None:
            super().__init__()
            self._folder = folder

        @tool(auto_approved=True)
        def where(self) -> dict[str, Any]:
            """Tell where and when."""
            moment = f"2026-01-01T00:00:{next(_seconds):02d}.5Z"
            return {
                "path": f"{self._folder}/notes.txt",
                "id": str(uuid.uuid4()),
                "created_at": 1.5 * next(_seconds),
                "at": moment,
            }

        @tool(auto_approved=True)
        def read(self, path: str) -> str:
            """Read a file."""
            return Path(path).read_text()

    def script(request: ModelRequest) -> Step:
        results = [result.result for message in request.messages for result in message.results]
        if not results:
            return Reply(calls=(("where", {}),))
        if len(results) == 1:
            return Reply(calls=(("read", {"path": json.loads(_text(results[0]))["path"]}),))
        return f"It says {results[1]}"

    def ask(script: Script, name: str) -> str:
        folder = tmp_path.parent / f"{tmp_path.name}-{name}"
        folder.mkdir()
        (folder / "notes.txt").write_text("hello")
        with scripted_client(script, Where(folder)) as client:
            return client.send_message("go")

    with record(tape):
        assert ask(script, "one") == "It says hello"
    with replay(tape):
        assert ask(silent, "another") == "It says hello"


_seconds = itertools.count(1)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_what_else_may_differ_is_said_by_the_caller(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    with record(tape), scripted_client(["fine"]) as client:
        client.send_message("build 17 is out")
    with replay(tape, ignore=[r"build \d+"]), scripted_client(silent) as client:
        assert client.send_message("build 18 is out") == "fine"
    with pytest.raises(ReplayMismatch, match=r"(?s)-  build 17 is out\n\+  build 18 is out"):
        _say(tape, "build 18 is out")


def _say(tape: Path, *messages: str) -> None:
    """Each message in a conversation of its own, all within one replay."""
    with replay(tape):
        for message in messages:
            with scripted_client(silent) as client:
                client.send_message(message)


def test_a_request_that_comes_once_more_is_told_as_such(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    with record(tape), scripted_client(["fine"]) as client:
        client.send_message("go")
    with pytest.raises(ReplayMismatch, match="asked once more what was recorded as exchange 1 of 'main'"):
        _say(tape, "go", "go")


def test_a_mismatch_that_the_code_under_test_swallows_fails_the_block_all_the_same(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    with record(tape), scripted_client(["fine"]) as client:
        client.send_message("go")

    def swallow() -> None:
        with replay(tape) as replayed, scripted_client(silent) as client:
            with contextlib.suppress(ProviderError):
                client.send_message("stay")
            assert replayed.unused == ["1 of 'main'"]

    with pytest.raises(ReplayMismatch, match="not recorded"):
        swallow()


def test_a_session_that_was_open_before_is_recorded_and_replayed_too(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    with scripted_client(["one", "two"]) as client:
        client.send_message("first")
        with record(tape):
            assert client.send_message("second") == "two"
    with scripted_client(["one"]) as client:
        client.send_message("first")
        with replay(tape):
            assert client.send_message("second") == "two"


def test_summaries_of_context_collection_are_exchanges_like_any_other(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"

    def ask(script: Script) -> str:
        with scripted_client(script) as client:
            session = client.get_runtime().create_session("echo", gc={"type": "summarize", "preserve_recent_turns": 1})
            for n in range(6):
                session.send_message(f"message {n} " + "word " * 50)
            session.manual_gc()
            return session.send_message("and now?")

    def script(request: ModelRequest) -> Step:
        return "answer" if request.system or len(request.messages) > 1 else "a summary"

    with record(tape):
        before = ask(script)
    with replay(tape) as replayed:
        assert ask(silent) == before
    assert replayed.unused == []


def test_one_tap_at_a_time(tmp_path: Path) -> None:
    second = record(tmp_path / "two.jsonl")
    with record(tmp_path / "one.jsonl"), pytest.raises(ConfigError, match="under way already"):
        second.__enter__()
    with record(tmp_path / "three.jsonl"):
        pass


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("{}\n", "no recording of version 1"),
        ("nonsense\n", ":1: is no JSON"),
        ('{"jaato_recording": 2}\n', "no recording of version 1"),
        ('{"jaato_recording": 1, "place": {"cwd": "/", "home": "/", "temp": "/tmp"}}\n{"blob": ', ":2: is no JSON"),
        (
            '{"jaato_recording": 1, "place": {"cwd": "/", "home": "/", "temp": "/tmp"}}\n{"x": 1}\n',
            "no whole recording",
        ),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_a_sentence(tmp_path: Path, content: str, said: str) -> None:
    tape = tmp_path / "tape.jsonl"
    tape.write_text(content)
    with pytest.raises(ConfigError, match="record it anew") as caught, replay(tape):
        pass
    assert said in str(caught.value)


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"), replay(tmp_path / "nowhere.jsonl"):
        pass


def test_many_agents_at_once_write_whole_lines(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    with record(tape), staged("done") as stage:
        ids = [stage.launch(f"task {n}", name=f"n{n}") for n in range(12)]
        assert {stage.result(agent_id)["status"] for agent_id in ids} == {"completed"}
    entries = [json.loads(line) for line in tape.read_text().splitlines()]
    agents = [entry["agent"] for entry in entries if "started" in entry]
    assert len({*agents}) == len(agents) == 12
    barrier = threading.Barrier(12)
    # The host starts them in another order, which the order of the recording must not hold up for good.
    with replay(tape, patience=0.1) as replayed, staged(silent) as stage:

        def launch(n: int) -> None:
            barrier.wait(20)
            stage.spawn(f"task {n}", name=f"n{n}")

        threads = [threading.Thread(target=launch, args=(n,)) for n in reversed(range(12))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert replayed.unused == []
