"""Plugins and scripts that tests of the loop share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from shared import Plugin, ToolContext, tool
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, Step


class Lab(Plugin):
    """Tools that do what a test needs: add, crash, wait, ignore a cancel, talk a lot."""

    name = "lab"

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Semaphore(0)
        self.release = threading.Event()
        self.together = threading.Barrier(3, timeout=20)
        self.ran: list[str] = []

    @tool
    def add(self, a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @tool
    def crash(self, text: str = "boom") -> str:
        """Raise an error."""
        raise RuntimeError(text)

    @tool
    def meet(self, who: str) -> str:
        """Return only when three calls are inside at the same time."""
        self.together.wait()
        return who

    @tool
    def wait(self, context: ToolContext) -> str:
        """Wait for a cancel, as a good tool does."""
        self.entered.release()
        context.cancel.wait(20)
        context.cancel.raise_if_cancelled()
        return "never cancelled"

    @tool
    def stubborn(self) -> str:
        """Ignore every cancel until the test lets go."""
        self.entered.release()
        self.release.wait(20)
        self.ran.append("stubborn")
        return "late"

    @tool
    def essay(self, length: int) -> str:
        """Return a long text."""
        return "begin " + "x" * length + " end"

    @tool
    async def later(self, text: str) -> str:
        """Return after a trip through the event loop."""
        import asyncio

        await asyncio.sleep(0)
        return text.upper()


def steps(*given: Step) -> Callable[[ModelRequest], Step]:
    """A script that records its requests; the last step repeats."""
    remaining = list(given)

    def play(request: ModelRequest) -> Step:
        play.requests.append(request)  # type: ignore[attr-defined]
        play.seen.append(list(request.messages))  # type: ignore[attr-defined]
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    play.requests = []  # type: ignore[attr-defined]
    play.seen = []  # type: ignore[attr-defined]
    return play


def calls(*given: tuple[str, dict[str, object]], text: str = "") -> Reply:
    """A reply that calls tools."""
    return Reply(text, tuple(given))


def results_of(messages: Sequence[object]) -> list[str]:
    """The texts of all tool results in a history."""
    return [result.text for message in messages for result in message.results]  # type: ignore[attr-defined]
