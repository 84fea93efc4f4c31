"""Tools of MCP servers in a conversation: exposing waits for nobody, the first turn has them, changes arrive."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from support.tools import calls, results_of, steps

from shared import JaatoClient, PluginRegistry
from shared.providers.script import ScriptProvider

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"


def test_servers_of_mcp_json_are_there_in_the_first_turn(tmp_path: Path) -> None:
    servers = {
        "s": {"command": sys.executable, "args": [str(SERVER), "stdio"]},
        "gone": {"command": "no-such-program"},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    registry = PluginRegistry()
    registry.discover()
    registry.expose_tool("mcp", {"workspace": str(tmp_path), "wait_seconds": 30})
    assert registry.get_all_tool_names() == [], "exposing does not wait for servers"
    script = steps(calls(("s__add", {"a": 2, "b": 3})), "done")
    with JaatoClient(provider_name="script", workspace=tmp_path, trust_workspace=True) as client:
        client.register_provider("script", ScriptProvider(script))
        client.connect()
        client.configure_tools(registry, permissions="allow")
        assert client.send_message("add") == "done"
        assert "5" in results_of(client.get_history())[0]
        status, _ = client.execute_user_command("mcp", "status")
    assert "gone" in status
    assert "failed" in status
