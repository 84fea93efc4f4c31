"""Calls that wait: progress while they do, and a cancel that stops what they wait for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support.mcp_clients import ERAS, on_stdio, on_the_web, run, told


async def _until_pondering(client: Client, tool: str, args: dict[str, Any]) -> tuple[asyncio.Task[Any], list[str]]:
    """Begin a call and wait until its progress tells of the second model call."""
    heard: list[str] = []
    values: list[float] = []
    second = asyncio.Event()

    async def progress(value: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")
        values.append(value)
        if "turn 1 of" in heard[-1] and "model" in heard[-1]:
            second.set()

    task = asyncio.ensure_future(client.call_tool(tool, args, progress_callback=progress))
    waiting = asyncio.ensure_future(second.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    assert second.is_set(), heard
    assert values == sorted(set(values))
    return task, heard


async def _active(client: Client) -> list[dict[str, Any]]:
    answer = await client.call_tool("list_active_subagents", {})
    found: list[dict[str, Any]] = answer.structured_content["active_sessions"]
    return found


async def _stopped(client: Client) -> str:
    (agent,) = await told(lambda: _active(client), lambda found: found and not found[0]["can_cancel"])
    return str(agent["last_status"])


@pytest.mark.parametrize("mode", ERAS)
def test_a_cancelled_request_cancels_the_run_it_waits_for(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, mode=mode) as client:
            args = {"task": "look and ponder", "name": "thinker"}
            task, heard = await _until_pondering(client, "spawn_subagent", args)
            assert heard[-1].startswith("thinker: ")
            assert "tokens" in heard[-1]
            task.cancel()
            assert await _stopped(client) == "cancelled"

    run(main())


@pytest.mark.parametrize(("mode", "name"), [("legacy", None), ("auto", None), ("auto", "mine")])
def test_the_same_over_http(tmp_path: Path, mode: str, name: str | None) -> None:
    async def main() -> None:
        with on_the_web(tmp_path) as web:
            async with web.client(mode=mode, name=name) as client:
                task, _ = await _until_pondering(client, "spawn_subagent", {"task": "look and ponder"})
                task.cancel()
                assert await _stopped(client) == "cancelled"

    run(main())


def test_a_cancelled_wait_leaves_background_runs_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path) as client:
            await client.call_tool("spawn_subagent", {"task": "look and ponder", "background": True, "name": "a"})
            await told(lambda: _active(client), lambda found: found[0]["turn_count"] == 1)
            wait = asyncio.ensure_future(client.call_tool("wait_for_subagents", {}))
            await client.call_tool("list_shared_state", {})
            wait.cancel()
            (agent,) = await _active(client)
            assert agent["status"] == "running"
            stopped = await client.call_tool("cancel_subagent", {"name": "a"})
            assert stopped.structured_content["cancelled"][0]["status"] == "cancelled"

    run(main())


def test_a_wait_reports_on_all_it_waits_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path) as client:
            for name in ("a", "b"):
                args = {"task": "look and ponder", "background": True, "name": name}
                await client.call_tool("spawn_subagent", args)
            await told(lambda: _active(client), lambda found: all(each["turn_count"] == 1 for each in found))
            task, heard = await _until_pondering(client, "wait_for_subagents", {"ids": ["a", "b"]})
            assert heard[-1].startswith("0 of 2 finished; a: turn 1 of 10, model, ")
            await client.call_tool("cancel_subagent", {"name": "a"})
            await client.call_tool("cancel_subagent", {"name": "b"})
            assert [each["status"] for each in (await task).structured_content["results"]] == ["cancelled"] * 2

    run(main())


def test_parallel_spawns_report_each_to_its_own_call(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path) as client:
            args = {"task": "look and ponder"}
            begun = [await _until_pondering(client, "spawn_subagent", {**args, "name": name}) for name in ("a", "b")]
            for (task, heard), name in zip(begun, ("a", "b"), strict=True):
                assert all(message.startswith(f"{name}: ") for message in heard)
                task.cancel()
            await told(lambda: _active(client), lambda found: not any(each["can_cancel"] for each in found))

    run(main())
