"""Results and transcripts as resources, with notices of change; profiles as prompts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from mcp.client import IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp.types import ResourceListChangedNotification, ResourceUpdatedNotification
from support.mcp_clients import ERAS, MODERN, command, environment, on_stdio, run


@pytest.mark.parametrize("mode", ERAS)
def test_results_and_transcripts_can_be_listed_and_read(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, mode=mode) as client:
            assert (await client.list_resources()).resources == []
            answer = await client.call_tool("spawn_subagent", {"task": "add up", "name": "adder"})
            agent_id = answer.structured_content["agent_id"]
            listed = (await client.list_resources()).resources
            assert [each.uri for each in listed] == [
                f"jaato://agents/{agent_id}/result",
                f"jaato://agents/{agent_id}/transcript",
            ]
            result = json.loads((await client.read_resource(listed[0].uri)).contents[0].text)
            assert (result["response"], result["complete"]) == ("The sum is 4.", True)
            text = (await client.read_resource("jaato://agents/adder/transcript")).contents[0].text
            assert text.index("add up") < text.index("The sum is 4.")
            templates = (await client.list_resource_templates()).resource_templates
            assert {each.uri_template for each in templates} == {
                "jaato://agents/{agent_id}/result",
                "jaato://agents/{agent_id}/transcript",
            }
            await client.call_tool("close_subagent", {"name": "adder"})
            assert "The sum is 4." in (await client.read_resource(listed[1].uri)).contents[0].text

    run(main())


def test_without_a_store_a_closed_transcript_is_let_go(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, env={"JAATO_STORE": "off"}) as client:
            await client.call_tool("spawn_subagent", {"task": "add up", "name": "adder"})
            await client.call_tool("close_subagent", {"name": "adder"})
            assert "is closed" in (await client.read_resource("jaato://agents/adder/transcript")).contents[0].text

    run(main())


@pytest.mark.parametrize(
    "uri", ["jaato://agents/nobody/result", "jaato://agents/a/b/result", "file:///etc/passwd", "jaato://agents"]
)
def test_what_is_no_resource_is_refused(tmp_path: Path, uri: str) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path) as client:
            with pytest.raises(MCPError, match="no resource"):
                await client.read_resource(uri)

    run(main())


def test_long_lists_come_in_pages(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path) as client:
            for number in range(51):
                await client.call_tool("spawn_subagent", {"task": "add up", "name": f"n{number}"})
            first = await client.list_resources()
            second = await client.list_resources(cursor=first.next_cursor)
            assert len(first.resources) + len(second.resources) == 102
            assert second.next_cursor is None
            assert len({each.uri for each in (*first.resources, *second.resources)}) == 102
            with pytest.raises(MCPError, match="cursor"):
                await client.list_resources(cursor="-3")

    run(main())


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_a_subscriber_hears_of_changes(tmp_path: Path) -> None:
    async def main() -> None:
        from mcp import Client, StdioServerParameters

        updated: asyncio.Queue[str] = asyncio.Queue()
        listed = asyncio.Event()

        async def hear(message: IncomingMessage) -> None:
            if isinstance(message, ResourceUpdatedNotification):
                updated.put_nowait(message.params.uri)
            elif isinstance(message, ResourceListChangedNotification):
                listed.set()

        program, *args = command(tmp_path)
        server = StdioServerParameters(command=program, args=args, env=environment(tmp_path))
        async with Client(server, mode="legacy", message_handler=hear) as client:
            await client.call_tool("spawn_subagent", {"task": "look and ponder", "background": True, "name": "a"})
            await listed.wait()
            await client.call_tool("spawn_subagent", {"task": "add up", "name": "b"})
            uris = [each.uri for each in (await client.list_resources()).resources if each.name == "a result"]
            await client.subscribe_resource(uris[0])
            await client.call_tool("cancel_subagent", {"name": "a"})
            assert await updated.get() == uris[0]
            await client.unsubscribe_resource(uris[0])

    run(main())


def test_a_listener_of_the_newer_protocol_hears_them_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_stdio(tmp_path, mode=MODERN) as client:
            await client.call_tool("spawn_subagent", {"task": "look and ponder", "background": True, "name": "a"})
            uris = [each.uri for each in (await client.list_resources()).resources if each.name == "a result"]
            async with client.listen(resource_subscriptions=uris) as events:
                await client.call_tool("cancel_subagent", {"name": "a"})
                async for event in events:
                    assert event.uri == uris[0]
                    break

    run(main())


def test_profiles_are_prompts(tmp_path: Path) -> None:
    (tmp_path / ".jaato" / "profiles").mkdir(parents=True)
    (tmp_path / ".jaato" / "profiles" / "counter.json").write_text('{"description": "Counts things."}')
    (tmp_path / ".jaato" / "profiles" / "secret.json").write_text('{"visibility": "internal"}')

    async def main() -> None:
        async with on_stdio(tmp_path) as client:
            found = {each.name: each for each in (await client.list_prompts()).prompts}
            assert found["counter"].description == "Counts things."
            assert "secret" not in found
            got = await client.get_prompt("counter", {"task": "Count the trees."})
            assert '"profile": "counter"' in got.messages[0].content.text
            assert "Count the trees." in got.messages[0].content.text
            for name, args in (("countr", {"task": "x"}), ("secret", {"task": "x"}), ("counter", {})):
                with pytest.raises(MCPError, match=r"unknown prompt|task"):
                    await client.get_prompt(name, args)

    run(main())
