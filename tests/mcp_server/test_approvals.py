"""Approvals through the client's user; without one the policy decides, and says how to allow."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult, InputRequiredResult
from support.mcp_clients import ERAS, MODERN, Elicit, answers, on_stdio, on_the_web, run, told

WRITE = {"task": "write a file", "name": "writer"}


@pytest.mark.parametrize("mode", ERAS)
def test_an_accepted_question_lets_the_call_run(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        seen: list[str] = []
        async with on_stdio(tmp_path, mode=mode, elicit=answers("once", seen=seen)) as client:
            answer = await client.call_tool("spawn_subagent", WRITE)
            assert answer.structured_content["status"] == "completed"
        (question,) = seen
        assert "writer" in question
        assert "cli" in question
        assert "echo yes > out.txt" in question
        assert (tmp_path / "out.txt").read_text() == "yes\n"

    run(main())


async def _dismiss(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="cancel")


async def _nonsense(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"decision": "always"})


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("elicit", [answers(None), answers("deny"), _dismiss, _nonsense])
def test_every_other_answer_denies_it(tmp_path: Path, mode: str, elicit: Elicit) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, mode=mode, elicit=elicit) as client:
            answer = await client.call_tool("spawn_subagent", WRITE)
            assert answer.structured_content["denied_calls"] == 1
        assert not (tmp_path / "out.txt").exists()

    run(main())


@pytest.mark.parametrize("mode", ERAS)
def test_without_elicitation_the_child_is_told_how_to_allow(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, mode=mode) as client:
            answer = await client.call_tool("spawn_subagent", WRITE)
            agent_id = answer.structured_content["agent_id"]
            assert answer.structured_content["denied_calls"] == 1
            read = await client.read_resource(f"jaato://agents/{agent_id}/transcript")
            assert "--permissions allow" in read.contents[0].text
        assert not (tmp_path / "out.txt").exists()
        async with on_stdio(tmp_path, "--permissions", "allow", mode=mode) as client:
            await client.call_tool("spawn_subagent", WRITE)
        assert (tmp_path / "out.txt").exists()

    run(main())


@pytest.mark.parametrize("mode", ERAS)
def test_a_background_run_is_asked_for_as_well(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, mode=mode, elicit=answers("once")) as client:
            await client.call_tool("spawn_subagent", {**WRITE, "background": True})
            done = await client.call_tool("wait_for_subagents", {"ids": ["writer"]})
            assert done.structured_content["results"][0]["status"] == "completed"
        assert (tmp_path / "out.txt").exists()

    run(main())


def _client_of(web: Any, mode: str, elicit: Elicit) -> AbstractAsyncContextManager[Client]:
    client: AbstractAsyncContextManager[Client] = web.client(mode=mode, name="mine", elicit=elicit)
    return client


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("background", [False, True])
def test_the_same_over_http(tmp_path: Path, mode: str, background: bool) -> None:
    async def main() -> None:
        with on_the_web(tmp_path) as web:
            async with _client_of(web, mode, answers("once")) as client:
                await client.call_tool("spawn_subagent", {**WRITE, "background": background})
                done = await client.call_tool("get_subagent_result", {"name": "writer", "wait": True})
                assert done.structured_content["status"] == "completed"
        assert (tmp_path / "out.txt").exists()

    run(main())


@pytest.mark.parametrize("mode", ERAS)
def test_one_answer_can_cover_all_calls_of_a_tool(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        seen: list[str] = []
        limits = {"inline_config": {"max_turns": 20}}
        async with on_stdio(tmp_path, mode=mode, elicit=answers("session tool", seen=seen)) as client:
            answer = await client.call_tool("spawn_subagent", {"task": "write twelve files", **limits})
            assert answer.structured_content["response"] == "all written"
        assert len(seen) == 1
        assert (tmp_path / "11.txt").exists()

    run(main())


def test_questions_inside_answers_end_before_a_client_gives_up(tmp_path: Path) -> None:
    async def main() -> None:
        seen: list[str] = []
        limits = {"inline_config": {"max_turns": 20}}
        async with on_stdio(tmp_path, mode="2026-07-28", elicit=answers("once", seen=seen)) as client:
            answer = await client.call_tool("spawn_subagent", {"task": "write twelve files", **limits})
            assert answer.structured_content["status"] == "completed"
            assert answer.structured_content["denied_calls"] == 12 - len(seen) > 0

    run(main())


def test_a_question_is_put_by_the_call_that_waits_for_the_agent(tmp_path: Path) -> None:
    policy = {"version": "1.0", "defaultPolicy": "ask", "whitelist": {"tools": ["get_shared_state"]}}
    (tmp_path / "policy.json").write_text(json.dumps(policy))

    async def main() -> None:
        options = ("--permissions", str(tmp_path / "policy.json"))
        async with on_stdio(tmp_path, *options, mode=MODERN, elicit=answers("once")) as client:

            async def turns() -> list[int]:
                answer = await client.call_tool("list_active_subagents", {})
                return [each["turn_count"] for each in answer.structured_content["active_sessions"]]

            def begin(task: str) -> asyncio.Future[Any]:
                return asyncio.ensure_future(
                    client.session.call_tool("spawn_subagent", {"task": task}, allow_input_required=True)
                )

            asking = begin("wait and write")
            await told(turns, lambda found: found == [1])
            other = begin("look and ponder")  # newer, and it may be given up at any time
            await told(turns, lambda found: found == [1, 1])
            await client.call_tool("set_shared_state", {"key": "go", "value": 1})
            assert isinstance(await asking, InputRequiredResult)
            assert not other.done()
            other.cancel()

    run(main())


def test_a_client_that_does_not_come_back_has_given_its_call_up(tmp_path: Path) -> None:
    patience = 12  # seconds: the question must reach the client within them, on a loaded machine too
    policy = {"version": "1.0", "defaultPolicy": "ask", "channel": {"type": "console", "timeout": patience}}
    (tmp_path / "policy.json").write_text(json.dumps(policy))

    async def main() -> None:
        options = ("--permissions", str(tmp_path / "policy.json"))
        async with on_stdio(tmp_path, *options, mode=MODERN, elicit=answers("once")) as client:
            args = {"task": "write and ponder", "name": "writer"}
            asked = await client.session.call_tool("spawn_subagent", args, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            wrong = {"allow_input_required": True, "request_state": "made up"}
            with pytest.raises(MCPError, match="make it again"):
                await client.session.call_tool("spawn_subagent", args, **wrong)
            assert await told(lambda: _status(client), lambda found: found != "running") == "cancelled"

    run(main())


async def _status(client: Client) -> str:
    answer = await client.call_tool("list_active_subagents", {})
    (agent,) = answer.structured_content["active_sessions"]
    return str(agent.get("last_status", agent["status"]))


def test_a_cancel_withdraws_the_question(tmp_path: Path) -> None:
    async def main() -> None:
        asked = asyncio.Event()

        async def ponder(context: Any, params: Any) -> ElicitResult:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

        async with on_stdio(tmp_path, mode="legacy", elicit=ponder) as client:
            call = asyncio.ensure_future(client.call_tool("spawn_subagent", WRITE))
            await asked.wait()
            call.cancel()
            assert await told(lambda: _status(client), lambda found: found != "running") == "cancelled"
        assert not (tmp_path / "out.txt").exists()

    run(main())
