"""Output: what a command prints, kept within a limit of memory and characters, the end above all."""

from __future__ import annotations

import codecs
from collections import deque


class Output:
    """Collects bytes as text; beyond `limit` characters only the beginning and the end are kept."""

    def __init__(self, limit: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head_room = limit // 5
        self._tail_room = limit - self._head_room
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._total = 0

    def add(self, chunk: bytes, *, final: bool = False) -> str:
        """Take bytes; returns them as text, NUL characters replaced (many services refuse them)."""
        text = self._decoder.decode(chunk, final).replace("\0", "\ufffd")
        self._total += len(text)
        fits = text[: self._head_room]
        if fits:
            self._head.append(fits)
            self._head_room -= len(fits)
        self._add_tail(text[len(fits) :])
        return text

    def text(self) -> str:
        """The output, with a note in the place of what is missing."""
        head, tail = "".join(self._head), "".join(self._tail)[-self._tail_room :]
        missing = self._total - len(head) - len(tail)
        if not missing:
            return head + tail
        return f"{head}\n[... {missing:,} of {self._total:,} characters left out ...]\n{tail}"

    def _add_tail(self, text: str) -> None:
        if not text:
            return
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())
