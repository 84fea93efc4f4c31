"""A history is always valid: every call has exactly one result."""

from __future__ import annotations

import pytest
from support.histories import round_of, says, user
from support.stress import rapid_switching, run_threads, times

from shared import FunctionCall, Message, Part, Role, ToolResult
from shared.history import History, problems
from shared.toolbox import cancelled_result


def calling(*ids: str) -> Message:
    return Message(Role.MODEL, tuple(Part(function_call=FunctionCall(each, "t", {})) for each in ids))


def answering(*ids: str) -> Message:
    return Message(Role.TOOL, tuple(Part(function_response=ToolResult(each, "t", "ok")) for each in ids))


def test_open_calls_are_answered_once() -> None:
    history = History([user("go"), calling("a", "b", "c"), answering("b")])
    assert [call.id for call in history.open_calls()] == ["a", "c"]
    closed = history.close_open_calls(cancelled_result)
    assert [call.id for call in closed] == ["a", "c"]
    assert history.close_open_calls(cancelled_result) == []
    assert problems(history.snapshot()) == []


def test_a_whole_history_has_nothing_open() -> None:
    history = History([user("go"), *round_of("one", "two"), says("done")])
    assert history.open_calls() == []
    assert problems(history.messages) == []
    assert History().open_calls() == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("x"), calling("a")], "at the end: calls ['a'] have no result"),
        ([user("x"), calling("a"), user("y")], "message 2: calls ['a'] have no result"),
        ([user("x"), calling("a"), answering("a"), answering("a")], "message 3: result 'a' answers no open call"),
        ([user("x"), answering("z")], "message 1: result 'z' answers no open call"),
        ([user("x"), calling("a", "a"), answering("a")], "message 1: call id 'a' is used twice"),
        ([says("x")], "message 0: a history begins with a user message, not with model"),
        ([user("x"), Message(Role.USER, calling("a").parts), answering("a")], "message 1: a user message makes calls"),
    ],
)
def test_what_makes_a_history_invalid_is_said(messages: list[Message], expected: str) -> None:
    assert expected in problems(messages)


def test_the_token_sum_follows_every_change() -> None:
    history = History([user("x" * 300)])

    def total() -> int:
        return sum(message.tokens for message in history.snapshot())

    assert history.tokens == total()
    history.append(calling("a"))
    history.close_open_calls(cancelled_result)
    assert history.tokens == total()
    history.replace([user("short")])
    assert history.tokens == total()
    assert len(history) == 1


def test_a_snapshot_is_not_changed_by_what_follows() -> None:
    history = History([user("one")])
    before = history.snapshot()
    history.append(says("two"))
    assert len(before) == 1


def test_appending_from_many_threads_loses_nothing() -> None:
    history = History()
    with rapid_switching():
        run_threads(8, lambda index: times(200, lambda: history.append(user(f"message of {index}"))))
    assert len(history) == 1600
    assert history.tokens == sum(message.tokens for message in history.snapshot())
