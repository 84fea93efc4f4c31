"""Stand-ins for the embedded model that say what they are told, and the provider on top of them as a lab."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from shared.cancel import CancelToken
from shared.providers.base import Provider, ProviderConfig
from shared.providers.local import LocalProvider
from shared.providers.local_line import Line
from shared.providers.local_prompt import Piece
from shared.providers.script import Reply


class SpokenModel:
    """Writes given texts byte by byte; a character of the prompt is a token."""

    def __init__(self, *texts: str, context_window: int = 8192, fails: str = "") -> None:
        self.context_window = context_window
        self.line = Line()
        self.prompts: list[str] = []
        self.grammars: list[str | None] = []
        self._texts = list(texts)
        self._fails = fails

    def encode(self, pieces: Sequence[Piece]) -> list[int]:
        """Characters as tokens."""
        self.prompts.append("".join(piece.text for piece in pieces))
        return [ord(char) for char in self.prompts[-1]]

    def write(
        self, prompt: Sequence[int], *, grammar: str | None, temperature: float, cancel: CancelToken
    ) -> Iterator[bytes]:
        """The next text."""
        self.grammars.append(grammar)
        for byte in self._texts.pop(0).encode():
            cancel.raise_if_cancelled()
            yield bytes((byte,))
        if self._fails:
            raise RuntimeError(self._fails)


class MuteModel(SpokenModel):
    """Reads its prompt for ever, until it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def write(
        self, prompt: Sequence[int], *, grammar: str | None, temperature: float, cancel: CancelToken
    ) -> Iterator[bytes]:
        """Nothing."""
        self.asked.set()
        cancel.wait()
        cancel.raise_if_cancelled()
        yield b""


def local_provider(model: SpokenModel, *, bundled: bool = False) -> LocalProvider:
    """The provider with a stand-in instead of weights: those of the user, or those of the extra."""
    extra = {} if bundled else {"path": "stand-in.gguf"}
    return LocalProvider(
        ProviderConfig(extra=extra), open_model=lambda weights: model, find_weights=lambda: Path("bundled.gguf")
    )


def as_written(reply: Reply) -> str:
    """A scripted reply as the model would write it; it cannot think aloud."""
    calls = (json.dumps({"name": name, "arguments": dict(args)}) for name, args in reply.calls)
    return reply.text + "".join(f"<tool_call>{call}</tool_call>" for call in calls)


class LocalLab:
    """The provider `local` as a `ProviderLab`; there is no wire, so there are no faults of one."""

    faults = ("overflow",)

    def answering(self, *replies: Reply) -> Provider:
        """A provider with these replies."""
        return local_provider(SpokenModel(*map(as_written, replies)))

    def failing(self, fault: str) -> Provider:
        """A provider whose model has next to no context."""
        return local_provider(SpokenModel(context_window=8))

    def silent(self) -> tuple[Provider, Callable[[], object]]:
        """A provider that waits until it is cancelled."""
        model = MuteModel()
        return local_provider(model), lambda: model.asked.wait(20)
