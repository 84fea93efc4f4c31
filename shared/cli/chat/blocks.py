"""BlockStream: cuts a streamed answer into Markdown blocks that are whole, so each can be laid out for good."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class BlockStream:
    """Takes pieces of text as they come and gives back the blocks they complete."""

    def __init__(self) -> None:
        self._lines: list[str] = []  # of the block under way
        self._partial = ""
        self._fence = ""  # the mark that ends the code under way

    @property
    def tail(self) -> str:
        """What has come of the block under way."""
        return "\n".join([*self._lines, self._partial])

    def feed(self, text: str) -> list[str]:
        """Add a piece; returns the blocks that are whole now."""
        *whole, self._partial = (self._partial + text).split("\n")
        return [block for line in whole if (block := self._take(line))]

    def finish(self) -> list[str]:
        """End the answer; returns what was left."""
        rest = self.tail.rstrip()
        self._lines, self._partial, self._fence = [], "", ""
        return [rest] if rest.strip() else []

    def _take(self, line: str) -> str:
        """The block that a line completes, else nothing."""
        if not line.strip() and not self._fence:
            return self._cut()
        self._lines.append(line)
        found = _FENCE.fullmatch(line)
        if found is None:
            return ""
        mark, rest = found[1], found[2]
        if not self._fence:
            self._fence = mark
        elif mark.startswith(self._fence) and not rest.strip():
            self._fence = ""
            return self._cut()
        return ""

    def _cut(self) -> str:
        block, self._lines = "\n".join(self._lines), []
        return block
