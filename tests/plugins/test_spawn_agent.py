"""Plugin `spawn_agent`: one tool, an advert of the agents, and nothing of the parent in the child."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.engine import in_thread
from support.stress import wait_for
from support.subagents import PATIENCE, Errands, Hold, Play, answers_in, calling, user_texts

from shared import JaatoClient, PluginRegistry
from shared.events import AgentCompleted, AgentCreated, Event
from shared.plugins.spawn_agent import SpawnAgentPlugin
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import ScriptProvider, Step
from shared.subagents.seat import Seat
from shared.subagents.tree import Tree

RESEARCH = SubagentProfile(
    "research-assistant", description="Finds sources.", system_instructions="You research.", timeout_seconds=120
)
HIDDEN = SubagentProfile("janitor", description="Cleans up.", visibility="internal")


def echo(request: ModelRequest) -> Step:
    return f"said: {user_texts(request)[-1]}"


class Desk:
    """A client with the plugin, and its tool as host code calls it."""

    def __init__(self, client: JaatoClient, play: Play, plugin: SpawnAgentPlugin) -> None:
        self.client, self.play, self._executors = client, play, plugin.get_executors()

    @property
    def tree(self) -> Tree:
        return Seat.of(self.client.get_session(), digest_tokens=1000).tree

    def spawn(self, **args: Any) -> Any:
        return self._executors["spawn_agent"](args)


@contextmanager
def desk(
    child: Any = echo,
    *profiles: SubagentProfile,
    parent: Any = None,
    permissions: Any = "allow",
    workspace: Path | None = None,
    **options: Any,
) -> Iterator[Desk]:
    play = Play(parent or Errands(), child)
    registry = PluginRegistry()
    registry.discover()
    registry.expose_tool("spawn_agent")
    given = [*(profiles or (RESEARCH, HIDDEN))]
    client = JaatoClient("script", subagents=given, workspace=workspace, **options)
    client.register_provider("script", ScriptProvider(play))
    client.connect(model="script-model")
    client.configure_tools(registry, permissions=permissions)
    plugin = registry.get_plugin("spawn_agent")
    assert isinstance(plugin, SpawnAgentPlugin)
    try:
        yield Desk(client, play, plugin)
    finally:
        client.close()


def test_available_subagents_in_the_system_prompt() -> None:
    """Description, tools and time limit of each user-facing agent, and one example call."""
    with desk() as here:
        prompt = here.client.get_session().system_prompt
        assert "research-assistant: Finds sources." in prompt
        assert "120 s" in prompt
        assert "tools: none" in prompt
        assert 'spawn_agent {"agent": ' in prompt
        assert '"context": ' in prompt
        assert "janitor" not in prompt
        assert "You research." not in prompt
        assert here.client.get_session().tool_names == ["spawn_agent"]


def test_an_agent_file_is_advertised_from_the_next_session_on(tmp_path: Path) -> None:
    folder = tmp_path / ".jaato/agents"
    folder.mkdir(parents=True)
    text = "---\nname: file-agent\ndescription: From a file.\ntools: []\ntimeoutSeconds: 45\n---\nYou are a file.\n"
    (folder / "file-agent.md").write_text(text, encoding="utf-8")
    with desk(workspace=tmp_path) as here:
        assert "file-agent: From a file." in here.client.get_session().system_prompt
        assert here.spawn(agent="file-agent", task="hello")["response"] == "said: hello"
        assert "You are a file." in here.play.child_requests[-1].system


def test_spawn_agent_null_context() -> None:
    with desk() as here:
        answer = here.spawn(agent="research-assistant", task="find it", context=None)
        assert (answer["success"], answer["status"], answer["response"]) == (True, "completed", "said: find it")


def test_spawn_agent_context_populated() -> None:
    """Context goes in front of the task in the first user message; the system prompt stays as it is on disk."""
    with desk() as here:
        here.spawn(agent="research-assistant", task="find it", context=None)
        here.spawn(agent="research-assistant", task="find it", context="It was here yesterday.")
        plain, told = here.play.child_requests
        first = user_texts(told)[0]
        assert first.index("It was here yesterday.") < first.index("find it")
        assert plain.system == told.system
        assert told.system.count("You research.") == 1


def test_spawn_agent_does_not_leak_the_parent() -> None:
    """It emits start events and uses the agent's own prompt: neither the parent's prompt nor the user's request."""
    events: list[Event] = []
    orders = ("spawn_agent", {"agent": "research-assistant", "task": "only this"})
    with desk(parent=[calling(orders), "done"], system_instructions="The parent's own secret rules.") as here:
        here.client.get_runtime().bus.subscribe(events.append, interest=frozenset({AgentCreated, AgentCompleted}))
        assert here.client.send_message("the user's private request") == "done"
        here.client.get_runtime().bus.flush()
        request = here.play.child_requests[-1]
        whole = request.system + "".join(user_texts(request))
        assert "secret rules" not in whole
        assert "private request" not in whole
        assert "You research." in request.system
        made = [event for event in events if isinstance(event, AgentCreated) and event.agent_id != "main"]
        assert [event.profile for event in made] == ["research-assistant"]


def test_one_completion_event_per_run_even_without_findings() -> None:
    events: list[Event] = []
    with desk(lambda request: "") as here:
        here.client.get_runtime().bus.subscribe(events.append, interest=frozenset({AgentCompleted}))
        answers = [here.spawn(agent="research-assistant", task=f"nothing {n}") for n in range(3)]
        here.client.get_runtime().bus.flush()
        told = [event.agent_id for event in events]
        assert sorted(told) == sorted(answer["agent_id"] for answer in answers)


def test_cancelled_with_the_parents_tool_execution() -> None:
    hold = Hold()
    orders = ("spawn_agent", {"agent": "research-assistant", "task": "slow"})
    with desk(hold, parent=[calling(orders), "done"]) as here:
        turn = in_thread(lambda: here.client.send_message("go"))
        hold.wait_entered()
        assert here.client.stop()
        turn()
        agents = here.tree.below("main")
        wait_for(lambda: all(agent.run.done.is_open for agent in agents), seconds=PATIENCE)
        assert [agent.run.status.value for agent in agents] == ["cancelled"]
        hold.release()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"agent": "research-asistant", "task": "x"}, "Did you mean 'research-assistant'"),
        ({"agent": "janitor", "task": "x"}, "unknown agent 'janitor'"),
        ({"agent": "research-assistant", "task": ""}, "task"),
        ({"agent": "research-assistant"}, "task"),
        ({"task": "x"}, "agent"),
        ({"agent": "research-assistant", "task": "x", "model": "m"}, "model"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_started(args: dict[str, Any], words: str) -> None:
    with desk() as here:
        answer = here.spawn(**args)
        assert answer["success"] is False
        assert words in answer["error"]
        assert here.tree.spawned == 0


def test_a_restricted_agent_has_only_the_tools_it_names() -> None:
    """Tool names are resolved when an agent is started."""
    reader = SubagentProfile("reader", plugins=["file_edit"], tools=["read_file"])
    with desk(echo, reader) as here:
        here.spawn(agent="reader", task="read")
        assert [schema.name for schema in here.play.child_requests[-1].tools.schemas] == ["read_file"]


def test_spawning_asks_unless_a_trusted_agent_spares_it() -> None:
    free = SubagentProfile("free", auto_approved=True)
    orders = [("spawn_agent", {"agent": name, "task": "x"}) for name in ("research-assistant", "free")]
    policy = {"version": "1.0", "defaultPolicy": "deny"}
    with desk(echo, RESEARCH, free, parent=[calling(*orders), "done"], permissions=policy) as here:
        here.client.send_message("go")
        refused, done = answers_in(here.play.parent_requests[-1])
        assert "denied" in str(refused).lower()
        assert done["success"] is True


def test_an_agent_that_has_the_tool_may_use_it_only_where_the_depth_allows() -> None:
    boss = SubagentProfile("boss", plugins=["spawn_agent"])
    with desk(lambda request: ", ".join(s.name for s in request.tools.schemas) or "none", boss) as here:
        assert "spawn_agent" not in here.spawn(agent="boss", task="x")["response"]


def test_long_results_reach_the_model_as_far_as_its_context_allows() -> None:
    with desk(lambda request: "z" * 20_000) as here:
        answer = here.spawn(agent="research-assistant", task="talk")
        assert answer["response"] == "z" * 20_000


def test_the_prompt_is_the_same_bytes_as_long_as_the_agents_are() -> None:
    prompts = set()
    for order in ((RESEARCH, HIDDEN), (HIDDEN, RESEARCH)):
        with desk(echo, *order) as here:
            prompts.add(here.client.get_session().system_prompt)
    assert len(prompts) == 1


def test_all_dialects_beside_each_other() -> None:
    """No name twice."""
    registry = PluginRegistry()
    registry.discover()
    for name in ("subagent", "sessions", "spawn_agent"):
        assert registry.expose_tool(name)
    names = [tool.name for tool in registry.tools()]
    assert len(names) == len(set(names)) == 12 + 5 + 1
