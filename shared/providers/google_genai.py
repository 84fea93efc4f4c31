"""The provider `google_genai`: Gemini with an API key or on Vertex, through the google-genai SDK."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import httpx2

from shared.cancel import CancelToken
from shared.errors import (
    AuthFailed,
    CancelledException,
    ConnectionFailed,
    IncompleteStream,
    MissingDependency,
    ModelNotFound,
    ProviderError,
    ServerFailed,
)
from shared.providers import transport
from shared.providers.base import ModelRequest, OnChunk, ProviderConfig, Traits
from shared.providers.google_access import Access, load_credentials, resolve
from shared.providers.google_errors import from_api_error
from shared.providers.google_messages import NAME, base_name, body, tools, with_continuation
from shared.providers.google_reply import ReplyBuilder
from shared.types import ProviderResponse

if TYPE_CHECKING:
    from google import genai
    from google.genai import types as sdk

    Chunks = Generator[sdk.GenerateContentResponse, None, None]

TAIL_SECONDS = 2.0  # how long to wait for the connection to become free once the answer is whole
_MILLION = 1_048_576
_WINDOWS = (
    ("gemini-", _MILLION),
    ("gemini-1.5-pro", 2 * _MILLION),
    ("gemma-", 131_072),
)
TRAITS = Traits(
    context_windows=(
        *_WINDOWS,
        *(
            (f"{place}{name}", size)
            for place in ("models/", "google/", "publishers/google/models/")
            for name, size in _WINDOWS
        ),
    ),
)


class GoogleGenAIProvider:
    """Gemini; one instance and one connection pool serve all sessions with the same credentials."""

    name = NAME
    traits = TRAITS

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._access = resolve(config)
        self._lock = threading.Lock()
        self._connected: _Connection | None = None

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        """Answer one request; see `Provider.generate`."""
        cancel.raise_if_cancelled()
        _check_model(request.model)
        connection = self._connect()
        wire = body(request)
        builder = ReplyBuilder(on_chunk, names=tools(request.tools).names)
        with transport.cancellable(cancel) as scope:
            self._collect(connection, request, wire, builder, cancel, scope)
            # Very long answers come in several requests. The SDK could do this by itself, but it would
            # also reconnect by itself after a failure, past the governor and the cancel token.
            seen: set[bytes] = set()
            while builder.resumable and builder.continuation not in seen:
                token = builder.resume()
                seen.add(token)
                self._collect(connection, request, with_continuation(wire, token), builder, cancel, scope)
        return builder.build(structured=request.settings.response_schema is not None)

    def _collect(
        self,
        connection: _Connection,
        request: ModelRequest,
        wire: dict[str, Any],
        builder: ReplyBuilder,
        cancel: CancelToken,
        scope: transport.Scope,
    ) -> None:
        # Only the SDK's part runs inside `_mapped`: an error of the host's own on_chunk passes unchanged.
        with contextlib.closing(self._mapped(connection, request, wire, builder, cancel)) as chunks:
            for chunk in chunks:
                builder.add(chunk)
                cancel.raise_if_cancelled()
                if builder.ended:  # what is left only frees the connection
                    scope.patience = TAIL_SECONDS
        scope.patience = None

    def _mapped(
        self,
        connection: _Connection,
        request: ModelRequest,
        wire: dict[str, Any],
        builder: ReplyBuilder,
        cancel: CancelToken,
    ) -> Chunks:
        """The SDK's chunks, with every exception in our words."""
        began = False
        try:
            for chunk in connection.send(request.model, wire, stream=request.stream):
                began = True
                yield chunk
        except Exception as error:  # the SDK lets transport, JSON, pydantic and type errors out as they are
            if cancel.is_cancelled:
                raise CancelledException(cancel.reason) from error
            if began and builder.ended and isinstance(error, httpx2.TransportError):
                return  # everything was said before the line broke
            raise self._translated(
                error, model=request.model, streaming=request.stream, began=began, builder=builder
            ) from error
        finally:
            _close_response()

    def _translated(
        self, error: Exception, *, model: str, streaming: bool, began: bool = False, builder: ReplyBuilder | None = None
    ) -> ProviderError | CancelledException:
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.genai.errors import APIError

        usage = builder.usage if builder is not None and began else None
        if isinstance(error, APIError):
            headers = getattr(error.response, "headers", None) or {}
            return from_api_error(error.code, error.details, headers, model=model, url=self._access.url, usage=usage)
        if isinstance(error, httpx2.HTTPError):
            answering = began or getattr(_last, "response", None) is not None
            return transport.failure(error, provider=NAME, url=self._access.url, streaming=answering, usage=usage)
        if isinstance(error, TransportError):
            text = f"{NAME}: the token service cannot be reached: {transport.one_line(error)}"
            return ConnectionFailed(text, provider=NAME)
        if isinstance(error, GoogleAuthError):
            return AuthFailed(
                f"{NAME}: no usable Google Cloud credentials ({transport.one_line(error)}); "
                "run 'gcloud auth application-default login' or set GOOGLE_APPLICATION_CREDENTIALS",
                provider=NAME,
            )
        response = getattr(_last, "response", None)
        if response is not None and response.status_code != 200:  # an error page that is not even text
            details = {"message": f"{response.status_code} {response.reason_phrase}"}
            return from_api_error(
                response.status_code, details, response.headers, model=model, url=self._access.url, usage=usage
            )
        kind = IncompleteStream if streaming else ServerFailed
        return kind(
            f"{NAME}: {self._access.url} sent something that cannot be read: {transport.one_line(error)}",
            provider=NAME,
            usage=usage,
        )

    def list_models(self, prefix: str = "") -> list[str]:
        """Names of the models that can generate content."""
        connection = self._connect()
        names: list[str] = []
        try:
            for model in connection.client.models.list():
                actions = model.supported_actions
                if model.name and (not actions or "generateContent" in actions):
                    names.append(base_name(model.name))
        except Exception as error:  # as in `_mapped`
            raise self._translated(error, model="", streaming=False) from error
        finally:
            _close_response()
        return [name for name in names if name.startswith(base_name(prefix))]

    def close(self) -> None:
        """Let go of connections; the next call makes new ones."""
        with self._lock:
            connection, self._connected = self._connected, None
        if connection is not None:
            connection.lease.release()

    def _connect(self) -> _Connection:
        found = self._connected
        if found is not None:
            return found
        fresh = _Connection(self._config, self._access)  # foreign code: not under the lock
        with self._lock:
            found = self._connected
            if found is None:
                self._connected = fresh
                return fresh
        fresh.lease.release()
        return found


class _Connection:
    """The SDK's client on our HTTP client. It must be kept: a collected SDK client closes itself."""

    def __init__(self, config: ProviderConfig, access: Access) -> None:
        try:
            from google import genai
            from google.genai import types as sdk
        except ImportError as error:
            raise MissingDependency(f"{NAME} needs the package 'google-genai': pip install google-genai") from error
        credentials = load_credentials(access)
        self.lease = transport.lease(
            config, provider=NAME, base_url=access.base_url or access.url, credentials=access.identity
        )
        self.lease.client.event_hooks = {"request": [_Limits(config)], "response": [_note_response]}
        self._no_calls = sdk.AutomaticFunctionCallingConfig(disable=True)
        self._sdk = sdk
        self.client: genai.Client = genai.Client(
            vertexai=access.vertex,
            api_key=access.api_key,
            project=access.project,
            location=access.location,
            credentials=credentials,
            http_options=sdk.HttpOptions(
                base_url=access.base_url,
                api_version=access.api_version,
                timeout=int(config.timeout_seconds * 1000),
                httpx_client=self.lease.client,
            ),
        )

    def send(self, model: str, wire: dict[str, Any], *, stream: bool) -> Chunks:
        """Send one request and give its chunks, or its one answer.

        The body goes through `extra_body`, ready made. Given as `contents`, the SDK would validate and
        convert the whole history again on every turn (27 ms for 200 messages instead of 1).
        """
        config = self._sdk.GenerateContentConfig(
            automatic_function_calling=self._no_calls,
            automatic_continuation=False,
            http_options=self._sdk.HttpOptions(extra_body=wire),
        )
        if stream:
            yield from self.client.models.generate_content_stream(model=model, contents=".", config=config)
        else:
            yield self.client.models.generate_content(model=model, contents=".", config=config)


class _Limits:
    """Corrects each request: the SDK knows one timeout for everything, and tells the server to stop by then."""

    def __init__(self, config: ProviderConfig) -> None:
        self._timeout = transport.timeouts(config).as_dict()

    def __call__(self, request: httpx2.Request) -> None:
        request.extensions["timeout"] = self._timeout
        request.headers.pop("x-server-timeout", None)


# The SDK leaves a response whose content it cannot read to garbage collection, and hides its status from us,
# so the last one of each thread is noted.
_last = threading.local()


def _note_response(response: httpx2.Response) -> None:
    _last.response = response


def _close_response() -> None:
    response = getattr(_last, "response", None)
    _last.response = None
    if response is not None:
        with contextlib.suppress(httpx2.HTTPError):
            response.close()


def _check_model(model: str) -> None:
    if not model.strip() or any(mark in model for mark in ("?", "&", "..", " ")):
        raise ModelNotFound(f"{NAME}: '{model}' is no model name; give one such as gemini-2.5-flash", provider=NAME)
