"""`jaato chat` behind a pipe: lines are messages, plain output, and an exit code that says how it went."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.chat import calling, chat_environment, piped, write_policy
from support.labs import OPENAI


def test_every_line_is_a_message_of_one_conversation(tmp_path: Path) -> None:
    rules = ("first", ["**One.**\n\nTwo."]), ("second", ["Three."])
    done = piped(tmp_path, "first\n\nsecond\n", *rules)
    assert done.returncode == 0
    assert done.stdout == "**One.**\n\nTwo.\nThree.\n", "as the model wrote it"
    assert done.stderr == ""


def test_progress_goes_to_stderr_without_colours(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    done = piped(tmp_path, "read\n", ("read", [calling("read_file", path="a.txt"), "Read."]))
    assert done.stdout == "Read.\n"
    assert "→ read_file" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_nobody_can_be_asked(tmp_path: Path) -> None:
    done = piped(tmp_path, "write\n", ("write", [calling("write_file", path="a", content="b"), "It was denied."]))
    assert done.stdout == "It was denied.\n"
    assert "nobody can be asked" in done.stderr
    assert not (tmp_path / "a").exists()


def test_commands_work_and_a_wrong_one_fails(tmp_path: Path) -> None:
    done = piped(tmp_path, "/tools\n/model other\n")
    assert done.returncode == 0
    assert "file_edit: read_file, write_file*" in done.stdout
    assert "The model is other of script." in done.stdout
    wrong = piped(tmp_path, "/tolls\nstill here\n")
    assert wrong.returncode == 1
    assert "Did you mean '/tools'" in wrong.stdout
    assert "You said: still here" in wrong.stdout


def test_quit_ends_it_early(tmp_path: Path) -> None:
    done = piped(tmp_path, "one\n/quit\ntwo\n")
    assert done.stdout == "You said: one\n"
    assert done.returncode == 0


def test_a_failed_turn_is_told_and_counts(tmp_path: Path) -> None:
    done = piped(tmp_path, "hello\n", args=("--provider", "script", "--model", "nowhere.yaml"))
    assert done.returncode == 1
    assert "jaato: script file nowhere.yaml cannot be read" in done.stderr


def test_children_in_the_background_are_waited_for(tmp_path: Path) -> None:
    spawn = calling("spawn_subagent", task="count sheep", name="counter", background=True)
    late = calling("cli", command="until grep -q Delegated stdout; do sleep 0.05; done")
    rules = ("count", [late, "Seven sheep."]), ("delegate", [spawn, "Delegated."])
    done = piped(tmp_path, "delegate\n", *rules, args=("--provider", "script", "--permissions", write_policy(tmp_path)))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "Delegated."
    assert second.endswith("(completed): Seven sheep.")


def test_without_a_key_it_says_what_to_set(tmp_path: Path) -> None:
    done = piped(tmp_path, "hello\n", args=())
    assert done.returncode == 2
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "jaato demo"):
        assert name in done.stderr
    one = piped(tmp_path, "hello\n", args=("--provider", "anthropic"))
    assert one.returncode == 2
    assert "ANTHROPIC_API_KEY" in one.stderr
    assert "OPENAI_API_KEY" not in one.stderr


def test_the_provider_that_has_a_key_is_taken_and_a_model_is_asked_for(tmp_path: Path) -> None:
    done = piped(tmp_path, "hello\n", args=(), OPENAI_API_KEY="k")
    assert done.returncode == 2
    assert f"no model for {OPENAI.name}: pass --model NAME" in done.stderr


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shared.cli", "chat", "--provider", "script"]
    environment = chat_environment(tmp_path)
    done = subprocess.run(command, cwd=tmp_path, env=environment, input=b"caf\xe9\n", capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == "You said: caf\ufffd\n"


def test_a_reader_that_goes_away_ends_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shared.cli", "chat", "--provider", "script"]
    environment = chat_environment(tmp_path, ("long", ["word " * 100_000]))
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"long\nlong\n")
    process.stdin.flush()  # the input goes on: it is the reader who has enough
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(60) == 1
    assert b"Traceback" not in process.stderr.read()
    process.stdin.close()
    process.stderr.close()


def test_an_unknown_provider(tmp_path: Path) -> None:
    done = piped(tmp_path, "hello\n", args=("--provider", "antropic"))
    assert done.returncode == 2
    assert "Did you mean 'anthropic'" in done.stderr
