"""A stop ends every kind of waiting: for a retry, for the gate, for a person."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.labs import ANTHROPIC, WireLab
from support.tools import Lab, calls, steps
from support.wire import Answer

from shared import JaatoRuntime, JaatoSession
from shared.events import PermissionAsked, RetryScheduled
from shared.testing import check_history, scripted_client


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _busy(stack: ExitStack, answer: Answer) -> tuple[JaatoRuntime, threading.Semaphore]:
    """A runtime on a service that refuses everything, and a sign for each retry that is scheduled."""
    server = WireLab(ANTHROPIC, stack).serve(lambda request: answer)
    runtime = JaatoRuntime("anthropic")
    runtime.register_provider("anthropic", ANTHROPIC.config(server))
    scheduled = threading.Semaphore(0)
    runtime.bus.subscribe(lambda event: scheduled.release(), interest=frozenset({RetryScheduled}))
    return runtime, scheduled


def _in_thread(session: JaatoSession) -> tuple[threading.Thread, list[str]]:
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(session.send_message("go")), daemon=True)
    thread.start()
    return thread, answers


def _ends(thread: threading.Thread, session: JaatoSession, answers: list[str]) -> None:
    assert session.request_stop()
    thread.join(20)
    assert not thread.is_alive()
    assert answers == ["[cancelled]"]
    check_history(session.get_history())


def test_stop_in_a_retry_sleep(stack: ExitStack) -> None:
    failed = Answer.of_json({"error": {"type": "api_error", "message": "oops"}}, 500, retry_after="600")
    runtime, scheduled = _busy(stack, failed)
    session = runtime.create_session(ANTHROPIC.model)
    thread, answers = _in_thread(session)
    assert scheduled.acquire(timeout=20)
    _ends(thread, session, answers)


def test_stop_in_the_queue_of_the_gate(stack: ExitStack) -> None:
    refused = Answer.of_json({"error": {"type": "rate_limit_error", "message": "busy"}}, 429, retry_after="600")
    runtime, scheduled = _busy(stack, refused)
    first, second = (runtime.create_session(ANTHROPIC.model) for _ in range(2))
    one, one_answers = _in_thread(first)
    assert scheduled.acquire(timeout=20)  # the gate is closed for ten minutes now
    other, other_answers = _in_thread(second)
    gate = runtime.governor(runtime.provider(), ANTHROPIC.model)
    while gate.waiting < 2:
        pass
    _ends(other, second, other_answers)
    _ends(one, first, one_answers)
    assert gate.waiting == 0


def test_stop_while_a_person_is_asked() -> None:
    asked = threading.Event()
    policy = {"version": "1.0", "defaultPolicy": "ask", "channel": {"type": "queue"}}
    with scripted_client(steps(calls(("add", {"a": 1})), "done"), Lab(), permissions=policy) as client:
        client.get_runtime().bus.subscribe(lambda event: asked.set(), interest=frozenset({PermissionAsked}))
        session = client.get_session()
        thread, answers = _in_thread(session)
        assert asked.wait(20)
        assert session.turn is not None
        assert session.turn.phase == "awaiting_permission"
        _ends(thread, session, answers)
        broker = client.get_runtime().broker
        assert broker is not None
        assert broker.pending() == []
