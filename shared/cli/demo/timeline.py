"""Timeline: the events of a recording in one order, each with its moment; where threads raced, the story decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from shared.cli.demo.conductor import Step
from shared.cli.demo.story import MAIN, TASKS
from shared.events import AgentCreated, Event, ToolEnded, ToolStarted

TOOL_SECONDS = 0.3  # how long a tool seems to take
_ORDER = (MAIN, *TASKS)


@dataclass(frozen=True)
class Moment:
    """An event and when it happened."""

    at: float
    event: Event


class Timeline:
    """Takes steps and gives moments; agents are known by their names, since their ids are made up anew each time."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {"main": MAIN}
        self._begun: dict[str, float] = {}  # by call id
        self._places: dict[str, int] = {}

    def moments(self, step: Step) -> Iterator[Moment]:
        """The events of one step, with tools that take their time."""
        at, ended = step.at, False
        for event in self._ordered(step):
            if isinstance(event, ToolStarted):
                self._begun[event.call_id] = at
                self._places[event.call_id] = len(self._places)
            elif isinstance(event, ToolEnded):
                if not ended and self._begun.get(event.call_id, at) == at:
                    at, ended = at + TOOL_SECONDS, True
                event = replace(event, duration_seconds=at - self._begun.get(event.call_id, at))
            yield Moment(at, event)

    def _ordered(self, step: Step) -> list[Event]:
        events = [self._renamed(event) for event in step.events]
        first = [event for event in events if event.agent_id == step.released]
        rest = [event for event in events if event.agent_id != step.released]
        rest.sort(key=lambda event: _ORDER.index(event.agent_id))  # each agent's own order is kept
        return [*self._in_order_of_calls(first), *self._in_order_of_calls(rest)]

    def _renamed(self, event: Event) -> Event:
        if isinstance(event, AgentCreated):
            self._names[event.agent_id] = event.name
            parent = self._names.get(event.parent_id or "", event.parent_id)
            event = replace(event, parent_id=parent)
        return replace(event, agent_id=self._names.get(event.agent_id, event.agent_id))

    def _in_order_of_calls(self, events: Iterable[Event]) -> Iterator[Event]:
        """Calls of one reply run at the same time and end in any order; here they end as they began."""
        called: list[str] = []
        ends: dict[str, ToolEnded] = {}
        for event in events:
            if isinstance(event, ToolStarted):
                called.append(event.call_id)
            if isinstance(event, ToolEnded) and event.call_id in called:
                ends[event.call_id] = event
                if len(ends) == len(called):
                    yield from (ends[call] for call in called)
                    called, ends = [], {}
                continue
            yield event
        yield from ends.values()
