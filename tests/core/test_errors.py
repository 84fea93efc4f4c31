"""One tree of errors: as drawn, and able to travel between processes."""

from __future__ import annotations

import pickle
import re
from importlib import import_module

import pytest

import shared
from shared import errors
from shared.errors import BudgetExceeded, CancelledException, JaatoError, ProviderError, unknown_name
from shared.types import TokenUsage


def tree(cls: type[BaseException]) -> list[type[BaseException]]:
    return [cls, *(each for child in cls.__subclasses__() for each in tree(child))]


OURS = [cls for cls in tree(JaatoError) if cls.__module__ == errors.__name__]


def example(cls: type[BaseException]) -> BaseException:
    if issubclass(cls, ProviderError):
        usage = TokenUsage.of(1, 2)
        return cls("what went wrong", provider="p", status=429, retry_after=1.5, request_id="r", usage=usage)
    if issubclass(cls, BudgetExceeded):
        return cls("what went wrong", limit="total_tokens")
    return cls("what went wrong")


@pytest.mark.parametrize("cls", OURS, ids=lambda cls: cls.__name__)
def test_every_error_pickles_with_all_its_attributes(cls: type[BaseException]) -> None:
    error = example(cls)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert str(again) == "what went wrong"
    assert vars(again) == vars(error)


def test_every_error_can_be_raised_without_words() -> None:
    assert CancelledException().message == "cancelled"
    assert str(BudgetExceeded()) == ""
    assert ProviderError().usage is None


def test_the_drawing_shows_the_classes_as_they_are() -> None:
    drawn: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^    ([ │├└─]*)([A-Z]\w+)", line)
        if match is None or not (match[1] or match[2] == "JaatoError"):
            continue
        depth, name = len(match[1]) // 4, match[2]
        above = [entry for entry in above if entry[0] < depth]
        drawn[name] = above[-1][1] if above else "Exception"
        above.append((depth, name))
    assert drawn == {cls.__name__: cls.__mro__[1].__name__ for cls in OURS}


def test_what_may_be_tried_again_is_said_by_the_class() -> None:
    again = {cls.__name__ for cls in OURS if issubclass(cls, ProviderError) and cls.retryable}
    assert again == {"RateLimited", "Overloaded", "ServerFailed", "ConnectionFailed", "IncompleteStream"}


def test_an_unknown_name_is_answered_with_a_guess_and_the_known_ones() -> None:
    text = unknown_name("plugin", "clii", ["mcp", "cli", "cli"], hint="Call discover() first.")
    assert text == "unknown plugin 'clii'. Did you mean 'cli'? Known: cli, mcp. Call discover() first."
    assert unknown_name("plugin", "x", []) == "unknown plugin 'x'. None are known."


def test_the_public_names_of_errors_are_those_of_the_tree() -> None:
    assert shared.JaatoError is JaatoError
    assert import_module("shared.errors").CancelledException is shared.CancelledException
