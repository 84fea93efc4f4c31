"""The `jaato` command as a person meets it: real processes, plain errors, no tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.command import ROOT, jaato
from support.labs import DIALECTS, OPENAI, WireLab
from support.wire import Answer, Reply, Script


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _one_line(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    assert done.returncode == code, done
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("jaato: ")
    return lines[0]


def test_demo_draws_a_live_tree_in_a_terminal(tmp_path: Path) -> None:
    import pty

    (tmp_path / "README.md").write_text("# Hello\n")
    master, slave = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "JAATO_TRACE_LOG": "", "TERM": "xterm"}
    command = [sys.executable, "-m", "shared.cli", "demo", str(tmp_path)]
    process = subprocess.Popen(command, stdout=slave, stderr=slave, stdin=slave, env=env, cwd=tmp_path)
    os.close(slave)
    seen = b""
    try:
        while piece := os.read(master, 65536):
            seen += piece
    except OSError:  # the other side is closed: the program has ended
        pass
    os.close(master)
    assert process.wait(30) == 0
    text = seen.decode(errors="replace")
    assert "\x1b[" in text
    assert text.count("historian") > 5, "drawn again and again while it runs"


def test_help_and_version(tmp_path: Path) -> None:
    assert "demo" in jaato("--help", cwd=tmp_path).stdout
    assert "0.1.0" in jaato("--version", cwd=tmp_path).stdout
    unknown = jaato("dmeo", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "No such command" in unknown.stderr


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_run_answers_on_stdout_and_reports_on_stderr(dialect, stack: ExitStack, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the answer is 42\n")
    from support.wire import Call

    call = Reply("Reading.", (Call("c1", "read_file", {"path": "notes.txt"}),))
    server = WireLab(dialect, stack).serve(Script(dialect.render, call, Reply("It is 42.")))
    options = ["--provider", dialect.name, "--base-url", server.url + dialect.path, "--model", dialect.model]
    keys = {"ANTHROPIC_API_KEY": "k", "GOOGLE_API_KEY": "k", "OPENAI_API_KEY": "k"}
    done = jaato("run", *options, "-p", "file_edit", "What is the answer?", cwd=tmp_path, **keys)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Reading.\nIt is 42.\n"
    assert "→ read_file" in done.stderr
    assert "the answer is 42" in json.dumps(server.requests[-1].json)


def test_run_json(tmp_path: Path) -> None:
    done = jaato("run", "--provider", "script", "--json", "hello", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert report["success"] is True
    assert report["response"] == "You said: hello"
    assert (report["status"], report["turns_used"]) == ("completed", 1)


def test_unknown_provider(tmp_path: Path) -> None:
    text = _one_line(jaato("run", "--provider", "antropic", "hi", cwd=tmp_path))
    assert "Did you mean 'anthropic'" in text


def test_no_model(tmp_path: Path) -> None:
    assert "MODEL_NAME" in _one_line(jaato("run", "--provider", "anthropic", "hi", cwd=tmp_path))


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("anthropic", "ANTHROPIC_API_KEY"), ("google_genai", "GOOGLE_API_KEY"), ("openai_compatible", "OPENAI_API_KEY")],
)
def test_missing_key(provider: str, variable: str, tmp_path: Path) -> None:
    assert variable in _one_line(jaato("run", "--provider", provider, "--model", "m", "hi", cwd=tmp_path))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_unknown_model(dialect, stack: ExitStack, tmp_path: Path) -> None:
    server = WireLab(dialect, stack).serve(lambda request: dialect.faults["no_such_model"])
    options = ["--provider", dialect.name, "--base-url", server.url + dialect.path, "--model", "nope"]
    keys = {"ANTHROPIC_API_KEY": "k", "GOOGLE_API_KEY": "k", "OPENAI_API_KEY": "k"}
    assert "nope" in _one_line(jaato("run", *options, "hi", cwd=tmp_path, **keys), 1)


def test_wrong_base_url(tmp_path: Path) -> None:
    options = ["--provider", "openai_compatible", "--model", "m"]
    assert "localhost" in _one_line(jaato("run", *options, "--base-url", "localhost:11434", "hi", cwd=tmp_path))


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    options = ["--provider", "openai_compatible", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "-q"]
    done = jaato("run", *options, "hi", cwd=tmp_path, AI_RETRY_ATTEMPTS="1")
    assert "cannot connect to http://127.0.0.1:9" in _one_line(done, 1)


def test_unknown_plugin_and_setting(tmp_path: Path) -> None:
    options = ["--provider", "script"]
    assert "Did you mean 'file_edit'" in _one_line(jaato("run", *options, "-p", "file_edits", "hi", cwd=tmp_path))
    done = jaato("run", *options, "-c", "cli.timout_seconds=3", "hi", cwd=tmp_path)
    assert "timeout_seconds" in _one_line(done)
    done = jaato("run", *options, "-c", "cli.timeout_seconds=soon", "hi", cwd=tmp_path)
    assert "timeout_seconds" in _one_line(done)
    assert "plugin.key=value" in _one_line(jaato("run", *options, "-c", "cli", "hi", cwd=tmp_path))


def test_broken_mcp_json(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x",}}')
    text = _one_line(jaato("run", "--provider", "script", "-p", "mcp", "hi", cwd=tmp_path))
    assert ".mcp.json" in text
    assert ".mcp.json:1:" in text


def test_wrong_permissions(tmp_path: Path) -> None:
    text = _one_line(jaato("run", "--provider", "script", "--permissions", "alow", "hi", cwd=tmp_path))
    assert "alow" in text


def test_an_interrupted_run_ends_with_130(stack: ExitStack, tmp_path: Path) -> None:
    import signal

    server = WireLab(OPENAI, stack).serve(lambda request: Answer().mute())
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "OPENAI_API_KEY": "k", "JAATO_TRACE_LOG": ""}
    options = ["--provider", "openai_compatible", "--base-url", server.url + "/v1", "--model", "m"]
    command = [sys.executable, "-m", "shared.cli", "run", *options, "hi"]
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
    server.wait_hanging(1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "interrupted" in stderr
