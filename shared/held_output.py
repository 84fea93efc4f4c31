"""HeldOutput: an answer that nobody sees before the hooks for outgoing messages have."""

from __future__ import annotations

from shared.turn import OutputCallback


class HeldOutput:
    """Stands before a turn's output; what is said between tool calls passes when they begin, the answer is kept."""

    def __init__(self) -> None:
        self._output: OutputCallback | None = None
        self._held: list[tuple[str, str, str]] = []

    def before(self, output: OutputCallback) -> OutputCallback:
        """What the turn is to write to instead."""
        self._output = output
        return self._take

    def say(self, text: str) -> None:
        """Give out what the hooks made of the answer."""
        self._held.clear()
        if self._output is not None and text:
            self._output("model", text, "write")

    def _take(self, source: str, text: str, mode: str) -> None:
        assert self._output is not None
        if source == "model":
            self._held.append((source, text, mode))
            return
        if mode == "flush":
            for piece in self._held:
                self._output(*piece)
            self._held.clear()
        self._output(source, text, mode)
