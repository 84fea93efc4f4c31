"""For tests of hosts, plugins and providers: a scripted model, recordings, a ready client, conformance checks."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from shared.cancel import CancelToken
from shared.client import JaatoClient
from shared.errors import (
    AuthFailed,
    BadRequest,
    CancelledException,
    ConnectionFailed,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
)
from shared.history import problems
from shared.permissions.gate import Permissions
from shared.plugin import ToolPlugin
from shared.providers.base import ModelRequest, ModelSettings, Provider, ToolSet
from shared.providers.script import Reply, Script, ScriptProvider, Step, last_user_text
from shared.recording import record, replay
from shared.registry import PluginRegistry
from shared.store.place import StoreSetting
from shared.types import (
    Attachment,
    FinishReason,
    Message,
    Part,
    ProviderResponse,
    Role,
    Signature,
    ToolResult,
    ToolSchema,
)

__all__ = [
    "FAULTS",
    "ProviderLab",
    "Reply",
    "ScriptProvider",
    "Step",
    "check_history",
    "check_provider",
    "last_user_text",
    "record",
    "replay",
    "scripted_client",
]

#: A fault that a service shows, and the error a provider must make of it.
FAULTS: dict[str, type[ProviderError]] = {
    "rate_limited": RateLimited,
    "overloaded": Overloaded,
    "server_failed": ServerFailed,
    "dropped": ConnectionFailed,
    "cut_off": ProviderError,  # a clean end without the closing event
    "garbage": ProviderError,
    "overflow": ContextOverflow,
    "auth": AuthFailed,
    "no_such_model": ModelNotFound,
    "bad_request": BadRequest,
}
_PASSING = {"rate_limited", "overloaded", "server_failed", "dropped", "cut_off", "garbage"}


class ProviderLab(Protocol):
    """What a provider's author supplies: the provider, in front of a service that does as it is told."""

    def answering(self, *replies: Reply) -> Provider:
        """A provider whose service gives these replies, in order."""
        ...

    def failing(self, fault: str) -> Provider:
        """A provider whose service shows one of FAULTS; NotImplemented faults are left out of `faults`."""
        ...

    def silent(self) -> tuple[Provider, Callable[[], object]]:
        """A provider whose service takes a request and says nothing; and a function that waits until it has it."""
        ...

    @property
    def faults(self) -> Iterable[str]:
        """The faults that this service can show."""
        ...


@contextmanager
def scripted_client(
    script: Script | Iterable[Step],
    *plugins: ToolPlugin,
    permissions: Permissions = "allow",
    workspace: str | Path | None = None,
    trust_workspace: bool = False,
    store: StoreSetting = False,
) -> Iterator[JaatoClient]:
    """A connected client whose model follows a script and whose plugins are exposed; nothing is stored by default."""
    registry = PluginRegistry()
    for plugin in plugins:
        registry.register_plugin(plugin, expose=True)
    client = JaatoClient(provider_name="script", workspace=workspace, trust_workspace=trust_workspace, store=store)
    client.register_provider("script", ScriptProvider(script))
    client.connect()
    client.configure_tools(registry, permissions=permissions)
    try:
        yield client
    finally:
        client.close()


def check_history(messages: Sequence[Message]) -> None:
    """Fail unless every call has exactly one result and every provider would take the history."""
    found = problems(messages)
    assert not found, f"invalid history: {found}"


def check_provider(lab: ProviderLab, *, streams: Sequence[bool] = (True, False)) -> list[str]:
    """Run every conformance check; returns the names of those that passed, raises on the first that did not."""
    passed: list[str] = []
    for stream in streams:
        for check in _CHECKS:
            check(lab, stream)
            passed.append(f"{check.__name__.removeprefix('_')}[{'stream' if stream else 'whole'}]")
        for fault in lab.faults:
            _raises(lab, fault, stream)
            passed.append(f"{fault}[{'stream' if stream else 'whole'}]")
    return passed


_TOOLS = ToolSet(
    [
        ToolSchema(
            "add",
            "Add two numbers.",
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        )
    ]
)
_USER = Message.from_text(Role.USER, "What is 1 + 2?")
_names = itertools.count(1)


def _ask(
    provider: Provider,
    messages: Sequence[Message] = (_USER,),
    *,
    stream: bool,
    settings: ModelSettings | None = None,
    cancel: CancelToken | None = None,
) -> tuple[ProviderResponse, list[tuple[str, str]]]:
    chunks: list[tuple[str, str]] = []
    request = ModelRequest(
        model=f"model-{next(_names)}",
        system="Be brief.",
        tools=_TOOLS,
        messages=messages,
        settings=settings or ModelSettings(),
        stream=stream,
        prompt_tokens=sum(message.tokens for message in messages),
    )
    response = provider.generate(
        request, cancel=cancel or CancelToken(), on_chunk=lambda kind, text: chunks.append((kind, text))
    )
    return response, chunks


def _text(lab: ProviderLab, stream: bool) -> None:
    response, chunks = _ask(lab.answering(Reply("It is three.")), stream=stream)
    assert response.get_text() == "It is three."
    assert "".join(text for kind, text in chunks if kind == "text") == "It is three."
    assert response.finish_reason is FinishReason.STOP
    assert response.usage.total_tokens == response.usage.prompt_tokens + response.usage.output_tokens > 0


def _parallel_calls(lab: ProviderLab, stream: bool) -> None:
    calls = (("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4}))
    provider = lab.answering(Reply("Let me see.", calls), Reply("3 and 7"))
    first, _ = _ask(provider, stream=stream)
    made = first.get_function_calls()
    assert [(call.name, dict(call.args)) for call in made] == [(name, dict(args)) for name, args in calls]
    assert len({call.id for call in made}) == 2, "each call needs an id of its own"
    assert first.finish_reason is FinishReason.TOOL_USE
    results = Message(
        Role.TOOL,
        tuple(
            Part(function_response=ToolResult(call.id, call.name, str(call.args["a"] + call.args["b"])))
            for call in made
        ),
    )
    second, _ = _ask(provider, [_USER, first.message, results], stream=stream)
    assert second.get_text() == "3 and 7"


def _thought(lab: ProviderLab, stream: bool) -> None:
    provider = lab.answering(Reply("Three.", thought="One and two."), Reply("Sure."))
    first, _ = _ask(provider, stream=stream)
    assert first.get_text() == "Three.", "reasoning is not part of the answer"
    again = [_USER, first.message, Message.from_text(Role.USER, "Sure?")]
    second, _ = _ask(provider, again, stream=stream)
    assert second.get_text() == "Sure."


def _foreign_history(lab: ProviderLab, stream: bool) -> None:
    """A history that began on another provider, with its signatures, images, errors and empty texts."""
    from shared.types import FunctionCall

    call = FunctionCall("elsewhere:1", "add", {"a": 1, "b": 2})
    image = Attachment("image/png", b"\x89PNG\r\n\x1a\n")
    messages = [
        _USER,
        Message(
            Role.MODEL,
            (
                Part.from_thought("hm", Signature("elsewhere", "opaque")),
                Part(function_call=call, signature=Signature("elsewhere", b"opaque")),
            ),
        ),
        Message(Role.TOOL, (Part(function_response=ToolResult(call.id, "add", {"sum": 3}, attachments=(image,))),)),
        Message.from_text(Role.USER, "a note in between"),
        Message.from_text(Role.MODEL, ""),
        Message.from_text(Role.USER, "So?"),
        Message.from_text(Role.USER, "Well?"),
    ]
    response, _ = _ask(lab.answering(Reply("Three.")), messages, stream=stream)
    assert response.get_text() == "Three."


def _settings(lab: ProviderLab, stream: bool) -> None:
    settings = ModelSettings(temperature=0.2, reasoning_effort="low", max_output_tokens=2048)
    response, _ = _ask(lab.answering(Reply("ok")), settings=settings, stream=stream)
    assert response.get_text() == "ok", "a setting that the service does not take is left out"


def _cancelled_before(lab: ProviderLab, stream: bool) -> None:
    token = CancelToken()
    token.cancel("before")
    try:
        _ask(lab.answering(Reply("never")), stream=stream, cancel=token)
    except CancelledException:
        return
    raise AssertionError("a cancelled call must raise CancelledException")


def _cancelled_while_waiting(lab: ProviderLab, stream: bool) -> None:
    provider, wait_until_asked = lab.silent()
    token, seen = CancelToken(), []

    def call() -> None:
        try:
            _ask(provider, stream=stream, cancel=token)
        except BaseException as error:  # judged by the thread that waits
            seen.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    wait_until_asked()
    token.cancel("while waiting")
    thread.join(20)
    assert not thread.is_alive(), "cancel must end a blocked call at once"
    assert isinstance(seen[0], CancelledException), f"expected CancelledException, got {seen[0]!r}"


def _raises(lab: ProviderLab, fault: str, stream: bool) -> None:
    expected = FAULTS[fault]
    try:
        _ask(lab.failing(fault), stream=stream)
    except ProviderError as error:
        assert isinstance(error, expected), f"expected {expected.__name__}, got {error!r}"
        assert error.retryable == (fault in _PASSING), f"{error!r} must say whether trying again may help"
        assert str(error) and "\n" not in str(error), f"an error is one readable line, not {str(error)!r}"
        return
    raise AssertionError(f"expected {expected.__name__}, but the provider answered")


_CHECKS: tuple[Callable[[ProviderLab, bool], None], ...] = (
    _text,
    _parallel_calls,
    _thought,
    _foreign_history,
    _settings,
    _cancelled_before,
    _cancelled_while_waiting,
)
