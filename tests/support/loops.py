"""For tests of code that lives in event loops: is the loop free while something is awaited?"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0


class Pulse:
    """A task that counts as often as the loop lets it; a loop that is held up counts nothing."""

    def __init__(self) -> None:
        self.count = 0

    async def beat(self) -> None:
        """Count until cancelled."""
        while True:
            self.count += 1
            await asyncio.sleep(0)

    async def reaches(self, more: int) -> None:
        """Wait until the loop has gone on for so many rounds."""
        until = self.count + more
        while self.count < until:
            await asyncio.sleep(0)


async def beside(work: Awaitable[T], pulse: Pulse) -> T:
    """Await something while the pulse beats."""
    beating = asyncio.ensure_future(pulse.beat())
    try:
        return await asyncio.wait_for(work, PATIENCE)
    finally:
        beating.cancel()
