"""Over HTTP: who is let in, clients that do not see each other, and coming back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from support.mcp_clients import MODERN, TOKEN, Sleeper, Web, on_the_web, run, told
from support.mcp_hosts import alive

from shared.store import Reader
from shared.store.place import USUAL

GOOD = {"Authorization": f"Bearer {TOKEN}"}


async def _names(client: Client) -> list[str]:
    answer = await client.call_tool("list_active_subagents", {})
    return [each["name"] for each in answer.structured_content["active_sessions"]]


def test_only_the_token_from_a_local_page_gets_in(tmp_path: Path) -> None:
    with on_the_web(tmp_path) as web:
        assert web.post(**GOOD).status_code == 200
        assert web.post().status_code == 401
        assert web.post().headers["www-authenticate"] == "Bearer"
        for wrong in ("Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN):
            assert web.post(Authorization=wrong).status_code == 401
        assert web.post(**GOOD, Origin="https://evil.example").status_code == 403
        assert web.post(**GOOD, Origin="null").status_code == 403
        assert web.post(**GOOD, Origin="http://localhost:5173").status_code == 200
        assert web.post(**GOOD, Host="evil.example").status_code == 421
        assert httpx2.get(web.url.removesuffix("/mcp") + "/other", headers=GOOD).status_code == 404


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_two_clients_at_once_do_not_see_each_other(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        with on_the_web(tmp_path) as web:
            async with web.client(mode=mode) as one, web.client(mode=mode) as other:
                started = await one.call_tool("spawn_subagent", {"task": "add up", "name": "mine"})
                await one.call_tool("set_shared_state", {"key": "secret", "value": 1})
                agent_id = started.structured_content["agent_id"]
                assert await _names(one) == ["mine"]
                assert await _names(other) == []
                assert (await other.call_tool("list_shared_state", {})).structured_content["keys"] == []
                for tool in ("get_subagent_result", "cancel_subagent", "close_subagent"):
                    lost = await other.call_tool(tool, {"agent_id": agent_id})
                    assert "no subagent" in lost.structured_content["error"]
                assert (await other.list_resources()).resources == []
                with pytest.raises(MCPError, match="no resource"):
                    await other.read_resource(f"jaato://agents/{agent_id}/result")

    run(main())


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_a_client_that_names_its_conversation_finds_its_runs_again(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        with on_the_web(tmp_path) as web:
            async with web.client(mode=mode, name="monday") as client:
                await client.call_tool("spawn_subagent", {"task": "add up", "name": "done"})
                await client.call_tool("spawn_subagent", {"task": "look and ponder", "name": "on", "background": True})
            async with web.client(mode=mode, name="monday") as client:
                assert sorted(await _names(client)) == ["done", "on"]
                found = await client.call_tool("get_subagent_result", {"name": "done"})
                assert found.structured_content["response"] == "The sum is 4."
                running = await client.call_tool("get_subagent_result", {"name": "on"})
                assert running.structured_content["complete"] is False
            async with web.client(mode=mode, name="tuesday") as client:
                assert await _names(client) == []

    run(main())


def test_a_client_comes_back_with_the_id_of_its_session(tmp_path: Path) -> None:
    with on_the_web(tmp_path) as web:
        session = {**GOOD, "Mcp-Session-Id": web.post(**GOOD).headers["mcp-session-id"]}
        _send(web, session, "notifications/initialized", None)
        _send(web, session, "tools/call", {"name": "spawn_subagent", "arguments": {"task": "add up", "name": "a"}})
        found = _send(
            web, session, "tools/call", {"name": "get_subagent_result", "arguments": {"name": "a"}}
        )  # each request is a connection of its own
        assert "The sum is 4." in found.text


def _send(web: Web, headers: dict[str, str], method: str, params: dict[str, Any] | None) -> httpx2.Response:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        body |= {"id": 7, "params": params}
    more = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    response = httpx2.post(web.url, json=body, headers={**headers, **more}, timeout=60)
    assert response.status_code in (200, 202), response.text
    return response


def test_a_session_that_is_ended_takes_its_runs_along(tmp_path: Path) -> None:
    async def main() -> None:
        sleeper = Sleeper(tmp_path)
        with on_the_web(tmp_path, "--permissions", "allow") as web:
            async with web.client() as client:
                await client.call_tool("spawn_subagent", {"task": "sleep", "background": True})
                pid = await asyncio.to_thread(sleeper.pid)
            await told(lambda: _alive(pid), lambda alive: not alive)

    run(main())


async def _alive(pid: int) -> bool:
    return alive(pid)


def test_the_protocol_without_sessions_needs_a_name(tmp_path: Path) -> None:
    async def main() -> None:
        with on_the_web(tmp_path) as web:
            async with web.client(mode="auto") as client:
                assert client.protocol_version != MODERN
            async with web.client(mode="auto", name="mine") as client:
                assert client.protocol_version == MODERN
            async with web.client(mode=MODERN) as client:
                with pytest.raises(MCPError, match="Jaato-Conversation"):
                    await client.list_tools()
            async with web.client(mode="auto", name="x" * 200) as client:
                with pytest.raises(MCPError, match="128"):
                    await client.list_tools()

    run(main())


def test_idle_conversations_are_let_go_and_found_again(tmp_path: Path) -> None:
    async def main() -> None:
        with on_the_web(tmp_path, "--keep-minutes", "0.01") as web, Reader(tmp_path / USUAL) as reader:
            async with web.client(name="short") as client:
                await client.call_tool("spawn_subagent", {"task": "add up", "name": "a"})

            async def live() -> list[bool]:
                return [each.is_live for each in reader.conversations()]

            await told(live, lambda found: found == [False])
            async with web.client(name="short") as client:
                assert await _names(client) == ["a"]

    run(main())


def test_without_a_store_idle_conversations_are_gone(tmp_path: Path) -> None:
    async def main() -> None:
        with on_the_web(tmp_path, "--keep-minutes", "0.01", JAATO_STORE="off") as web:
            async with web.client(name="short") as client:
                await client.call_tool("spawn_subagent", {"task": "add up", "name": "a"})

            async def later() -> list[str]:
                await asyncio.sleep(1.5)  # longer than a conversation is kept: asking more often would keep it
                async with web.client(name="short") as client:
                    return await _names(client)

            await told(later, lambda found: found == [])
        assert not (tmp_path / USUAL).exists()

    run(main())
