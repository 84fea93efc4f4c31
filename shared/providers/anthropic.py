"""The Anthropic provider: Claude models through the vendor's SDK."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from shared.cancel import CancelToken
from shared.config import anthropic_api_key, anthropic_auth_token, anthropic_base_url
from shared.errors import AuthFailed, CancelledException, ConfigError, JaatoError, unknown_name
from shared.providers import anthropic_request as wire
from shared.providers import transport
from shared.providers.anthropic_errors import status_error
from shared.providers.anthropic_reply import Reply
from shared.providers.base import ModelRequest, OnChunk, ProviderConfig, Traits
from shared.types import ProviderResponse

if TYPE_CHECKING:
    import anthropic

NAME = wire.NAME
DEFAULT_URL = "https://api.anthropic.com"
NO_KEY = "anthropic: no API key: set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or pass api_key"
EXTRA = ("cache_ttl", "headers")
CACHE_MARKS = {"5m": b'{"type":"ephemeral"}', "1h": b'{"type":"ephemeral","ttl":"1h"}', "off": b""}
MOST_MODELS: Any = {"params": {"limit": 1000}}  # all in one page
_END: Final = object()
TAIL_SECONDS = 1.0  # how long to wait for the connection to become free after the closing event

TRAITS = Traits(
    accepts_temperature=False,
    default_max_output_tokens=wire.DEFAULT_MAX_TOKENS,
    context_windows=(
        ("claude-", 1_000_000),
        ("claude-3", 200_000),
        ("claude-haiku-4", 200_000),
        ("claude-opus-4", 200_000),
        ("claude-opus-4-6", 1_000_000),
        ("claude-opus-4-7", 1_000_000),
        ("claude-opus-4-8", 1_000_000),
        ("claude-sonnet-4", 200_000),
        ("claude-sonnet-4-6", 1_000_000),
    ),
    default_context_window=200_000,
)


class AnthropicProvider:
    """Speaks the Messages API. One instance serves any number of sessions and threads."""

    name = NAME
    traits = TRAITS

    def __init__(self, config: ProviderConfig) -> None:
        self._url = _base_url(config)
        self._cache, headers = _extra(config)
        key, token = config.api_key or anthropic_api_key(), None
        if key is None:
            token = anthropic_auth_token()
        self._lease = transport.lease(config, provider=NAME, base_url=self._url, credentials=key or token or "")
        try:
            self._sdk = _sdk_client(self._lease, config, self._url, key=key, token=token, headers=headers)
        except BaseException:
            self._lease.release()
            raise

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        """Answer one request; see `Provider.generate`."""
        reply = Reply(on_chunk, wire.tools(request.tools).names)
        cancel.raise_if_cancelled()
        body = wire.body(request, cache=self._cache, filter_schema=self._filter_schema)
        with self._translated(cancel, reply, request.model), transport.cancellable(cancel) as scope:
            if request.stream:
                self._stream(body, reply, cancel, scope)
            else:
                reply.whole(_read(lambda: self._sdk.post("/v1/messages", content=body, cast_to=object), reply))
        cancel.raise_if_cancelled()
        return reply.response(structured=request.settings.response_schema is not None)

    def list_models(self, prefix: str = "") -> list[str]:
        """Names of the models on offer, newest first."""
        reply = Reply(_ignore, {})
        page: Any = None
        with self._translated(CancelToken(), reply, ""):
            page = _read(lambda: self._sdk.get("/v1/models", cast_to=object, options=MOST_MODELS), reply)
        try:
            return [model["id"] for model in page["data"] if model["id"].startswith(prefix)]
        except (AttributeError, KeyError, TypeError) as error:
            raise reply.incomplete("it is not a list of models; check the base URL") from error

    def close(self) -> None:
        """Let go of the connections, which stay open while another instance uses them."""
        self._lease.release()

    @staticmethod
    def _filter_schema(schema: dict[str, Any]) -> dict[str, Any]:
        from anthropic import transform_schema

        return transform_schema(schema)

    def _stream(self, body: bytes, reply: Reply, cancel: CancelToken, scope: transport.Scope) -> None:
        from anthropic import Stream

        stream = self._sdk.post("/v1/messages", content=body, cast_to=object, stream=True, stream_cls=Stream[object])
        reply.begun = True
        with stream:
            events = iter(stream)
            while (event := _read(lambda: next(events, _END), reply)) is not _END:
                cancel.raise_if_cancelled()
                if not reply.done:
                    reply.event(event)
                if reply.done:  # the rest is read only to free the connection
                    scope.patience = TAIL_SECONDS

    @contextmanager
    def _translated(self, cancel: CancelToken, reply: Reply, model: str) -> Iterator[None]:
        """Let nothing of the SDK's or the HTTP library's own errors out."""
        import anthropic
        import httpx2

        try:
            yield
        except CancelledException as cancelled:
            cancelled.usage = reply.usage
            raise
        except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError) as error:
            if cancel.is_cancelled:
                raise CancelledException(cancel.reason, usage=reply.usage) from error
            if not reply.done:  # after the closing event nothing can spoil the answer
                raise self._failure(error, reply, model) from error

    def _failure(self, error: Exception, reply: Reply, model: str) -> JaatoError:
        import anthropic

        if isinstance(error, anthropic.APIStatusError):
            return status_error(
                status=error.status_code,
                kind=error.type if isinstance(error.type, str) else None,
                message=error.api_message if isinstance(error.api_message, str) else _excerpt(error.body),
                headers=error.response.headers,
                url=self._url,
                model=model,
                usage=reply.usage,
            )
        if isinstance(error, anthropic.CredentialsError):
            return AuthFailed(f"anthropic: no usable credentials: {transport.one_line(error)}", provider=NAME)
        return transport.failure(error, provider=NAME, url=self._url, streaming=reply.begun, usage=reply.usage)


def _read(step: Callable[[], Any], reply: Reply) -> Any:
    """Take the next thing the SDK has read; the SDK lets errors of its JSON parser through."""
    try:
        return step()
    except (ValueError, RecursionError) as error:
        if reply.done:
            return _END
        raise reply.incomplete(f"it is not JSON ({transport.one_line(error)})") from error


def _ignore(kind: str, piece: str) -> None:
    """Take a chunk that nobody wants."""


def _excerpt(body: object) -> str | None:
    return transport.one_line(body)[:200] if body else None


def _base_url(config: ProviderConfig) -> str:
    if config.base_url is not None:
        return transport.check_base_url(config.base_url, source="base_url")
    return transport.check_base_url(anthropic_base_url() or DEFAULT_URL, source="ANTHROPIC_BASE_URL")


def _extra(config: ProviderConfig) -> tuple[bytes, dict[str, str]]:
    for key in config.extra:
        if key not in EXTRA:
            raise ConfigError(unknown_name("setting of the anthropic provider", str(key), EXTRA))
    ttl = config.extra.get("cache_ttl", "5m")
    if ttl not in CACHE_MARKS:
        raise ConfigError(f"cache_ttl of the anthropic provider is one of {', '.join(CACHE_MARKS)}, not {ttl!r}")
    headers = config.extra.get("headers", {})
    if not isinstance(headers, Mapping):
        raise ConfigError("headers of the anthropic provider is an object of header names and values")
    return CACHE_MARKS[ttl], {str(name): str(value) for name, value in headers.items()}


def _sdk_client(
    lease: transport.Lease,
    config: ProviderConfig,
    url: str,
    *,
    key: str | None,
    token: str | None,
    headers: dict[str, str],
) -> anthropic.Anthropic:
    import anthropic

    try:
        client = anthropic.Anthropic(
            api_key=key,
            auth_token=token,
            base_url=url,
            timeout=transport.timeouts(config),
            max_retries=0,  # the governor retries, for all sessions together
            default_headers=headers,
            http_client=lease.client,
        )
    except anthropic.AnthropicError as error:
        raise AuthFailed(f"{NO_KEY} ({transport.one_line(error)})", provider=NAME) from error
    # Without a key the SDK looks for a profile or workload identity; it is silent when there is none either.
    if key is None and token is None and client.credentials is None:
        raise AuthFailed(NO_KEY, provider=NAME)
    return client
