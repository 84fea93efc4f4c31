"""The provider `local`: a small model inside this process, for work without a key or a network."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator
from pathlib import Path

from shared.cancel import CancelToken
from shared.errors import (
    CancelledException,
    ConfigError,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    unknown_name,
)
from shared.providers.base import ModelRequest, OnChunk, ProviderConfig, ToolSet, Traits
from shared.providers.local_grammar import answer_grammar, calls_grammar
from shared.providers.local_model import LocalModel, Weights, bundled_weights, load
from shared.providers.local_prompt import named_tools, prompt
from shared.providers.local_reply import ReplyReader
from shared.types import FinishReason, ProviderResponse, TokenUsage

NAME = "local"
MODEL = "smollm2-135m"
MAX_OUTPUT = 512  # where nothing else is said
LEAST_ROOM = 32  # tokens of the context that must be left for an answer
NO_TOOLS = ToolSet()
_EXTRAS = ("path", "context_window", "threads")


class LocalProvider:
    """One model for the whole process; callers take turns.

    Settings in `extra`: `path` of a GGUF file of one's own, `context_window`, `threads`. A file that
    speaks another chat format than ChatML answers badly.
    """

    name = NAME

    def __init__(
        self,
        config: ProviderConfig | None = None,
        *,
        open_model: Callable[[Weights], LocalModel] = load,
        find_weights: Callable[[], Path] = bundled_weights,
    ) -> None:
        extra = (config or ProviderConfig()).extra
        for name in extra:
            if name not in _EXTRAS:
                raise ConfigError(f"{NAME}: {unknown_name('setting in extra', str(name), _EXTRAS)}")
        given = extra.get("path")
        self._own = given is not None
        path = Path(str(given)).expanduser() if given is not None else find_weights()
        window, threads = (_positive(extra.get(name), name) for name in ("context_window", "threads"))
        self._model: LocalModel = open_model(Weights(path, window, threads))
        self.traits = Traits(
            governed=False,  # nobody counts requests here: the line is the only limit
            default_max_output_tokens=MAX_OUTPUT,
            default_context_window=self._model.context_window,
        )

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        """Answer one request when it is this call's turn; see `Provider.generate`."""
        cancel.raise_if_cancelled()
        if self._model.line.is_held_here:
            raise ProviderError(f"{NAME}: asked again from within its own answer; ask when it has ended", provider=NAME)
        tools = self._offered(request)
        tokens, room = self._prepared(request, tools)
        reader = ReplyReader(lambda text: on_chunk("text", text) if request.stream else None, calls=bool(tools.schemas))
        written = 0
        try:
            answer = self._pieces(request, tools, tokens, cancel)
            with self._model.line.place(cancel), contextlib.closing(answer) as pieces:
                for piece in pieces:
                    written += 1
                    reader.feed(piece)
                    if written >= room:
                        break
        except CancelledException as cancelled:
            usage = TokenUsage.of(len(tokens), written) if written else None
            raise CancelledException(cancelled.message, usage=usage) from None
        response = _response(request, reader, TokenUsage.of(len(tokens), written), cut=written >= room)
        if not request.stream and (text := response.get_text()):
            on_chunk("text", text)
        return response

    def list_models(self, prefix: str = "") -> list[str]:
        """The one model that there is."""
        return [MODEL] if MODEL.startswith(prefix) else []

    def close(self) -> None:
        """Nothing to let go of: the model leaves memory with the last provider that has it."""

    def _offered(self, request: ModelRequest) -> ToolSet:
        """The tools that the answer may call. The bundled model is too small to choose: it gets those the user names.

        Left to itself it would call for ever, or never; so it calls what was named, once, and then answers.
        """
        if request.tool_choice == "none":
            return NO_TOOLS
        return request.tools if self._own else ToolSet(named_tools(request))

    def _prepared(self, request: ModelRequest, tools: ToolSet) -> tuple[list[int], int]:
        """The prompt as tokens, and how many the answer may have."""
        if not self._own and request.model != MODEL:
            raise ModelNotFound(f"{NAME}: {unknown_name('model', request.model, [MODEL])}", provider=NAME)
        tokens, window = self._model.encode(prompt(request, tools)), self._model.context_window
        if len(tokens) + LEAST_ROOM > window:
            raise ContextOverflow(
                f"{NAME}: the prompt has {len(tokens)} tokens, the model's context {window}: "
                "use fewer tools or a shorter prompt",
                provider=NAME,
            )
        return tokens, min(request.settings.max_output_tokens or MAX_OUTPUT, window - len(tokens))

    def _pieces(
        self, request: ModelRequest, tools: ToolSet, tokens: list[int], cancel: CancelToken
    ) -> Generator[bytes, None, None]:
        """What the model writes; only its own failures are translated, never those of who listens."""
        temperature = request.settings.temperature or 0.0
        try:
            grammar = self._grammar(request, tools)
            yield from self._model.write(tokens, grammar=grammar, temperature=temperature, cancel=cancel)
        except RuntimeError as error:
            raise ProviderError(f"{NAME}: the model failed: {error}", provider=NAME) from error

    def _grammar(self, request: ModelRequest, tools: ToolSet) -> str | None:
        """What the model may write: calls of the tools, JSON of a shape, or (None) anything."""
        schema = request.settings.response_schema
        if not tools.schemas:
            return None if schema is None else answer_grammar(schema)
        if NAME not in tools.memo:
            tools.memo[NAME] = calls_grammar(tools, must_call=not self._own)
        return str(tools.memo[NAME])


def _response(request: ModelRequest, reader: ReplyReader, usage: TokenUsage, *, cut: bool) -> ProviderResponse:
    parts = reader.finish()
    reason = FinishReason.MAX_TOKENS if cut else FinishReason.TOOL_USE if reader.called else FinishReason.STOP
    structured = None
    if request.settings.response_schema is not None and not reader.called:
        with contextlib.suppress(ValueError):  # cut short, or written while there were tools to call
            structured = json.loads("".join(part.text or "" for part in parts))
    return ProviderResponse(parts, usage, reason, structured_output=structured)


def _positive(given: object, name: str) -> int | None:
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given > 0):
        return given
    raise ConfigError(f"{NAME}: '{name}' in extra is a whole number above 0, not {given!r}")
