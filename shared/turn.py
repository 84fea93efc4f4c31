"""Turn: one run of the loop on a session, with a fence so that it can be abandoned at any moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from shared.cancel import CancelToken
from shared.errors import CancelledException
from shared.history import History
from shared.providers.base import ChunkKind
from shared.toolbox import cancelled_result
from shared.types import FinishReason, FunctionCall, Message, ProviderResponse, Role, TokenUsage, ToolResult

OutputCallback = Callable[[str, str, str], object]
CANCEL_MARK = "[cancelled]"


@dataclass(frozen=True)
class Outcome:
    """How a turn ended. `reason` is None for a whole answer, else max_turns, output_limit, budget or cancelled."""

    text: str
    finish_reason: FinishReason
    reason: str | None = None
    model_calls: int = 0
    tool_calls: int = 0
    denied_calls: int = 0
    failed_calls: int = 0
    usage: TokenUsage = TokenUsage()
    duration_seconds: float = 0.0
    structured: Any = None


@dataclass
class Turn:
    """State of one turn. Only through it does the loop write to the history.

    When the turn is closed, by its end or from another thread, the history is left valid and
    whatever still runs for it writes nothing any more.
    """

    history: History
    cancel: CancelToken
    output: OutputCallback
    mail: Callable[[], list[str]] = list
    give_back: Callable[[list[str]], object] = lambda unread: None
    fence: CancelToken = field(default_factory=CancelToken)
    stage: str = "model"  # or tool: what the turn itself does
    touched: float = field(default_factory=time.monotonic)  # when something last moved
    cut: str | None = None  # why the next model call is the last one, whatever the model wants
    model_calls: int = 0
    tool_calls: int = 0
    denied_calls: int = 0
    failed_calls: int = 0
    usage: TokenUsage = TokenUsage()
    last_usage: TokenUsage = TokenUsage()
    started_at: float = field(default_factory=time.time)
    calls: list[dict[str, Any]] = field(default_factory=list)
    _waits: list[str] = field(default_factory=list)  # of calls that run at the same time, each what it waits for
    _texts: list[str] = field(default_factory=list)
    _chunks: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False
    _begun: float = field(default_factory=time.perf_counter)
    _speaking: bool = False

    @property
    def elapsed(self) -> float:
        """Seconds since the turn began."""
        return time.perf_counter() - self._begun

    def append(self, message: Message) -> None:
        """Add to the history, unless the turn was abandoned."""
        with self._lock:
            if self._closed:
                raise CancelledException(self.cancel.reason or "the turn was abandoned")
            self.history.append(message)
        self.touch()
        if message.role is Role.MODEL:
            self._chunks.clear()
            if text := message.text:
                self._texts.append(text)

    @property
    def text(self) -> str:
        """What the model has said so far, the piece it is saying included."""
        return "".join(self._chunks) or "\n".join(self._texts)

    def touch(self) -> None:
        """Something moved: a piece of an answer, a tool's output, the end of a call."""
        self.touched = time.monotonic()

    def wind_up(self, reason: str) -> None:
        """Let the model hand over in one last call without tools, after the tools that run now."""
        self.cut = self.cut or reason

    @property
    def phase(self) -> str:
        """What the turn is busy with: model, tool, or what one of its calls waits for."""
        waits = self._waits[-1:]
        return waits[0] if waits else self.stage

    @contextmanager
    def busy_with(self, phase: str) -> Iterator[None]:
        """Show another phase for a while; calls that run at the same time end in any order."""
        self._waits.append(phase)
        self.touch()
        try:
            yield
        finally:
            self._waits.remove(phase)
            self.touch()

    def take_mail(self) -> bool:
        """Put steering messages that arrived in the meantime into the history; False if there are none."""
        mail = self.mail()
        for read, text in enumerate(mail):
            try:
                self.append(Message.from_text(Role.USER, text))
            except CancelledException:  # abandoned just now: somebody else will read them
                self.give_back(mail[read:])
                raise
        return bool(mail)

    def take_over(self, former: Turn) -> None:
        """Go on where an earlier turn of the same work stopped: its calls and texts count."""
        self.model_calls, self.tool_calls = former.model_calls, former.tool_calls
        self.denied_calls, self.failed_calls = former.denied_calls, former.failed_calls
        self._texts[:0] = former._texts

    def count(self, reply: ProviderResponse) -> None:
        """Book a model call."""
        self.model_calls += 1
        self.usage += reply.usage
        self.last_usage = reply.usage

    def count_results(self, results: Sequence[ToolResult]) -> None:
        """Book the tool calls of one reply."""
        self.tool_calls += len(results)
        for result in results:
            self.denied_calls += result.error_kind == "denied"
            self.failed_calls += result.is_error and result.error_kind != "denied"

    def note_call(self, call: FunctionCall, seconds: float) -> None:
        """Keep the timing of a tool call for the turn's accounting."""
        self.touch()
        ended = time.time()
        self.calls.append(
            {"name": call.name, "start_time": ended - seconds, "end_time": ended, "duration_seconds": seconds}
        )

    def on_chunk(self, kind: ChunkKind, text: str) -> None:
        """Hand out a piece of the answer as it arrives."""
        if self._closed or not text:
            return
        self.touch()
        if kind == "text":
            self._chunks.append(text)
        mode = "append" if self._speaking else "write"
        self._speaking = kind == "text"
        self.output("model" if kind == "text" else "thought", text, mode if kind == "text" else "append")

    def flush_output(self) -> None:
        """The model has finished speaking for now; what follows is another block."""
        if self._speaking:
            self._speaking = False
            self.output("system", "", "flush")

    def outcome(self, reply: ProviderResponse, *, reason: str | None) -> Outcome:
        """The outcome of a turn that came to its own end."""
        text = reply.get_text() or "\n".join(self._texts)
        return self._outcome(text, reply.finish_reason, reason, reply.structured_output)

    def close(self) -> bool:
        """End the turn's right to write; False if it had ended before. Open calls are answered."""
        with self._lock:
            if self._closed:
                return False
            self._closed = True
            self.history.close_open_calls(lambda call: cancelled_result(call, self.cancel.reason))
        self.fence.cancel("the turn is over")
        return True

    def close_cancelled(self) -> Outcome | None:
        """End a cancelled turn, keeping the text so far; None if it had ended before."""
        partial, text = "".join(self._chunks), self.text
        with self._lock:
            if self._closed:
                return None
            self._closed = True
            self.history.close_open_calls(lambda call: cancelled_result(call, self.cancel.reason))
            self.history.append(Message.from_text(Role.MODEL, f"{partial}\n{CANCEL_MARK}".strip()))
        self.fence.cancel("the turn is over")
        return self._outcome(text, FinishReason.CANCELLED, "cancelled", None)

    def _outcome(self, text: str, finish: FinishReason, reason: str | None, structured: Any) -> Outcome:
        return Outcome(
            text,
            finish,
            reason,
            self.model_calls,
            self.tool_calls,
            self.denied_calls,
            self.failed_calls,
            self.usage,
            self.elapsed,
            structured,
        )
