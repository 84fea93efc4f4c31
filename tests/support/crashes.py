"""Processes that are killed in the middle of something, for tests of what can be taken up afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.stores import python
from support.subagents import PATIENCE, Acts, Play, Stage, answers_in, calling, is_child, task_of, user_texts

from shared import JaatoClient, Plugin, PluginRegistry, tool
from shared.plugins.subagent import SubagentPlugin
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, ScriptProvider, Step
from shared.store import Reader

RESTING = threading.Event()


class Bench(Plugin):
    """A tool that is at work when its process is killed, and one that is not."""

    name = "bench"

    @tool
    def saw(self, wood: str) -> str:
        """Saw wood, for ever."""
        ready()
        return f"sawed {wood}"

    @tool
    def rest(self, wood: str) -> str:
        """Sit on the wood, for ever."""
        RESTING.set()
        threading.Event().wait()
        return wood

    @tool
    def measure(self, wood: str) -> str:
        """Measure wood."""
        return f"{wood} is 3 m long"


@contextmanager
def hosted(
    path: Path,
    play: Play | Acts,
    *,
    config: Mapping[str, Any] | None = None,
    resume: bool | str = False,
    store: Any = "path",
) -> Iterator[Stage]:
    """A client that stores its runs in a file; with `resume` it goes on with the last conversation, or a named one."""
    play = play if isinstance(play, Play) else Play("noted", play)
    registry, plugin = PluginRegistry(), SubagentPlugin()
    registry.register_plugin(Bench(), expose=True)
    registry.register_plugin(plugin)
    registry.expose_tool("subagent", {"auto_discover_profiles": False, **(config or {})})
    client = JaatoClient(provider_name="script", workspace=path.parent, store=path if store == "path" else store)
    client.register_provider("script", ScriptProvider(play))
    client.connect(model="a-model")
    client.configure_tools(registry, permissions="allow")
    try:
        if resume:
            client.resume_conversation(resume if isinstance(resume, str) else None)
        yield Stage(client, plugin, play)
    finally:
        client.close()


def ready() -> None:
    """Tell the test that the moment has come, and wait for the end."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Event().wait()


def crash(scenario: str, path: Path) -> None:
    """Run one of the scenarios below in a process of its own, and kill it when it is ready."""
    code = f"import sys, pathlib, support.crashes as c; c.{scenario}(pathlib.Path(sys.argv[1]))"
    process = python(code, str(path))
    assert process.stdout is not None
    killer = threading.Timer(PATIENCE, process.kill)
    killer.start()
    said = process.stdout.readline()
    process.kill()
    process.wait()
    killer.cancel()
    assert said == "ready\n", "the scenario did not come to its point"


# -- scenarios -----------------------------------------------------------------------------------


def at_a_tool(path: Path) -> None:
    """A subagent measures, then saws; with it another that has completed, in the background, unannounced."""

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "quick":
            return "quick work"
        return calling(("measure", {"wood": "oak"})) if not answers_in(request) else calling(("saw", {"wood": "oak"}))

    budget = {"inline_config": {"budget": {"total_tokens": 100_000, "tool_calls": 5}}}
    with hosted(path, Play("noted", child)) as stage:
        quick = stage.launch("quick", name="quick")
        stage.result(quick)
        stage.call("set_shared_state", key="plan", value={"step": 3})
        stage.launch("saw oak", name="sawyer", **budget)
        threading.Event().wait()


def with_unread_mail(path: Path) -> None:
    """A subagent saws, and was told something while it did; another was told something and has read it."""

    def child(request: ModelRequest) -> Step:
        if task_of(request) == "saw oak":
            return calling(("rest", {"wood": "oak"}))
        return calling(("measure", {"wood": "elm"})) if "mind the knots" not in user_texts(request) else _ready()

    with hosted(path, Play("noted", child)) as stage:
        stage.client.keep_conversation()
        stage.client.get_session().steer("[the user has lunch]")
        sawyer = stage.launch("saw oak", name="sawyer")
        assert RESTING.wait(PATIENCE)
        for text in ("use the fine blade", "and hurry"):
            assert stage.call("send_to_subagent", agent_id=sawyer, message=text)["success"]
        measurer = stage.launch("measure elm", name="measurer", inline_config={"max_turns": 10_000})
        stage.call("send_to_subagent", agent_id=measurer, message="mind the knots")
        threading.Event().wait()


def _ready() -> Step:
    ready()
    return ""


def at_parallel_tools(path: Path) -> None:
    """The main session calls two tools at once: one has its result, the other is at work."""
    calls = (("measure", {"wood": "elm"}), ("rest", {"wood": "elm"}))
    with hosted(path, Play([Reply("", calls)])) as stage:
        stage.client.keep_conversation()
        threading.Thread(target=stage.ask, args=("work",), daemon=True).start()
        with Reader(path) as reader:
            main = next(agent for agent in reader.agents() if agent.is_main)
            while not any(call.result for call in reader.tool_calls(main.key)):
                RESTING.wait(0.01)
        assert RESTING.wait(PATIENCE)
        ready()


def unannounced(path: Path) -> None:
    """Two runs have ended in the background, and the parent has not spoken since."""
    with hosted(path, Play("noted", lambda request: f"did {task_of(request)}")) as stage:
        stage.ask("hello")
        ids = [stage.launch(task, name=task) for task in ("first", "second")]
        tree = stage.client.get_session().extras["subagents"].tree
        for agent_id in ids:
            assert tree.get(agent_id).run.done.wait(PATIENCE)
        ready()


def in_a_model_call(path: Path) -> None:
    """A subagent waits for its model, and has said something before."""

    def child(request: ModelRequest) -> Step:
        if answers_in(request):
            ready()
        return Reply("thinking aloud", (("measure", {"wood": "ash"}),))

    with hosted(path, Play("noted", child)) as stage:
        stage.spawn("think", name="thinker")


def with_descendants(path: Path) -> None:
    """A child in the background has ended, but one below it has not: it is not announced yet."""

    def script(request: ModelRequest) -> Step:
        if task_of(request) == "leaf":
            return calling(("rest", {"wood": "pine"}))
        if not is_child(request):
            return "noted"
        return calling(("spawn_subagent", {"task": "leaf", "background": True})) if not answers_in(request) else "sent"

    config = {"max_depth": 2, "profiles": {"boss": {"plugins": ["subagent", "bench"]}}}
    with hosted(path, Play(script, script), config=config) as stage:
        boss = stage.launch("lead", profile="boss", name="boss")
        assert stage.client.get_session().extras["subagents"].tree.get(boss).run.done.wait(PATIENCE)
        assert RESTING.wait(PATIENCE)
        ready()
