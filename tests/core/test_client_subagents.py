"""A client as the front of delegation: constructor arguments, methods, and everything made on first use."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from support.clients import connected, echo
from support.stress import run_threads
from support.subagents import Errands, Play, calling, staged, user_texts

from shared import JaatoClient, PluginRegistry
from shared.errors import ConfigError, SubagentConfigError, SubagentNotFoundError
from shared.plugins.subagent import SubagentPlugin, SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import ScriptProvider, Step
from shared.subagents import SubagentManager
from shared.subagents.seat import Seat

REVIEWER = SubagentProfile("reviewer", description="Reviews code.", system_instructions="Be strict.")


def test_agent_constructor_with_subagents(tmp_path: Path) -> None:
    """`Agent("gpt-4", subagents=[…])` works, with no plugins configured at all."""
    with connected(tmp_path, subagents=[REVIEWER, {"name": "second", "description": "Another."}]) as client:
        assert client.delegate_sync("reviewer", "look").output == "said: look"
        assert {"reviewer", "second"} <= {each.name for each in client.list_subagents()}


def test_facade_methods(tmp_path: Path) -> None:
    """delegate, delegate_async, register_subagent, list_subagents, subagent_manager"""
    with connected(tmp_path) as client:
        client.register_subagent(REVIEWER)
        assert asyncio.run(client.delegate("reviewer", "one")).output == "said: one"

        async def later() -> str:
            handle = await client.delegate_async("reviewer", "two", context_messages=[])
            return str((await handle.result()).output)

        assert asyncio.run(later()) == "said: two"
        assert "reviewer" in [each.name for each in client.list_subagents()]
        assert isinstance(client.subagent_manager, SubagentManager)
        assert client.subagent_manager is client.subagent_manager
        assert client.subagent_manager.get_usage_breakdown()["reviewer"].total_tokens > 0


def test_the_model_knows_them_from_its_first_turn() -> None:
    """What the constructor was given is there for spawn_subagent before any code delegates."""
    errands = Errands()
    errands.orders = [("list_subagent_profiles", {}), ("spawn_subagent", {"task": "look", "profile": "reviewer"})]
    registry = PluginRegistry()
    registry.register_plugin(SubagentPlugin(), expose=True, config={"auto_discover_profiles": False})
    client = JaatoClient("script", subagents=[REVIEWER])
    client.register_provider("script", ScriptProvider(Play(errands, echo)))
    client.connect()
    client.configure_tools(registry, permissions="allow")
    client.send_message("Do it.")
    listed, spawned = errands.answers
    assert [profile["name"] for profile in listed["profiles"]] == ["reviewer"]
    assert spawned["response"] == "said: look"
    client.close()


def test_registered_before_and_used_after_the_plugins_are_configured(tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        client.register_subagent(REVIEWER)
        assert client.delegate_sync("reviewer", "before").success
        registry = PluginRegistry()
        registry.discover()
        client.configure_tools(registry, permissions="allow")
        assert client.delegate_sync("reviewer", "after").output == "said: after"
        plugin = registry.get_plugin("subagent")
        assert isinstance(plugin, SubagentPlugin)
        assert plugin.catalogue.find("reviewer") is not None


def test_a_registry_that_was_never_discovered_will_do(tmp_path: Path) -> None:
    with connected(tmp_path, subagents=[REVIEWER]) as client:
        client.configure_tools(PluginRegistry(), permissions="allow")
        assert client.delegate_sync("reviewer", "look").success
        assert client.get_session().tool_names == [], "delegation by code gives the model no tools"


def test_the_settings_of_the_plugin_count_for_code_too() -> None:
    with staged(echo, config={"default_model": "another-model", "profiles": {"p": {}}}) as stage:
        assert stage.client.delegate_sync("p", "go").model == "another-model"


def test_code_and_model_share_one_engine() -> None:
    """The limits count both, and the tree shows both."""
    with staged(echo, config={"max_total_spawns": 2, "profiles": {"p": {}}}) as stage:
        stage.client.delegate_sync("p", "by code")
        assert stage.by_model(("spawn_subagent", {"task": "by model", "profile": "p"}))[0]["success"]
        with pytest.raises(Exception, match="max_total_spawns is 2"):
            stage.client.delegate_sync("p", "one more")


def test_a_child_may_spawn_though_the_host_never_exposed_the_plugin(tmp_path: Path) -> None:
    """Its tools speak to the same engine: one tree, one set of slots."""

    def child(request: ModelRequest) -> Step:
        if user_texts(request)[0] == "below":
            return "leaf"
        return "top" if request.messages[-1].results else calling(("spawn_subagent", {"task": "below"}))

    registry = PluginRegistry()
    registry.discover()
    with connected(tmp_path, child, subagents=[{"name": "top", "plugins": ["subagent"]}]) as client:
        client.configure_tools(registry, permissions="allow")
        plugin = registry.get_plugin("subagent")
        assert isinstance(plugin, SubagentPlugin)
        plugin.initialize({"max_depth": 2})
        result = client.delegate_sync("top", "go", timeout=20)
        assert result.success
        assert result.subtree_usage.total_tokens > result.token_usage.total_tokens
        assert client.subagent_manager.get_usage_breakdown()["top"] == result.subtree_usage


def test_errors_before_anything_is_connected(tmp_path: Path) -> None:
    client = JaatoClient("script", workspace=tmp_path, subagents=[REVIEWER])
    with pytest.raises(ConfigError, match="not connected"):
        client.delegate_sync("reviewer", "go")
    with pytest.raises(SubagentNotFoundError):
        client.delegate_sync("nobody", "go")
    with pytest.raises(SubagentConfigError, match="needs a name"):
        JaatoClient("script", subagents=[{"description": "x"}]).list_subagents()


def test_a_client_without_subagents_loads_nothing_of_them() -> None:
    code = (
        "import sys; from shared import JaatoClient; client = JaatoClient('script'); client.connect()\n"
        "client.send_message('hi')\n"
        "print([n for n in sys.modules if n in ('asyncio', 'shared.subagents.manager', 'shared.subagents.engine')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_many_threads_that_use_it_first_share_one_of_everything(tmp_path: Path) -> None:
    for attempt in range(10):
        with connected(tmp_path, subagents=[REVIEWER]) as client:
            outputs: list[str] = []
            run_threads(12, lambda n: outputs.append(client.delegate_sync("reviewer", "x", timeout=20).output))  # noqa: B023
            assert outputs == ["said: x"] * 12
            tree = Seat.of(client.get_session(), digest_tokens=1000).tree
            assert len(tree.below("main")) == 12, attempt


def test_ctrl_c_cancels_what_is_waited_for(tmp_path: Path) -> None:
    code = """
import os, signal, sys, threading, traceback
from shared import JaatoClient
from shared.providers.script import ScriptProvider

def is_waiting():
    frame = sys._current_frames()[threading.main_thread().ident]
    return any(entry.name == "wait_any" for entry in traceback.extract_stack(frame))

def slow(request):
    while not is_waiting():
        threading.Event().wait(0.01)
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(20)
    return "never"

client = JaatoClient("script", subagents=[{"name": "slow"}])
client.register_provider("script", ScriptProvider(slow))
client.connect()
try:
    client.delegate_sync("slow", "go")
except KeyboardInterrupt:
    agent = client.get_session().extras["subagents"].tree.below("main")[0]
    agent.run.done.wait(20)
    print(agent.run.status.value)
client.close()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "cancelled"
