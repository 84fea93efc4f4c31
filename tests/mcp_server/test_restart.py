"""A server that starts again under the same name: earlier runs are there, and nobody else's are."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from support.mcp_clients import ERAS, MODERN, TOKEN, command, environment, on_stdio, on_the_web, run, told
from support.mcp_hosts import children

from shared.store import Reader
from shared.store.place import USUAL

NAME = ("--conversation", "monday")
PONDER = {"task": "look and ponder", "name": "thinker", "background": True}


async def _call(client: Client, tool: str, **args: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await client.call_tool(tool, args)).structured_content
    return found


async def _active(client: Client) -> dict[str, dict[str, Any]]:
    found = await _call(client, "list_active_subagents")
    return {each["name"]: each for each in found["active_sessions"]}


async def _leave_work(client: Client) -> None:
    """One run that has ended, one that has not and is in its second turn, and a shared value."""
    await _call(client, "spawn_subagent", task="add up", name="adder")
    await _call(client, "spawn_subagent", **PONDER)
    await _call(client, "set_shared_state", key="plan", value="b")
    await told(lambda: _active(client), lambda found: found["thinker"]["turn_count"] == 1)


async def _find_work(client: Client) -> None:
    """The same, in a server that was started after the other had been killed."""
    found = await _active(client)
    assert set(found) == {"adder", "thinker"}
    assert found["thinker"]["last_status"] == "interrupted"
    assert (await _call(client, "get_subagent_result", name="adder"))["response"] == "The sum is 4."
    left = await _call(client, "get_subagent_result", name="thinker")
    assert (left["status"], left["complete"]) == ("interrupted", True)
    assert (await _call(client, "get_shared_state", key="plan"))["value"] == "b"
    listed = {each.name for each in (await client.list_resources()).resources}
    assert listed == {"adder result", "adder transcript", "thinker result", "thinker transcript"}
    read = (await client.read_resource("jaato://agents/adder/result")).contents[0]
    assert json.loads(read.text)["response"] == "The sum is 4."
    said = (await client.read_resource("jaato://agents/thinker/transcript")).contents[0].text
    assert "look and ponder" in said
    assert "list_files" in said
    went_on = await _call(client, "continue_subagent", name="thinker", message="add up")
    assert (went_on["status"], went_on["response"]) == ("completed", "The sum is 4.")


@asynccontextmanager
async def _killed_on_stdio(workspace: Path, *options: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client whose server process is killed in the end."""
    before = children()
    async with on_stdio(workspace, *options, mode=mode) as client:
        yield client
        (server,) = children() - before
        os.kill(server, signal.SIGKILL)


@pytest.mark.parametrize("mode", ERAS)
def test_a_killed_stdio_server_is_taken_up(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        async with _killed_on_stdio(tmp_path, *NAME, mode=mode) as client:
            await _leave_work(client)
        async with on_stdio(tmp_path, *NAME, mode=mode) as client:
            await _find_work(client)
        async with on_stdio(tmp_path, env={"JAATO_MCP_CONVERSATION": "monday"}, mode=mode) as client:
            assert (await _active(client))["thinker"]["last_status"] == "completed"

    run(main())


@pytest.mark.parametrize("mode", ERAS)
def test_a_killed_web_server_is_taken_up(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        with on_the_web(tmp_path) as web:
            async with web.client(mode=mode, name="monday") as client:
                await _leave_work(client)
            web.process.kill()
        with on_the_web(tmp_path) as web:
            async with web.client(mode=mode, name="monday") as client:
                await _find_work(client)
            async with web.client(mode=mode, name="tuesday") as client:
                assert await _active(client) == {}

    run(main())


def test_an_orderly_end_cancels_and_what_was_cancelled_can_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        with on_the_web(tmp_path) as web:  # it is given the time to end; a client kills a stdio server that is slow
            async with web.client(name="monday") as client:
                await _leave_work(client)
        with on_the_web(tmp_path) as web:
            async with web.client(name="monday") as client:
                assert (await _call(client, "get_subagent_result", name="thinker"))["status"] == "cancelled"
                went_on = await _call(client, "continue_subagent", name="thinker", message="add up")
                assert went_on["status"] == "completed"

    run(main())


def test_what_nobody_has_heard_of_is_told_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with _killed_on_stdio(tmp_path, *NAME) as client:
            await _leave_work(client)
        async with _killed_on_stdio(tmp_path, *NAME) as client:
            (news,) = (await _call(client, "list_shared_state"))["announcements"]
            assert "'thinker': interrupted" in news
            assert "adder" not in news
        async with on_stdio(tmp_path, *NAME) as client:
            assert "announcements" not in await _call(client, "list_shared_state")
            assert (await _active(client))["thinker"]["last_status"] == "interrupted"

    run(main())


def test_a_result_that_was_read_is_not_announced_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with _killed_on_stdio(tmp_path, *NAME) as client:
            await _call(client, "spawn_subagent", task="add up", name="adder", background=True)
            await _call(client, "get_subagent_result", name="adder", wait=True)
            await _call(client, "set_shared_state", key="read", value=True)  # whatever was noted before is on disk
        async with on_stdio(tmp_path, *NAME) as client:
            assert "announcements" not in await _call(client, "list_shared_state")

    run(main())


def test_without_a_name_each_start_is_a_new_conversation(tmp_path: Path) -> None:
    async def main() -> None:
        for _ in range(2):
            async with on_stdio(tmp_path) as client:
                assert await _active(client) == {}
                await _call(client, "spawn_subagent", task="add up", name="adder")

    run(main())


def test_a_name_belongs_to_its_token(tmp_path: Path) -> None:
    async def main() -> None:
        with on_the_web(tmp_path) as web:
            async with web.client(name="monday") as client:
                started = await _call(client, "spawn_subagent", task="add up", name="adder")
        with on_the_web(tmp_path, token="another-token") as web:
            async with web.client(name="monday", token="another-token") as client:
                assert await _active(client) == {}
                lost = await _call(client, "get_subagent_result", agent_id=started["agent_id"])
                assert "no subagent" in lost["error"]
                with pytest.raises(MCPError, match="no resource"):
                    await client.read_resource(f"jaato://agents/{started['agent_id']}/transcript")
        async with on_stdio(tmp_path, *NAME) as client:
            assert await _active(client) == {}
        with on_the_web(tmp_path) as web:
            async with web.client(name="monday") as client:
                assert set(await _active(client)) == {"adder"}

    run(main())
    for file in (tmp_path / USUAL).parent.iterdir():
        assert TOKEN.encode() not in file.read_bytes()
        assert b"another-token" not in file.read_bytes()


def test_a_live_conversation_is_never_taken_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, *NAME) as client:
            await _call(client, "spawn_subagent", **PONDER)
            await asyncio.to_thread(_second_is_refused, tmp_path)
            assert (await _active(client))["thinker"]["status"] == "running"
            async with on_stdio(tmp_path, "--conversation", "tuesday") as other:
                assert await _active(other) == {}

    run(main())


def _second_is_refused(workspace: Path) -> None:
    done = subprocess.run(
        command(workspace, *NAME),
        env=environment(workspace),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=80,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert "'monday' is in use by another server" in line


def test_two_web_servers_do_not_share_a_live_conversation(tmp_path: Path) -> None:
    async def main() -> None:
        with on_the_web(tmp_path) as web, on_the_web(tmp_path) as second:
            async with web.client(name="monday", mode=MODERN) as client:
                await _call(client, "spawn_subagent", task="add up", name="adder")
                async with second.client(name="monday", mode=MODERN) as other:
                    with pytest.raises(MCPError, match="in use by another server"):
                        await other.list_tools()
                    web.process.kill()
                    web.process.wait()
                    assert set(await _active(other)) == {"adder"}

    run(main())


def test_of_many_that_start_at_once_one_leads(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    opening = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    servers = [
        subprocess.Popen(
            command(tmp_path, *NAME),
            env=environment(tmp_path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for server in servers:
        assert server.stdin is not None
        server.stdin.write(opening)
        server.stdin.flush()
    refused = [server for server in servers if server.stdout is not None and not server.stdout.readline()]
    assert len(refused) == 3
    for server in servers:
        _, errors = server.communicate(timeout=60)
        assert (server in refused) == ("in use by another server" in errors)


def test_without_a_store_a_name_lives_in_memory(tmp_path: Path) -> None:
    async def main() -> None:
        for _ in range(2):
            async with on_stdio(tmp_path, *NAME, env={"JAATO_STORE": "off"}) as client:
                assert await _active(client) == {}
                await _call(client, "spawn_subagent", task="add up", name="adder")
                assert set(await _active(client)) == {"adder"}

    run(main())
    assert not (tmp_path / USUAL).exists()


def test_a_store_that_cannot_be_used_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / USUAL).mkdir(parents=True)

    async def main() -> None:
        async with on_stdio(tmp_path, *NAME) as client:
            started = await _call(client, "spawn_subagent", task="add up", name="adder")
            assert started["response"] == "The sum is 4."
            assert "'monday' is not kept" in started["announcements"][0]
            assert "announcements" not in await _call(client, "list_active_subagents")

    run(main())


def test_a_name_that_is_none_ends_the_server_with_one_line(tmp_path: Path) -> None:
    for options in (("--conversation", " "), ("--conversation", "x" * 129), ("--http", "--conversation", "a")):
        words = command(tmp_path, *options, scripted=False)
        done = subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--conversation" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_a_conversation_with_a_name_is_kept_once(tmp_path: Path) -> None:
    async def main() -> None:
        for _ in range(2):
            async with on_stdio(tmp_path, *NAME) as client:
                await _call(client, "spawn_subagent", task="add up")

    run(main())
    with Reader(tmp_path / USUAL) as reader:
        (kept,) = reader.conversations()
        assert (kept.agents, kept.is_live) == (3, False)
