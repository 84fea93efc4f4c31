"""The provider `openai_compatible`: OpenAI, Ollama, vLLM, llama.cpp and all that speak chat completions."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from shared.cancel import CancelToken
from shared.config import openai_api_key, openai_base_url
from shared.errors import (
    AuthFailed,
    CancelledException,
    ConfigError,
    IncompleteStream,
    MissingDependency,
    ModelNotFound,
    ProviderError,
    ServerFailed,
    unknown_name,
)
from shared.providers import transport
from shared.providers.base import ModelRequest, OnChunk, ProviderConfig, Traits
from shared.providers.openai_errors import from_answer
from shared.providers.openai_messages import NAME, body, dialect, tools
from shared.providers.openai_reply import ReplyBuilder
from shared.types import ProviderResponse

if TYPE_CHECKING:
    import openai

DEFAULT_URL = "https://api.openai.com/v1"
NO_KEY = "not-needed"  # the SDK insists on a key; servers of one's own ignore it
TAIL_SECONDS = 2.0  # how long to wait, once the answer is whole, for usage and the end of the stream
_EXTRAS = ("body", "headers", "stream_usage")

TRAITS = Traits(
    context_windows=(
        ("gpt-3.5", 16_385),
        ("gpt-4", 8_192),
        ("gpt-4-turbo", 128_000),
        ("gpt-4o", 128_000),
        ("gpt-4.1", 1_047_576),
        ("gpt-5", 400_000),
        ("gpt-5-chat", 128_000),
        ("gpt-5.4", 1_050_000),
        ("gpt-5.4-mini", 400_000),
        ("gpt-5.4-nano", 400_000),
        ("gpt-5.5", 1_050_000),
        ("gpt-5.6", 1_050_000),
        ("gpt-5.6-luna", 400_000),
        ("gpt-oss", 131_072),
        ("o1", 200_000),
        ("o3", 200_000),
        ("o4", 200_000),
    ),
    default_context_window=128_000,
)


class OpenAICompatibleProvider:
    """A chat completions server; one instance and one connection pool serve all sessions."""

    name = NAME
    traits = TRAITS

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._url = _base_url(config)
        host = urlsplit(self._url).hostname or ""
        self._official = host == "openai.com" or host.endswith(".openai.com")
        self._stream_usage, self._extra_body, self._headers = _extra(config)
        self._key = config.api_key or openai_api_key() or (None if self._official else NO_KEY)
        if self._key is None:
            raise AuthFailed(
                f"{NAME}: no API key; set OPENAI_API_KEY (or ProviderConfig.api_key), or for a server of your own "
                "its address in OPENAI_BASE_URL (or ProviderConfig.base_url)",
                provider=NAME,
            )
        self._lock = threading.Lock()
        self._connected: tuple[openai.OpenAI, transport.Lease] | None = None

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        """Answer one request; see `Provider.generate`."""
        cancel.raise_if_cancelled()
        if not request.model.strip():
            raise ModelNotFound(f"{NAME}: no model was given; name one that {self._url} offers", provider=NAME)
        client = self._connect()
        spoken = dialect(
            request.model, official=self._official, stream_usage=self._stream_usage, extra_body=self._extra_body
        )
        content = body(request, spoken)
        names = tools(request.tools).names
        builder = ReplyBuilder(on_chunk, names=names, prompt_tokens=_prompt_tokens(request))
        # Only the SDK's part runs inside `_chunks`: an error of the host's own on_chunk passes unchanged.
        with (
            transport.cancellable(cancel) as scope,
            contextlib.closing(self._chunks(client, request, content, builder, cancel)) as chunks,
        ):
            for chunk in chunks:
                builder.add(chunk) if request.stream else builder.add_whole(chunk)
                cancel.raise_if_cancelled()
                if builder.ended:
                    scope.patience = TAIL_SECONDS
        return builder.build(structured=request.settings.response_schema is not None)

    def _chunks(
        self,
        client: openai.OpenAI,
        request: ModelRequest,
        content: bytes,
        builder: ReplyBuilder,
        cancel: CancelToken,
    ) -> Generator[Any, None, None]:
        """The server's chunks as plain JSON, with every exception in our words."""
        began = False
        try:
            for chunk in _send(client, content, stream=request.stream):
                began = True
                error = chunk.get("error") if isinstance(chunk, Mapping) else None
                if error:
                    raise from_answer(None, chunk, {}, model=request.model, url=self._url, usage=builder.usage)
                yield chunk
        except ProviderError:
            raise
        except Exception as error:  # the SDK lets JSON and type errors out as they are
            if cancel.is_cancelled:
                raise CancelledException(cancel.reason) from error
            if builder.ended:
                return  # everything was said before the line broke
            raise self._translated(
                error, request.model, streaming=request.stream, began=began, builder=builder
            ) from error

    def _translated(
        self, error: Exception, model: str, *, streaming: bool, began: bool = False, builder: ReplyBuilder | None = None
    ) -> ProviderError | CancelledException:
        import openai

        usage = builder.usage if builder is not None else None
        if isinstance(error, openai.APIStatusError):
            headers = error.response.headers
            return from_answer(error.status_code, error.body, headers, model=model, url=self._url, usage=usage)
        if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
            return transport.failure(error, provider=NAME, url=self._url, streaming=began, usage=usage)
        if isinstance(error, openai.APIError):  # an error event within a stream
            told = error.body or {"message": error.message}
            return from_answer(None, told, {}, model=model, url=self._url, usage=usage)
        kind = IncompleteStream if streaming else ServerFailed
        text = f"{NAME}: {self._url} sent something that cannot be read: {transport.one_line(error)}"
        return kind(text, provider=NAME, usage=usage)

    def list_models(self, prefix: str = "") -> list[str]:
        """Names of the models on offer."""
        client = self._connect()
        try:
            listing = client.get("/models", cast_to=object)
            entries = listing.get("data") if isinstance(listing, Mapping) else None
            names = [str(entry["id"]) for entry in entries or ()]
        except Exception as error:  # as in `_chunks`
            raise self._translated(error, "", streaming=False) from error
        return [name for name in names if name.startswith(prefix)]

    def close(self) -> None:
        """Let go of connections; the next call makes new ones."""
        with self._lock:
            connected, self._connected = self._connected, None
        if connected is not None:
            connected[1].release()

    def _connect(self) -> openai.OpenAI:
        found = self._connected
        if found is not None:
            return found[0]
        lease = transport.lease(self._config, provider=NAME, base_url=self._url, credentials=self._key or "")
        fresh = _sdk_client(lease, self._config, self._url, self._key, self._headers)  # not under the lock
        with self._lock:
            found = self._connected
            if found is None:
                self._connected = (fresh, lease)
                return fresh
        lease.release()
        return found[0]


def _send(client: openai.OpenAI, content: bytes, *, stream: bool) -> Generator[Any, None, None]:
    """Post ready-made bytes: `chat.completions.create` would walk through the whole history on every turn."""
    from openai import Stream

    if not stream:
        yield client.post("/chat/completions", content=content, cast_to=object)
        return
    with client.post(
        "/chat/completions", content=content, cast_to=object, stream=True, stream_cls=Stream[object]
    ) as it:
        yield from it


def _sdk_client(
    lease: transport.Lease, config: ProviderConfig, url: str, key: str | None, headers: Mapping[str, str]
) -> openai.OpenAI:
    try:
        import openai
    except ImportError as error:
        lease.release()
        raise MissingDependency(f"{NAME} needs the package 'openai': pip install openai") from error
    return openai.OpenAI(
        api_key=key,
        base_url=url,
        timeout=transport.timeouts(config),
        max_retries=0,  # the governor retries, for all sessions together
        default_headers=headers,
        http_client=lease.client,
    )


def _base_url(config: ProviderConfig) -> str:
    if config.base_url is not None:
        return transport.check_base_url(config.base_url, source="base_url")
    return transport.check_base_url(openai_base_url() or DEFAULT_URL, source="OPENAI_BASE_URL")


def _extra(config: ProviderConfig) -> tuple[bool, Mapping[str, Any] | None, Mapping[str, str]]:
    for name in config.extra:
        if name not in _EXTRAS:
            raise ConfigError(f"{NAME}: {unknown_name('setting in extra', str(name), _EXTRAS)}")
    extra_body, headers = config.extra.get("body"), config.extra.get("headers", {})
    for name, value in (("body", extra_body or {}), ("headers", headers)):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{NAME}: '{name}' in extra is an object, not {type(value).__name__}")
    shown = {str(name): str(value) for name, value in headers.items()}
    return bool(config.extra.get("stream_usage", True)), extra_body, shown


def _prompt_tokens(request: ModelRequest) -> int:
    """The prompt's estimated size, for servers that do not tell."""
    if request.prompt_tokens:
        return request.prompt_tokens
    return len(request.system) // 3 + request.tools.tokens + sum(message.tokens for message in request.messages)
