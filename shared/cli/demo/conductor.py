"""Conductor: the demo in made-up time, one model call at a time, so that it can be recorded the same way twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from shared.cancel import CancelToken
from shared.cli.demo.story import FOREVER, MAIN, QUESTION, reply_to, speaker
from shared.client import JaatoClient
from shared.events import Event
from shared.executors.threads import Task, workers
from shared.plugins.subagent import SubagentPlugin
from shared.providers.base import ModelRequest
from shared.providers.script import Reply
from shared.subagents.agent import Subagent
from shared.tools import ToolContext

LOOK = 0.002  # seconds between two looks at who is still at work


@dataclass(frozen=True)
class Step:
    """What followed from one answer: the moment, who was answered, and the events in their order."""

    at: float
    released: str
    events: tuple[Event, ...]


class Conductor:
    """Holds every answer back until nobody is at work any more; then lets the one go that is due first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._delays: dict[str, float] = {}  # by agent: how long its answer takes, for those who wait for one
        self._gone: set[str] = set()  # those whose answer never comes
        self._released: str | None = None

    def answer(self, request: ModelRequest) -> Reply:
        """The model of the story, in the thread of the agent that asks: returns when it is this agent's turn."""
        name, reply = speaker(request), reply_to(request)
        if reply.delay >= FOREVER:
            with self._changed:
                self._gone.add(name)
            return reply
        with self._changed:
            self._delays[name] = reply.delay
            self._changed.wait_for(lambda: self._released == name)
            self._released = None
        return Reply(reply.text, reply.calls, usage=reply.usage)

    def conduct(self, client: JaatoClient, *, pause: float) -> Iterator[Step]:
        """Run the story; `pause` is how long a tool takes in made-up time."""
        events: list[Event] = []
        client.get_runtime().bus.subscribe(events.append)
        turn = workers.submit(lambda: client.send_message(QUESTION))
        at, due, released = 0.0, dict[str, float](), MAIN
        while True:
            self._wait_until_quiet(client, turn)
            client.get_runtime().bus.flush(everyone=True)
            happened, events[:] = tuple(events), []
            yield Step(at, released, happened)
            if turn.done:
                turn.result()
                return
            at += pause
            due = {name: due.get(name, at + delay) for name, delay in self._delays.items()}
            released = min(due, key=lambda name: (due[name], name))
            at = due.pop(released)
            with self._changed:
                del self._delays[released]
                self._released = released
                self._changed.notify_all()

    def _wait_until_quiet(self, client: JaatoClient, turn: Task[str]) -> None:
        tick = threading.Event()
        while not turn.done and not self._is_quiet(client):
            tick.wait(LOOK)

    def _is_quiet(self, client: JaatoClient) -> bool:
        """Whether everybody waits: for an answer, for ever, or for somebody who does."""
        session = client.get_session()
        live = {agent.name for agent in self._agents(client) if not agent.run.done.is_open}
        with self._changed:
            if self._released is not None or not live <= {*self._delays, *self._gone}:
                return False
            if MAIN in self._delays:
                return True
        turn = session.turn
        return turn is not None and turn.phase == "awaiting_child" and bool(live - self._gone)

    @staticmethod
    def _agents(client: JaatoClient) -> list[Subagent]:
        registry = client.get_runtime().registry
        plugin = registry.get_plugin("subagent") if registry is not None else None
        assert isinstance(plugin, SubagentPlugin)
        caller = plugin.engine.caller(ToolContext(MAIN, CancelToken()))
        return caller.tree.below(caller.seat.id)
