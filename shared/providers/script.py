"""A deterministic model that follows a script: for tests, demos and work without a key or a network."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.cancel import CancelToken
from shared.config import env
from shared.errors import ConfigError, ProviderError
from shared.providers.base import ModelRequest, OnChunk, ProviderConfig, Traits
from shared.types import (
    CHARS_PER_TOKEN,
    FinishReason,
    FunctionCall,
    Part,
    ProviderResponse,
    Role,
    Signature,
    TokenUsage,
)

_ids = itertools.count(1)


@dataclass(frozen=True)
class Reply:
    """What the scripted model says next; `error` is raised instead, after `delay` seconds."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    thought: str | None = None
    delay: float = 0.0
    error: Exception | None = None
    finish_reason: FinishReason | None = None
    usage: TokenUsage | None = None
    structured: Any = None


Step = str | Reply | Exception
Script = Callable[[ModelRequest], Step]


class ScriptProvider:
    """Answers from a list of steps, one after the other, or from a function of the request.

    With neither, it plays the script file named by the model, by `extra["script"]` or by
    JAATO_SCRIPT; with no file either it says back what it was told.
    """

    name = "script"
    traits = Traits(governed=False, default_context_window=200_000)

    def __init__(
        self,
        script: ProviderConfig | Script | Iterable[Step] | None = None,
        *,
        context_window: int | None = None,
        name: str = "script",
    ) -> None:
        config = script if isinstance(script, ProviderConfig) else ProviderConfig()
        steps = config.extra.get("script") if isinstance(script, ProviderConfig) else script
        if unknown := set(config.extra) - {"script"}:
            raise ConfigError(f"provider 'script': unknown setting {sorted(unknown)}; known: script")
        self.name = name
        if context_window is not None:
            self.traits = Traits(governed=False, default_context_window=context_window)
        self._script: Script | None = None
        if isinstance(steps, (str, Path)):
            self._script = load_script(Path(steps))
        elif callable(steps):
            self._script = steps
        elif steps is not None:
            self._script = _Sequence(steps)

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        """The next step of the script."""
        cancel.raise_if_cancelled()
        script = self._script or _script_for(request.model)
        step = script(request)
        reply = step if isinstance(step, Reply) else Reply(error=step) if isinstance(step, Exception) else Reply(step)
        if reply.delay and cancel.wait(reply.delay):
            cancel.raise_if_cancelled()
        if reply.thought:
            on_chunk("thought", reply.thought)
        if reply.text:
            on_chunk("text", reply.text)
        if reply.error is not None:
            raise reply.error
        cancel.raise_if_cancelled()
        return _response(reply, request, self.name)

    def list_models(self, prefix: str = "") -> list[str]:
        """Any name is a model; `echo` is as good as another."""
        return [name for name in ("echo",) if name.startswith(prefix)]

    def close(self) -> None:
        """Nothing to let go of."""


class _Sequence:
    """Steps in order, for any number of threads; when they run out, an error says so."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = iter(steps)
        self._lock = threading.Lock()

    def __call__(self, request: ModelRequest) -> Step:
        with self._lock:
            for step in self._steps:
                return step
        raise ProviderError("the script has no more steps; give it one for every model call", provider="script")


def _response(reply: Reply, request: ModelRequest, name: str) -> ProviderResponse:
    parts: list[Part] = []
    if reply.thought:
        parts.append(Part.from_thought(reply.thought, Signature(name, f"signed:{len(reply.thought)}")))
    if reply.text:
        parts.append(Part(text=reply.text))
    calls = reply.calls if request.tool_choice == "auto" else ()
    parts += [Part(function_call=FunctionCall(f"call_{next(_ids)}", tool, dict(args))) for tool, args in calls]
    finish = reply.finish_reason or (FinishReason.TOOL_USE if calls else FinishReason.STOP)
    written = len(reply.text) + sum(len(tool) + len(str(args)) for tool, args in calls)
    usage = reply.usage or TokenUsage.of(request.prompt_tokens, written // CHARS_PER_TOKEN + 1)
    return ProviderResponse(tuple(parts), usage, finish, structured_output=reply.structured)


def last_user_text(request: ModelRequest) -> str:
    """What the user said last."""
    for message in reversed(request.messages):
        if message.role is Role.USER and message.text:
            return message.text
    return ""


def echo(request: ModelRequest) -> Step:
    """Say back what was said."""
    return f"You said: {last_user_text(request)}"


def _script_for(model: str) -> Script:
    path = Path(env("JAATO_SCRIPT") or model)
    if path.suffix in (".yaml", ".yml", ".json"):
        return load_script(path)
    return echo


def load_script(path: Path) -> Script:
    """A script file: a list of rules `{when, replies}`.

    `when` is a regular expression on what the user said last; `replies` are given in order, one per
    model call: a text, or `{text, calls: [{name, args}], thought, delay}`.
    """
    from shared.providers.script_file import read_rules

    return read_rules(path)
