"""What every strategy promises for every valid history, checked on random ones."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.histories import histories, long_turn, round_of, says, user

from shared.gc.base import GCConfig, GCTriggerReason
from shared.gc.fit import fit
from shared.gc.keeper import ContextKeeper
from shared.gc.loader import load_strategy
from shared.gc.notes import is_notice
from shared.gc.rounds import Layout, split_rounds
from shared.history import History, problems
from shared.types import Message, Role

STRATEGIES = ["truncate", "summarize", "hybrid"]
REASONS = [GCTriggerReason.THRESHOLD, GCTriggerReason.TURN_LIMIT, GCTriggerReason.MANUAL]
relaxed = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))

configs = st.builds(
    GCConfig,
    threshold_percent=st.sampled_from([20.0, 80.0, 100.0]),
    preserve_recent_turns=st.integers(1, 6),
    notify_on_gc=st.booleans(),
    summarize_middle_turns=st.sampled_from([None, 0, 2, 50]),
    max_turns=st.sampled_from([None, 1, 3, 10]),
)
limits = st.sampled_from([40, 300, 2_000, 20_000, 1_000_000])


def short(text: str) -> str:
    return f"A summary of {len(text)} characters."


def keeper_of(name: str, config: GCConfig, limit: int) -> ContextKeeper:
    return ContextKeeper(load_strategy(name), config, limit, short)


def contains_in_order(found: list[Message], wanted: list[Message]) -> bool:
    rest = iter(found)
    return all(any(message is one for one in rest) for message in wanted)


def touching_models(messages: list[Message]) -> set[tuple[int, int]]:
    """Pairs of model messages side by side, by identity: some providers refuse such pairs."""
    return {(id(a), id(b)) for a, b in pairwise(messages) if a.role is Role.MODEL and b.role is Role.MODEL}


@pytest.mark.parametrize("name", STRATEGIES)
@relaxed
@given(messages=histories(), config=configs, limit=limits, reason=st.sampled_from(REASONS))
def test_a_collection_keeps_its_promises(
    name: str, messages: list[Message], config: GCConfig, limit: int, reason: GCTriggerReason
) -> None:
    assert problems(messages) == []
    history, keeper = History(messages), keeper_of(name, config, limit)
    result = keeper.collect(history, reason)
    after = history.snapshot()

    assert problems(after) == []
    assert touching_models(after) <= touching_models(messages)
    assert history.tokens <= sum(message.tokens for message in messages)
    layout = Layout(messages)
    assert contains_in_order(after, [messages[index] for index in sorted(layout.fixed)])
    if rounds := layout.rounds:
        models = [messages[part.body] for part in rounds[-result.details["rounds_preserved"] :]]
        assert contains_in_order(after, models)
        assert after[-1].role is messages[-1].role
    assert sum(is_notice(message) and message.text != "<context-note/>" for message in after) <= 1
    assert result.tokens_freed >= 0
    assert result.success or result.error


@pytest.mark.parametrize("name", STRATEGIES)
@relaxed
@given(messages=histories(), config=configs, limit=limits, reason=st.sampled_from(REASONS))
def test_a_second_collection_changes_nothing(
    name: str, messages: list[Message], config: GCConfig, limit: int, reason: GCTriggerReason
) -> None:
    history, keeper = History(messages), keeper_of(name, config, limit)
    keeper.collect(history, reason)
    once = history.snapshot()
    again = keeper.collect(history, reason)
    assert history.snapshot() == once
    assert again.items_collected == 0


@pytest.mark.parametrize("name", STRATEGIES)
@relaxed
@given(messages=histories(), config=configs, limit=limits, reason=st.sampled_from(REASONS))
def test_what_stays_over_the_threshold_could_not_be_smaller(
    name: str, messages: list[Message], config: GCConfig, limit: int, reason: GCTriggerReason
) -> None:
    history, keeper = History(messages), keeper_of(name, config, limit)
    result = keeper.collect(history, reason)
    if keeper.usage(history).percent_used <= config.threshold_percent:
        assert result.error is None
        return
    assert result.error is not None
    layout = Layout(history.snapshot())
    spare = [index for part in layout.rounds[:-1] for index in layout.loose(part)]
    last = [index for part in layout.rounds[-1:] for index in layout.loose(part)]
    bulky = [
        part
        for index in last
        for part in history.messages[index].parts
        if part.function_response is not None and part.size > 270
    ]
    # A gap between model messages costs a few tokens: what weighs no more than that may stay.
    assert layout.tokens(spare) <= 10 * len(layout.fixed)
    assert not bulky


@pytest.mark.parametrize("name", STRATEGIES)
@relaxed
@given(steps=st.lists(histories(max_steps=4), min_size=1, max_size=6), config=configs)
def test_a_growing_history_stays_valid_and_keeps_first_and_pinned(
    name: str, steps: list[list[Message]], config: GCConfig
) -> None:
    history, keeper = History(), keeper_of(name, config, 3_000)
    pinned = []
    for step in steps:
        for message in step:
            history.append(message)
            pinned += [message] if message.pinned else []
        keeper.before_call(history)
        assert problems(history.messages) == []
        assert history.messages[0] is steps[0][0]
        assert contains_in_order(history.snapshot(), pinned)
        assert keeper.usage(history).turns == len(split_rounds(history.messages))


@pytest.mark.parametrize("notify", [True, False])
@pytest.mark.parametrize("name", STRATEGIES)
def test_five_hundred_rounds_on_a_small_window(name: str, notify: bool) -> None:
    limit = 2_000
    keeper = keeper_of(name, GCConfig(notify_on_gc=notify), limit)
    history = History([user("The one and only task")])
    collections = 0
    for number in range(500):
        result = keeper.before_call(history)
        collections += result is not None
        assert keeper.usage(history).percent_used <= 80
        assert history.messages[0].text == "The one and only task"
        for message in round_of("z" * (10_000 if number % 50 == 49 else 150 + number)):
            history.append(message)
    assert 5 < collections < 250
    assert sum(is_notice(message) for message in history.messages) <= 1


@pytest.mark.parametrize("name", STRATEGIES)
def test_many_user_turns_on_a_small_window(name: str) -> None:
    keeper = keeper_of(name, GCConfig(preserve_recent_turns=3), 2_000)
    history = History()
    for number in range(200):
        history.append(user(f"Question {number} " + "q" * 200))
        keeper.before_call(history)
        assert keeper.usage(history).percent_used <= 80
        assert problems(history.messages) == []
        texts = [message.text or "" for message in history.messages]
        assert texts[0].startswith("Question 0 ")
        assert texts[-1].startswith(f"Question {number} ")
        for message in (*round_of("w" * 300), says(f"Answer {number} " + "a" * 200)):
            history.append(message)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("max_turns", [1, 3, 20])
def test_the_turn_limit_collects_however_small_the_tokens_are(name: str, max_turns: int) -> None:
    keeper = keeper_of(name, GCConfig(max_turns=max_turns), 1_000_000)
    history = History([user("task")])
    for _ in range(100):
        for message in round_of("ok"):
            history.append(message)
        result = keeper.before_call(history)
        assert result is None or result.trigger_reason is GCTriggerReason.TURN_LIMIT
        assert keeper.usage(history).turns <= max_turns


def test_a_history_in_the_middle_of_one_turn_of_five_hundred_rounds_is_collected_at_once() -> None:
    history = History(long_turn(500, size=3_000))
    keeper = keeper_of("summarize", GCConfig(), 20_000)
    result = keeper.before_call(history)
    assert result is not None
    assert result.items_collected == 495
    assert keeper.usage(history).percent_used < 60


def test_rounds_that_are_said_to_fit_do_to_the_last_token() -> None:
    """Sizes are rounded for each message: one token too many, and the next collection would begin anew."""
    messages = [user("the task")]
    for number in range(5):
        asked, answered = round_of("x" * 300, "y" * 300, "z" * (280 + number))
        messages += [asked, *(Message(Role.TOOL, (part,)) for part in answered.parts)]
    for ceiling in range(200, 1000):
        fitted = fit(messages, keep=4, ceiling=ceiling)
        layout = Layout(fitted.messages)
        recent = sum(layout.tokens(layout.loose(part)) for part in layout.rounds[-fitted.keep :])
        assert layout.fixed_tokens + recent <= ceiling or fitted.keep == 1, ceiling
