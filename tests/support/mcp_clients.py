"""The official MCP client against `jaato mcp` in a process of its own, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-tests"
MODERN = "2026-07-28"
ERAS = ("legacy", MODERN)

# What the children do, by what they are told: see the module `script_file`.
SCRIPT = [
    {"when": "add up", "replies": [{"text": "The sum is 4."}]},
    {
        "when": "look and ponder",
        "replies": [{"calls": [{"name": "list_files", "args": {}}]}, {"text": "", "delay": 600}],
    },
    {
        "when": "write a file",
        "replies": [{"calls": [{"name": "cli", "args": {"command": "echo yes > out.txt"}}]}, {"text": "that was it"}],
    },
    {
        "when": "write and ponder",
        "replies": [{"calls": [{"name": "cli", "args": {"command": "touch x"}}]}, {"text": "never", "delay": 600}],
    },
    {
        "when": "wait and write",
        "replies": [
            {"calls": [{"name": "get_shared_state", "args": {"key": "go", "wait_for_version": 1}}]},
            {"calls": [{"name": "cli", "args": {"command": "echo yes > out.txt"}}]},
            {"text": "that was it"},
        ],
    },
    {
        "when": "write twelve files",
        "replies": [{"calls": [{"name": "cli", "args": {"command": f"touch {n}.txt"}}]} for n in range(12)]
        + [{"text": "all written"}],
    },
    {
        "when": "sleep",
        "replies": [{"calls": [{"name": "cli", "args": {"command": "echo $$ > pid; exec sleep 600"}}]}],
    },
    {"when": "", "replies": [{"text": "Understood."}]},
]
Elicit = Callable[[Any, Any], Awaitable[ElicitResult]]


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a test that talks to servers; one that hangs is ended, long after the slowest machine is through."""
    asyncio.run(asyncio.wait_for(coroutine, 240))


def command(workspace: Path, *options: str, scripted: bool = True) -> list[str]:
    """The program with a scripted model and its workspace."""
    model: list[str] = []
    if scripted:
        script = workspace.parent / f"{workspace.name}-script.json"
        script.write_text(json.dumps(SCRIPT))
        model = ["--provider", "script", "--model", str(script)]
    return [sys.executable, "-m", "shared.cli", "mcp", *model, "--workspace", str(workspace), *options]


def environment(workspace: Path, **more: str) -> dict[str, str]:
    """An environment without keys, settings or a home of its own."""
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(workspace.parent), "JAATO_TRACE_LOG": "", **more}


@asynccontextmanager
async def on_stdio(
    workspace: Path,
    *options: str,
    mode: str = "auto",
    elicit: Elicit | None = None,
    scripted: bool = True,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """A client with a server process of its own."""
    program, *args = command(workspace, *options, scripted=scripted)
    server = StdioServerParameters(command=program, args=args, env=environment(workspace, **(env or {})))
    async with Client(server, mode=mode, elicitation_callback=elicit) as client:
        yield client


@dataclass(frozen=True)
class Web:
    """A server that many clients can reach."""

    url: str
    process: subprocess.Popen[str]

    @asynccontextmanager
    async def client(
        self, *, mode: str = "auto", name: str | None = None, token: str = TOKEN, elicit: Elicit | None = None
    ) -> AsyncIterator[Client]:
        """One client; `name` is the conversation it asks for."""
        headers = {"Authorization": f"Bearer {token}", **({"Jaato-Conversation": name} if name else {})}
        http = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=None))
        async with (
            http,
            Client(
                streamable_http_client(self.url, http_client=http), mode=mode, elicitation_callback=elicit
            ) as client,
        ):
            yield client

    def post(self, **headers: str) -> httpx2.Response:
        """A handshake by hand, with these headers."""
        opening = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "by hand", "version": "1"},
            },
        }
        accept = {"Accept": "application/json, text/event-stream"}
        return httpx2.post(self.url, json=opening, headers={**accept, **headers}, timeout=30)


@contextmanager
def on_the_web(workspace: Path, *options: str, token: str = TOKEN, **more: str) -> Iterator[Web]:
    """A server over HTTP on a free port of the loopback interface; `more` is for its environment."""
    words = [*command(workspace, "--http", "--port", "0"), *options]
    env = environment(workspace, JAATO_MCP_TOKEN=token, **more)
    process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line + process.stderr.read()
        yield Web(found[0], process)
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


def answers(*decisions: str | None, seen: list[str] | None = None) -> Elicit:
    """A user who answers with these decisions in turn (the last one for ever); None declines."""
    left = list(decisions)

    async def elicit(context: Any, params: Any) -> ElicitResult:
        if seen is not None:
            seen.append(params.message)
        decision = left.pop(0) if len(left) > 1 else left[0]
        if decision is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"decision": decision})

    return elicit


class Sleeper:
    """The program that a child told to sleep starts; `pid` waits until it runs."""

    def __init__(self, workspace: Path) -> None:
        self._fifo = workspace / "pid"
        os.mkfifo(self._fifo)

    def pid(self) -> int:
        """Its process id."""
        return int(self._fifo.read_text())


async def told(call: Callable[[], Awaitable[Any]], fits: Callable[[Any], bool]) -> Any:
    """Ask again until the answer fits."""
    until = time.monotonic() + 120
    while not fits(answer := await call()):
        assert time.monotonic() < until, f"still {answer}"
        await asyncio.sleep(0.02)
    return answer
