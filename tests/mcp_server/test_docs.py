"""The snippets of docs/mcp.md and the README: each starts a server that a client can use."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support.mcp_clients import ROOT, environment, run

from shared.mcp_server.web import PATH

TEXT = (ROOT / "docs" / "mcp.md").read_text()
READERS = {"json": json.loads, "toml": tomllib.loads}


def _entries(text: str = TEXT) -> Iterator[dict[str, Any]]:
    for match in re.finditer(r"^```(json|toml)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        found = READERS[match[1]](match[2])
        (servers,) = (found[key] for key in ("mcpServers", "servers", "mcp_servers") if key in found)
        yield servers["jaato"]


def _programs() -> list[list[str]]:
    listed = [entry["args"] for entry in _entries() if "command" in entry]
    typed = [shlex.split(line.partition(" -- jaato ")[2]) for line in TEXT.splitlines() if " -- jaato " in line]
    return [*listed, *typed]


def test_every_host_has_a_snippet() -> None:
    assert len(_programs()) == 7
    assert all(entry.get("command", "jaato") == "jaato" for entry in _entries())
    assert all(entry["url"].endswith(PATH) for entry in _entries() if "url" in entry)


def test_the_readme_says_the_same_for_every_host() -> None:
    readme = (ROOT / "README.md").read_text()
    section = readme.partition("## In an MCP host\n")[2].partition("\n## ")[0]
    told = list(_entries(section))
    assert len(told) == 5, "Claude Code, Codex, Gemini CLI, Cursor, VS Code"
    assert all(entry in list(_entries()) for entry in told)


@pytest.mark.parametrize("args", _programs(), ids=range(7))
def test_a_snippet_starts_a_server(tmp_path: Path, args: list[str]) -> None:
    async def main() -> None:
        words = ["-m", "shared.cli", *args]
        server = StdioServerParameters(command=sys.executable, args=words, env=environment(tmp_path), cwd=tmp_path)
        async with Client(server) as client:
            assert len((await client.list_tools()).tools) == 12
            answer = await client.call_tool("spawn_subagent", {"task": "hello"})
            assert "API_KEY" in answer.structured_content["error"]

    run(main())
