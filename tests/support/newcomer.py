"""A newcomer's machine: an empty home, a project folder, vendors and installers played on the spot, no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from support.labs import ANTHROPIC, DIALECTS, GEMINI, OPENAI, Dialect, WireLab
from support.openai_wire import models
from support.wire import Answer, Handler, Reply, Script, WireServer

ROOT = Path(__file__).parents[2]
ANSWER = "It delegates."
_NOWHERE = "http://127.0.0.1:9"  # the discard port: whatever is not on this machine cannot be reached
_LOCAL = re.compile(r"http://(?:localhost|127\.0\.0\.1):(11434|4318)")  # a model server, a collector of spans

#: Programs of others that a page tells people to use, as a stand-in would be: what they are asked to do is checked.
_STAND_INS = {
    "jaato": f'exec "{sys.executable}" -m shared.cli "$@"',
    "python": f'exec "{sys.executable}" "$@"',
    "python3": f'exec "{sys.executable}" "$@"',
    "pip": f'exec "{sys.executable}" "{Path(__file__).with_name("pip_stand_in.py")}" "$@"',
    "claude": 'while [ "$1" != "--" ]; do shift; done; shift; exec "$@" < /dev/null',
}


def _service(dialect: Dialect) -> Handler:
    """A vendor's service: the same answer to every request, and a list of models."""
    answering = Script(dialect.render, Reply(ANSWER), repeat=True)
    if dialect is not OPENAI:
        return answering
    return lambda request: models("qwen3") if request.path.endswith("/models") else answering(request)


class Newcomer:
    """Somebody who types what a page says; commands follow each other in one project folder.

    With `keys` the vendors' variables are set, and lead to loopback servers that speak their language.
    """

    def __init__(self, folder: Path, stack: ExitStack, *, keys: bool = True) -> None:
        self.project, self.home = folder / "project", folder / "home"
        programs = folder / "bin"
        for made in (self.project, self.home, programs):
            made.mkdir()
        for name, line in _STAND_INS.items():
            (programs / name).write_text(f"#!/bin/sh\n{line}\n")
            (programs / name).chmod(0o755)
        served = {dialect.name: WireLab(dialect, stack).serve(_service(dialect)) for dialect in DIALECTS}
        collector = stack.enter_context(WireServer(lambda request: Answer.of_json({})))
        self._local = {"11434": served[OPENAI.name].url, "4318": collector.url}
        keep = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        self._env = {
            **keep,
            "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "JAATO_TRACE_LOG": "",
            "OLLAMA_HOST": _NOWHERE,
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _NOWHERE),
            "NO_PROXY": "localhost,127.0.0.1",
        }
        if keys:
            self._env |= {
                **dict.fromkeys(("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"), "k"),
                "ANTHROPIC_BASE_URL": served[ANTHROPIC.name].url,
                "GOOGLE_GEMINI_BASE_URL": served[GEMINI.name].url,
                "OPENAI_BASE_URL": f"{served[OPENAI.name].url}/v1",
            }

    def type(self, command: str, *, stdin: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run one command line; the servers that a page expects on this machine are there."""
        line = _LOCAL.sub(lambda match: self._local[match[1]], command)
        return self._run(["bash", "-c", line], stdin, folder)

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run a program."""
        return self._run([sys.executable, "-c", code])

    def _run(self, command: list[str], stdin: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=folder or self.project, env=self._env, capture_output=True, text=True, timeout=90, input=stdin
        )
