"""The program as a host starts it: it keeps its wire clean, ends with its host, and says what it lacks."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.mcp_clients import ROOT, Sleeper, command, environment, on_stdio, on_the_web, run
from support.mcp_hosts import alive


class Wire:
    """A host that writes and reads lines by hand."""

    def __init__(self, workspace: Path, *options: str, **env: str) -> None:
        self.process = subprocess.Popen(
            command(workspace, *options),
            env=environment(workspace, **env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
        self.ask(1, "initialize", hello)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            message: dict[str, Any] = json.loads(self.process.stdout.readline())
            if message.get("id") == number:
                return message

    def sleeper(self, workspace: Path) -> int:
        """Have a child start a program; returns its process."""
        sleeper = Sleeper(workspace)
        call = {"name": "spawn_subagent", "arguments": {"task": "sleep", "background": True}}
        assert "result" in self.ask(2, "tools/call", call)
        return sleeper.pid()


def test_the_end_of_input_ends_everything(tmp_path: Path) -> None:
    wire = Wire(tmp_path, "--permissions", "allow")
    pid = wire.sleeper(tmp_path)
    assert alive(pid)
    rest, errors = wire.process.communicate(timeout=60)
    assert wire.process.returncode == 0
    assert not alive(pid)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    assert errors == ""


def test_a_host_that_stops_reading_is_gone(tmp_path: Path) -> None:
    wire = Wire(tmp_path, "--permissions", "allow")
    pid = wire.sleeper(tmp_path)
    assert wire.process.stdout is not None
    wire.process.stdout.close()
    wire.send({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}})
    assert wire.process.wait(60) == 0
    assert not alive(pid)
    assert wire.process.stderr is not None
    assert wire.process.stderr.read() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(tmp_path: Path, number: signal.Signals) -> None:
    wire = Wire(tmp_path, "--permissions", "allow")
    pid = wire.sleeper(tmp_path)
    wire.process.send_signal(number)
    assert wire.process.wait(60) == 128 + number
    assert not alive(pid)
    wire.process.communicate()


def test_a_web_server_ends_everything_too(tmp_path: Path) -> None:
    async def main() -> None:
        with on_the_web(tmp_path, "--permissions", "allow") as web:
            sleeper = Sleeper(tmp_path)
            async with web.client(name="kept") as client:
                await client.call_tool("spawn_subagent", {"task": "sleep", "background": True})
                pid = await asyncio.to_thread(sleeper.pid)
            web.process.terminate()
            web.process.wait(60)
            assert not alive(pid)

    run(main())


def test_nothing_but_the_protocol_is_written_to_standard_output(tmp_path: Path) -> None:
    wire = Wire(tmp_path, "--permissions", "allow", "-v")
    answer = wire.ask(5, "tools/call", {"name": "spawn_subagent", "arguments": {"task": "write a file"}})
    assert answer["result"]["structuredContent"]["success"] is True
    assert wire.process.stdin is not None
    wire.process.stdin.write("this is no JSON\n\n[]\n")
    wire.process.stdin.flush()
    assert "tools" in wire.ask(6, "tools/list", {})["result"]
    rest, _ = wire.process.communicate(timeout=60)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())


def test_without_any_key_a_spawn_says_what_to_set(tmp_path: Path) -> None:
    home = {"JAATO_HOME": str(tmp_path / "home")}
    profiles = tmp_path / "home" / "profiles"  # the user's own: one of the project may not choose a script as its model
    profiles.mkdir(parents=True)
    (profiles / "offline.json").write_text('{"provider": "script", "model": "echo"}')

    async def main() -> None:
        async with on_stdio(tmp_path, scripted=False, env=home) as client:
            assert len((await client.list_tools()).tools) == 12
            assert (await client.call_tool("list_subagent_profiles", {})).structured_content["success"] is True
            failed = (await client.call_tool("spawn_subagent", {"task": "hello"})).structured_content
            assert failed["success"] is False
            assert "MODEL_NAME" in failed["error"] or "GOOGLE_API_KEY" in failed["error"]
            worked = await client.call_tool("spawn_subagent", {"task": "hello", "profile": "offline"})
            assert worked.structured_content["response"] == "You said: hello"
        async with on_stdio(tmp_path, "--provider", "anthropic", "--model", "claude-x", scripted=False) as client:
            failed = (await client.call_tool("spawn_subagent", {"task": "hello"})).structured_content
            assert "ANTHROPIC_API_KEY" in failed["error"]
        async with on_stdio(tmp_path, "--provider", "script", scripted=False) as client:
            worked = await client.call_tool("spawn_subagent", {"task": "hello"})
            assert worked.structured_content["response"] == "You said: hello"

    run(main())


def _fails(tmp_path: Path, *options: str, **env: str) -> str:
    words = command(tmp_path, *options, scripted=False)
    done = subprocess.run(
        words, env=environment(tmp_path, **env), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_wrong_settings_end_it_with_one_line(tmp_path: Path) -> None:
    assert "clii" in _fails(tmp_path, "-p", "clii")
    assert "anthropik" in _fails(tmp_path, "--provider", "anthropik")
    assert "max_conc" in _fails(tmp_path, "-c", "subagent.max_conc=4")
    assert "alow" in _fails(tmp_path, "--permissions", "alow")
    assert "--allow-host" in _fails(tmp_path, "--http", "--host", "0.0.0.0", "--port", "0")
    empty = tmp_path / "token"
    empty.write_text("\n")
    assert "expected one token" in _fails(tmp_path, "--http", "--port", "0", "--token-file", str(empty))


def test_without_the_extra_there_is_one_clear_line(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from shared.cli.main import main; main(['mcp'])"
    env = {**environment(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["jaato: jaato mcp needs the extra 'mcp': pip install 'jaato-subagent[mcp]'"]
