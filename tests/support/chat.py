"""`jaato chat` with a scripted model, in a terminal or behind a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.terminal import Terminal, bare_environment, terminal

READY = "/help lists the commands"
WAIT_FOR_GO = {"name": "cli", "args": {"command": "until [ -e go ]; do sleep 0.05; done"}}
#: Asks about everything but what a test needs to get going.
POLICY: dict[str, Any] = {
    "version": "1.0",
    "defaultPolicy": "ask",
    "whitelist": {"tools": ["cli", "spawn_subagent"], "patterns": [], "arguments": {}},
}


def write_script(folder: Path, *rules: tuple[str, list[Any]]) -> Path:
    """A script file: for what the user says (a regular expression), the replies in order."""
    path = folder / "script.json"
    path.write_text(json.dumps([{"when": when, "replies": replies} for when, replies in rules]))
    return path


def calling(name: str, /, **args: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return {"calls": [{"name": name, "args": args}]}


def write_policy(folder: Path, **changes: Any) -> str:
    """A policy file; returns the path."""
    path = folder / "policy.json"
    path.write_text(json.dumps({**POLICY, **changes}))
    return str(path)


def chat_environment(folder: Path, *rules: tuple[str, list[Any]], **variables: str) -> dict[str, str]:
    """A bare environment in which the scripted model follows these rules; without any it echoes."""
    if rules:
        variables["JAATO_SCRIPT"] = str(write_script(folder, *rules))
    return bare_environment(folder, JAATO_HOME=str(folder / "home"), **variables)


@contextmanager
def chatting(
    folder: Path,
    *rules: tuple[str, list[Any]],
    args: tuple[str, ...] = (),
    columns: int = 90,
    rows: int = 30,
    **env: str,
) -> Iterator[Terminal]:
    """A chat in a terminal, ready for input."""
    environment = chat_environment(folder, *rules, **env)
    command = ("chat", "--provider", "script", *args)
    with terminal(*command, cwd=folder, env=environment, columns=columns, rows=rows) as screen:
        screen.wait_until(lambda: READY in " ".join(screen.text.split()) and "\n>" in screen.screen, "the prompt")
        yield screen


def piped(
    folder: Path, said: str, *rules: tuple[str, list[Any]], args: tuple[str, ...] = ("--provider", "script"), **env: str
) -> subprocess.CompletedProcess[str]:
    """A chat behind a pipe, to the end of its input, without a terminal to ask on."""
    command = [sys.executable, "-m", "shared.cli", "chat", *args]
    environment = chat_environment(folder, *rules, **env)
    out = folder / "stdout"  # a file, so that tools can see how far the conversation is
    with out.open("w") as stdout:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            input=said,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            start_new_session=True,
        )
    done.stdout = out.read_text()
    assert "Traceback" not in done.stdout + done.stderr
    return done
