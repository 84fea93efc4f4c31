"""The twelve tools through the official client: the same schemas and answers as for a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from support.command import jaato
from support.mcp_clients import ERAS, on_stdio, run, told
from support.plugin_folders import command, write_plugin

from shared.plugins.subagent import SubagentPlugin


@pytest.mark.parametrize("mode", ERAS)
def test_all_tools_are_listed_with_their_schemas_and_hints(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, mode=mode) as client:
            assert mode != "legacy" or "spawn_subagent" in (client.instructions or "")
            listed = (await client.list_tools()).tools
            assert {tool.name: (tool.description, tool.input_schema) for tool in listed} == {
                tool.name: (tool.schema.description, json.loads(json.dumps(tool.schema.parameters)))
                for tool in SubagentPlugin().tools()
            }
            hints = {tool.name: tool.annotations for tool in listed}
            assert len(hints) == 12
            assert hints["list_active_subagents"].read_only_hint is True
            assert hints["spawn_subagent"].read_only_hint is False
            assert hints["cancel_subagent"].idempotent_hint is True
            assert all(hint.title for hint in hints.values())

    run(main())


@pytest.mark.parametrize("mode", ERAS)
def test_a_spawn_returns_its_result_as_structure_and_as_text(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, mode=mode) as client:
            answer = await client.call_tool("spawn_subagent", {"task": "add up", "name": "adder"})
            assert not answer.is_error
            assert json.loads(answer.content[0].text) == answer.structured_content
            result = answer.structured_content
            assert (result["success"], result["status"], result["response"]) == (True, "completed", "The sum is 4.")
            more = await client.call_tool("continue_subagent", {"name": "adder", "message": "thanks"})
            assert more.structured_content["response"] == "Understood."
            again = await client.call_tool("get_subagent_result", {"agent_id": result["agent_id"]})
            assert again.structured_content["response"] == "Understood."
            await client.call_tool("set_shared_state", {"key": "a", "value": [1]})
            state = await client.call_tool("get_shared_state", {"key": "a"})
            assert state.structured_content["value"] == [1]
            closed = await client.call_tool("close_subagent", {"name": "adder"})
            assert closed.structured_content["success"] is True

    run(main())


def test_wrong_calls_are_answered_in_words_and_start_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path) as client:
            for args, word in (({"tsk": "x"}, "tsk"), ({"task": 3}, "task"), ({"task": " "}, "task")):
                answer = await client.call_tool("spawn_subagent", args)
                assert answer.is_error
                assert answer.structured_content["success"] is False
                assert word in answer.structured_content["error"]
            lost = await client.call_tool("get_subagent_result", {"agent_id": "nobody"})
            assert "no subagent 'nobody'" in lost.structured_content["error"]
            with pytest.raises(MCPError, match=r"unknown tool 'spawn_agent'.*spawn_subagent"):
                await client.call_tool("spawn_agent", {})
            active = await client.call_tool("list_active_subagents", {})
            assert active.structured_content["count"] == 0

    run(main())


def test_a_background_run_is_announced_in_the_next_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path) as client:
            started = await client.call_tool("spawn_subagent", {"task": "add up", "background": True})
            agent_id = started.structured_content["agent_id"]

            async def news() -> list[str]:
                answer = (await client.call_tool("list_shared_state", {})).structured_content
                found: list[str] = answer.get("announcements", [])
                return found

            announced = started.structured_content.get("announcements") or await told(news, bool)
            assert agent_id in announced[0]
            assert "The sum is 4." in announced[0]
            assert await news() == []

    run(main())


def test_what_a_policy_denies_stays_denied_and_says_how_to_allow_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, "--permissions", "deny") as client:
            answer = await client.call_tool("spawn_subagent", {"task": "add up"})
            assert answer.is_error
            assert "--permissions allow" in answer.structured_content["error"]
            assert (await client.call_tool("list_subagent_profiles", {})).structured_content["success"] is True

    run(main())


def test_plugins_are_those_of_the_workspace_wherever_the_server_was_started(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    agent = {"name": "carpenter", "description": "Builds.", "system_prompt_file": "carpenter.md"}
    manifest = {"name": "shop", "version": "1", "tools": [command("saw")], "agents": [agent]}
    write_plugin(workspace / ".jaato" / "plugins" / "shop", manifest, carpenter_md="You build.\n")
    trusted = jaato("trust", str(workspace), "--yes", cwd=tmp_path)
    assert trusted.returncode == 0, trusted

    async def main() -> None:
        async with on_stdio(workspace, "--plugin", "shop") as client:
            answer = await client.call_tool("list_subagent_profiles", {})
            assert "carpenter" in [profile["name"] for profile in answer.structured_content["profiles"]]

    run(main())
