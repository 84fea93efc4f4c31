"""The embedded model's bytes as they come, taken apart into text and calls."""

from __future__ import annotations

import codecs
import itertools
import json
from collections.abc import Callable

from shared.providers.local_grammar import CLOSE, OPEN
from shared.types import FunctionCall, Part

_ids = itertools.count(1)


class ReplyReader:
    """Hands text out as it arrives, except what may be the beginning of a call."""

    def __init__(self, on_text: Callable[[str], object], *, calls: bool) -> None:
        self._on_text = on_text
        self._calls = calls
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""  # read, but not yet known to be text or a call
        self._text: list[str] = []
        self._made: list[FunctionCall] = []

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._waiting += self._decoder.decode(data)
        while self._take():
            pass

    def finish(self) -> tuple[Part, ...]:
        """What was said; a call that did not come to its end is none."""
        self._waiting += self._decoder.decode(b"", final=True)
        if not (self._calls and self._waiting.startswith(OPEN)):
            self._say(self._waiting)
        text = "".join(self._text)
        said = (Part(text=text),) if text.strip() else ()
        return (*said, *(Part(function_call=call) for call in self._made))

    @property
    def called(self) -> bool:
        """Whether there is a whole call."""
        return bool(self._made)

    def _take(self) -> bool:
        """Move on by one piece; False if more must come first."""
        if not self._calls:
            self._say(self._waiting)
            self._waiting = ""
            return False
        if self._waiting.startswith(OPEN):
            return self._take_call()
        found = self._waiting.find(OPEN)
        end = found if found >= 0 else len(self._waiting) - _overlap(self._waiting, OPEN)
        self._say(self._waiting[:end])
        self._waiting = self._waiting[end:]
        return found >= 0

    def _take_call(self) -> bool:
        """The call up to its closing mark; a mark within one of its texts does not close it."""
        written = self._waiting.removeprefix(OPEN)
        end = written.find(CLOSE)
        while end >= 0:
            try:
                call = json.loads(written[:end])
            except ValueError:  # the grammar lets only JSON through, so it goes on behind this mark
                end = written.find(CLOSE, end + 1)
                continue
            self._made.append(FunctionCall(f"local_{next(_ids)}", call["name"], call["arguments"]))
            self._waiting = written[end + len(CLOSE) :]
            return bool(self._waiting)
        return False

    def _say(self, text: str) -> None:
        if text:
            self._text.append(text)
            self._on_text(text)


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of a text may be the beginning of the mark."""
    return next((size for size in range(min(len(mark), len(text)), 0, -1) if text.endswith(mark[:size])), 0)
