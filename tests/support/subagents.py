"""A client with the subagent plugin, and scripts that play a parent and its children."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shared import JaatoClient, PluginRegistry
from shared.plugin import ToolPlugin
from shared.plugins.subagent import SubagentPlugin
from shared.providers.base import ModelRequest, Provider
from shared.providers.script import Reply, ScriptProvider, Step
from shared.subagents.prompt import PREAMBLE
from shared.types import Role

PATIENCE = 60.0  # seconds before a test that waits for something gives up

Act = Step | Callable[[ModelRequest], Step]
Acts = Step | Sequence[Act] | Callable[[ModelRequest], Step]


def is_child(request: ModelRequest) -> bool:
    """Whether a request comes from a subagent."""
    return PREAMBLE in request.system


def task_of(request: ModelRequest) -> str:
    """The task of the child that asks, without the context block in front."""
    first = next(iter(user_texts(request)), "")
    found = re.search(r"<task>\n(.*?)\n</task>", first, re.DOTALL)
    return found[1] if found else first


def answers_in(request: ModelRequest) -> list[Any]:
    """All tool results that a request carries, parsed where they are JSON."""
    return [_parsed(result.result) for message in request.messages for result in message.results]


def last_answer(request: ModelRequest) -> Any:
    """The newest tool result that a request carries."""
    return answers_in(request)[-1]


def user_texts(request: ModelRequest) -> list[str]:
    """What the user, a parent or an inbox said, in order."""
    return [message.text or "" for message in request.messages if message.role is Role.USER]


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


class Play:
    """A script for a whole tree that records its requests.

    `parent` and `child` are a text for every call, steps, or a function of the request. A step may
    be a function too. Which step is next follows from how much the model has said in that
    conversation, so any number of children can play at once; the last step repeats.
    """

    def __init__(self, parent: Acts = "the parent's answer", child: Acts = "the child's answer") -> None:
        self.parent, self.child = parent, child
        self._lock = threading.Lock()
        self.parent_requests: list[ModelRequest] = []
        self.child_requests: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> Step:
        child = is_child(request)
        with self._lock:
            # as it was asked: a session goes on with its own history while the record stays
            (self.child_requests if child else self.parent_requests).append(_frozen(request))
        return _next(self.child if child else self.parent, request)


def _frozen(request: ModelRequest) -> ModelRequest:
    return replace(request, messages=tuple(request.messages))


def _next(acts: Acts, request: ModelRequest) -> Step:
    if isinstance(acts, (str, Reply, Exception)):
        return acts
    if callable(acts):
        return acts(request)
    said = sum(message.role is Role.MODEL for message in request.messages)
    act = acts[min(said, len(acts) - 1)]
    return act(request) if callable(act) else act


class Errands:
    """A parent that calls the tools it is told to, then says so."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, Mapping[str, Any]]] = []
        self.answers: list[Any] = []

    def __call__(self, request: ModelRequest) -> Step:
        if request.messages[-1].results:
            self.answers = [_parsed(result.result) for result in request.messages[-1].results]
            return "done"
        return calling(*self.orders)


class Hold:
    """A model that answers only when the test lets it."""

    def __init__(self, reply: Step = "held, then answered") -> None:
        self._reply = reply
        self._entered = threading.Semaphore(0)
        self._open = threading.Event()

    def __call__(self, request: ModelRequest) -> Step:
        self._entered.release()
        assert self._open.wait(PATIENCE), "the test never let go"
        return self._reply

    def wait_entered(self, count: int = 1) -> None:
        """Block until so many calls are inside."""
        for _ in range(count):
            assert self._entered.acquire(timeout=PATIENCE), "no model call arrived"

    def release(self) -> None:
        """Let all calls answer, also those to come."""
        self._open.set()


@dataclass
class Stage:
    """A connected client, its subagent plugin and the play that both follow."""

    client: JaatoClient
    plugin: SubagentPlugin
    play: Play
    executors: Mapping[str, Callable[..., Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.executors = self.plugin.get_executors()

    def call(self, tool: str, /, **args: Any) -> Any:
        """Call a tool as host code does, for the main session."""
        return self.executors[tool](args)

    def spawn(self, task: str = "a task", /, **args: Any) -> Any:
        """Spawn a subagent for the main session."""
        return self.call("spawn_subagent", task=task, **args)

    def launch(self, task: str = "a task", /, **args: Any) -> str:
        """Spawn a subagent in the background; returns its id."""
        answer = self.spawn(task, background=True, **args)
        assert answer["success"], answer
        return str(answer["agent_id"])

    def result(self, agent_id: str) -> Any:
        """Wait for a subagent and return its result."""
        return self.call("get_subagent_result", agent_id=agent_id, wait=True, timeout_seconds=PATIENCE)

    def by_model(self, *orders: tuple[str, Mapping[str, Any]]) -> list[Any]:
        """The answers to tools that the parent's model calls in one reply; its play must be an errand."""
        errands = self.play.parent
        assert isinstance(errands, Errands), "the parent follows a script of its own"
        errands.orders = list(orders)
        self.client.send_message("Do it.")
        return errands.answers

    def ask(self, message: str = "go") -> str:
        """A turn of the parent."""
        return self.client.send_message(message)


@contextmanager
def staged(
    play: Play | Acts | None = None,
    *plugins: ToolPlugin,
    config: Mapping[str, Any] | None = None,
    permissions: Any = "allow",
    workspace: Path | None = None,
    context_window: int | None = None,
    providers: Mapping[str, Provider] | None = None,
    trust_workspace: bool = False,
    expose: Sequence[str] = (),
) -> Iterator[Stage]:
    """A client whose tree follows a play; anything but a Play is what the children do, for a parent on errands.

    `plugins` are brought along, `expose` names built-in ones.
    """
    play = play if isinstance(play, Play) else Play(Errands(), play if play is not None else "the child's answer")
    registry = PluginRegistry()
    registry.discover()
    for other in plugins:
        registry.register_plugin(other, expose=True)
    for name in expose:
        registry.expose_tool(name)
    plugin = SubagentPlugin()
    registry.register_plugin(plugin)
    registry.expose_tool("subagent", {"auto_discover_profiles": False, **(config or {})})
    client = JaatoClient(provider_name="script", workspace=workspace, trust_workspace=trust_workspace)
    client.register_provider("script", ScriptProvider(play, context_window=context_window))
    for name, provider in (providers or {}).items():
        client.register_provider(name, provider)
    client.connect(model="script-model")
    client.configure_tools(registry, permissions=permissions)
    try:
        yield Stage(client, plugin, play)
    finally:
        client.close()


def calling(*given: tuple[str, Mapping[str, Any]], text: str = "") -> Reply:
    """A reply that calls tools."""
    return Reply(text, tuple((name, dict(args)) for name, args in given))


def spawning(task: str = "a task", /, **args: Any) -> Reply:
    """A reply that spawns one subagent."""
    return calling(("spawn_subagent", {"task": task, **args}))
