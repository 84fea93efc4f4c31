from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.histories import long_turn, round_of, says, user

from shared.errors import CancelledException
from shared.gc.base import ContextUsage, GCConfig, GCResult, GCTriggerReason, is_due
from shared.gc.keeper import ContextKeeper
from shared.gc.loader import load_strategy
from shared.gc.truncate import TruncateGC
from shared.history import History, problems
from shared.types import Attachment, FunctionCall, Message, Part, Role, ToolResult

OVERFLOW = GCTriggerReason.OVERFLOW


def truncating(limit: int, **settings: Any) -> ContextKeeper:
    return ContextKeeper(load_strategy("truncate"), GCConfig(**settings), limit)


class Foreign:
    """A third-party strategy whose `collect` is given."""

    name = "foreign"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.config: dict[str, Any] | None = None
        self.closed = False

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        self.config = config

    def shutdown(self) -> None:
        self.closed = True

    def should_collect(self, usage: ContextUsage, config: GCConfig) -> tuple[bool, GCTriggerReason | None]:
        return is_due(usage, config)

    def collect(
        self, history: Sequence[Message], usage: ContextUsage, config: GCConfig, reason: GCTriggerReason
    ) -> tuple[list[Message], GCResult]:
        answer: tuple[list[Message], GCResult] = self.answer(history, reason)
        return answer


def done(messages: list[Any], reason: GCTriggerReason, removed: int = 1) -> tuple[list[Message], GCResult]:
    return messages, GCResult(True, removed, 0, 0, "foreign", reason, "done")


def test_nothing_happens_below_the_threshold() -> None:
    history, keeper = History(long_turn(10)), truncating(1_000_000)
    live = history.messages
    assert keeper.before_call(history) is None
    assert history.messages is live


class CountingList(list[Message]):
    """Counts how many messages are looked at."""

    seen = 0

    def __getitem__(self, index: Any) -> Any:
        self.seen += 1
        return super().__getitem__(index)

    def __iter__(self) -> Any:
        self.seen += len(self)
        return super().__iter__()


class CountingHistory(History):
    """A history that knows how much of it was read."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__(messages)
        self._messages = CountingList(messages)


def test_a_call_with_nothing_to_do_looks_only_at_new_messages() -> None:
    history, keeper = CountingHistory(long_turn(1_000, size=5)), truncating(10_000_000, max_turns=5_000)
    keeper.before_call(history)
    live = history.messages
    assert isinstance(live, CountingList)
    live.seen = 0
    for message in round_of("new"):
        history.append(message)
    assert keeper.before_call(history) is None
    assert live.seen == 2
    assert keeper.usage(history).turns == 1_001


def test_turns_are_counted_again_when_the_history_was_replaced() -> None:
    history, keeper = History(long_turn(8)), truncating(100_000)
    assert keeper.usage(history).turns == 8
    history.replace(long_turn(3))
    assert keeper.usage(history).turns == 3


def test_overhead_counts_and_is_remembered() -> None:
    history, keeper = History([user("hi")]), truncating(10_000)
    alone = keeper.usage(history).total_tokens
    assert keeper.usage(history, overhead=500).total_tokens == alone + 500
    assert keeper.usage(history).total_tokens == alone + 500
    given = ContextKeeper(TruncateGC(), GCConfig(), 10_000, overhead=70)
    assert given.usage(history).total_tokens == alone + 70


def test_reported_usage_corrects_the_estimate() -> None:
    history, keeper = History(long_turn(100, size=1_000)), truncating(40_000)
    estimate = history.tokens
    assert keeper.before_call(history) is not None
    history, keeper = History(long_turn(100, size=1_000)), truncating(40_000)
    keeper.observe(estimate // 2, history.tokens)
    assert keeper.usage(history).total_tokens == pytest.approx(estimate / 2, rel=0.05)
    assert keeper.before_call(history) is None
    keeper.observe(estimate, estimate)
    assert keeper.before_call(history) is not None


def test_absurd_figures_do_not_blind_the_keeper() -> None:
    history, keeper = History(long_turn(400, size=1_000)), truncating(10_000)
    for reported in (0, -5, 1):
        keeper.observe(reported, history.tokens)
        assert keeper.usage(history).percent_used > 80


def test_an_overflow_shrinks_what_seemed_to_fit() -> None:
    history, keeper = History(long_turn(100, size=1_000)), truncating(200_000)
    before = history.tokens
    result = keeper.collect(history, OVERFLOW)
    assert result.tokens_freed > 0
    assert history.tokens < before * 0.6
    assert result.trigger_reason is OVERFLOW


def test_an_overflow_against_reported_figures_lowers_the_limit() -> None:
    history, keeper = History(long_turn(100, size=1_000)), truncating(1_000_000)
    keeper.observe(history.tokens, history.tokens)
    before = history.tokens
    keeper.collect(history, OVERFLOW)
    assert keeper.usage(history).context_limit <= before
    assert history.tokens < before * 0.6


@pytest.mark.parametrize("limit", [0, 1, 5_000, 1_000_000])
@pytest.mark.parametrize("observed", [True, False])
def test_overflows_without_end_leave_a_valid_history(limit: int, observed: bool) -> None:
    messages = long_turn(30, size=2_000)
    history, keeper = History(messages), truncating(limit)
    for _ in range(30):
        if observed:
            keeper.observe(history.tokens, history.tokens)
        before = history.tokens
        keeper.collect(history, OVERFLOW)
        assert history.tokens <= before
        assert problems(history.messages) == []
    assert keeper.usage(history).context_limit >= 1
    assert history.messages[0] is messages[0]
    assert history.messages[-2] is messages[-2]
    assert history.tokens < 200


def test_an_unknown_limit_never_triggers_and_is_learned_from_an_overflow() -> None:
    history, keeper = History(long_turn(100, size=1_000)), truncating(0)
    assert keeper.before_call(history) is None
    before = history.tokens
    assert keeper.collect(history, OVERFLOW).success
    assert history.tokens < before * 0.6


def test_long_results_in_recent_rounds_are_shortened_with_both_ends_kept() -> None:
    text = "HEAD" + "m" * 60_000 + "TAIL"
    history, keeper = History([user("task"), *round_of("short"), *round_of(text)]), truncating(4_000)
    result = keeper.before_call(history)
    assert result is not None
    assert result.details["results_shortened"] == 1
    kept = history.messages[-1].results[0]
    assert kept.text.startswith("HEAD")
    assert kept.text.endswith("TAIL")
    assert "characters removed" in kept.text
    assert history.messages[-3].results[0].text == "short"
    assert keeper.usage(history).percent_used <= 80


def test_the_oldest_of_equally_long_results_gives_way_first() -> None:
    messages = [user("task")]
    for _ in range(4):
        messages += round_of("r" * 30_000)
    history = History(messages)
    truncating(100_000).collect(history)
    assert [len(m.results[0].text) for m in history.messages if m.results] == [30_000] * 4
    truncating(60_000).collect(history)
    assert [len(m.results[0].text) for m in history.messages if m.results] == [16_000, 16_000, 30_000, 30_000]


def test_images_and_json_results_are_shortened_to_text() -> None:
    call = FunctionCall("c", "look")
    image = Attachment("image/png", b"x" * 10)
    result = ToolResult("c", "look", {"rows": ["r" * 50] * 500}, attachments=(image,) * 5)
    messages = [
        user("t"),
        Message(Role.MODEL, (Part(function_call=call),)),
        Message(Role.TOOL, (Part(function_response=result),)),
    ]
    history, keeper = History(messages), truncating(2_000)
    keeper.before_call(history)
    short = history.messages[-1].results[0]
    assert short.attachments is None
    assert "5 attachments removed" in short.text
    assert short.call_id == "c"
    assert keeper.usage(history).percent_used <= 80


def test_pinned_results_are_never_shortened() -> None:
    pinned = round_of("p" * 9_000, pinned=Role.TOOL)
    history = History([user("task"), *pinned, *round_of("q" * 9_000), *round_of("ok")])
    keeper = truncating(7_000)
    keeper.before_call(history)
    assert history.messages[1:3] == pinned
    assert len(history.messages[4].results[0].text) < 9_000


def test_fewer_rounds_are_preserved_when_they_cannot_fit() -> None:
    messages = [user("task")]
    for number in range(6):
        messages += [says(f"{number} " + "s" * 3_000), user(f"go on {number}")]
    history, keeper = History(messages), truncating(4_000)
    result = keeper.before_call(history)
    assert result is not None
    assert result.details["rounds_preserved"] == 2
    assert keeper.usage(history).percent_used <= 80


def test_a_task_too_long_for_the_window_stays_and_is_reported_once() -> None:
    history, keeper = History([user("t" * 30_000)]), truncating(2_000)
    result = keeper.before_call(history)
    assert result is not None
    assert not result.success
    assert result.error is not None
    assert "larger context" in result.error
    assert history.messages[0].text == "t" * 30_000
    assert keeper.before_call(history) is None  # nothing changed: not tried again
    for message in round_of("x" * 3_000):
        history.append(message)
    assert keeper.before_call(history) is not None


def test_a_note_is_replaced_and_counts_on() -> None:
    history, keeper = History(long_turn(20)), truncating(1_000_000)
    assert keeper.collect(history).items_collected == 15
    for message in long_turn(4)[1:]:
        history.append(message)
    assert keeper.collect(history).items_collected == 4
    notes = [message.text for message in history.messages if "context-note" in (message.text or "")]
    assert len(notes) == 1
    assert "19 so far" in (notes[0] or "")
    assert history.messages[1].text == notes[0]


def test_without_notices_nothing_is_added() -> None:
    history, keeper = History(long_turn(20)), truncating(1_000_000, notify_on_gc=False)
    keeper.collect(history)
    assert [message.role for message in history.messages] == [Role.USER, *[Role.MODEL, Role.TOOL] * 5]


def test_truncate_keeps_as_many_rounds_as_fit_when_it_makes_room() -> None:
    history, keeper = History(long_turn(200, size=1_000)), truncating(60_000)
    keeper.before_call(history)
    usage = keeper.usage(history)
    assert usage.turns > 50
    assert 40 < usage.percent_used <= 50


def test_what_weighs_less_than_the_gap_it_would_leave_stays() -> None:
    messages = [user("task"), says("a", pinned=True), says("b"), says("c", pinned=True), *round_of("ok")]
    history, keeper = History(messages), truncating(100_000, preserve_recent_turns=1)
    assert keeper.collect(history).items_collected == 0
    assert history.snapshot() == messages


def test_system_prompt_and_tools_over_the_threshold_do_not_cost_the_whole_history() -> None:
    history, keeper = History(long_turn(5, size=100)), truncating(10_000)
    result = keeper.before_call(history, overhead=9_000)
    assert result is None or result.items_collected == 0
    assert len(history) == 11


def test_the_strategy_gets_its_settings_the_summarizer_and_an_end() -> None:
    strategy = Foreign(None)
    keeper = ContextKeeper(strategy, GCConfig(plugin_config={"depth": 3}), 1_000, str.upper)
    assert strategy.config == {"depth": 3, "summarizer": str.upper}
    keeper.close()
    assert strategy.closed


def raising(history: Sequence[Message], reason: GCTriggerReason) -> Any:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (raising, "RuntimeError: boom"),
        (lambda history, reason: None, "TypeError"),
        (lambda history, reason: (list(history[:1]), "fine"), "no GCResult"),
        (lambda history, reason: done([], reason), "part of the task"),
        (lambda history, reason: done([history[0]], reason), "in the last round"),
        (lambda history, reason: done([history[0], *history[2:]], reason), "invalid history"),
        (lambda history, reason: done([*history, user("u" * 999)], reason), "longer"),
        (lambda history, reason: done(["text"], reason), "other than messages"),
        (lambda history, reason: done(list(history), reason), "left too much"),
    ],
)
def test_a_strategy_that_breaks_its_promise_is_replaced_by_truncate(answer: Any, why: str) -> None:
    messages = long_turn(50)
    history, keeper = History(messages), ContextKeeper(Foreign(answer), GCConfig(), 4_000)
    result = keeper.before_call(history)
    assert result is not None
    assert result.plugin_name == "foreign"
    assert result.details["fallback"] == "truncate"
    assert why in result.details["strategy_error"]
    assert why in (result.notification or "")
    assert problems(history.messages) == []
    assert keeper.usage(history).percent_used <= 80
    assert history.messages[-2:] == messages[-2:]


def test_a_strategy_that_cannot_say_when_is_asked_no_more_than_the_threshold() -> None:
    class Mute(Foreign):
        def should_collect(self, usage: ContextUsage, config: GCConfig) -> tuple[bool, GCTriggerReason | None]:
            raise ValueError("no idea")

    keep_last = Mute(lambda history, reason: done([history[0], *history[-2:]], reason, 49))
    keeper = ContextKeeper(keep_last, GCConfig(), 4_000)
    assert keeper.before_call(History(long_turn(2))) is None
    history = History(long_turn(50))
    result = keeper.before_call(history)
    assert result is not None
    assert result.items_collected == 49
    assert len(history) == 3


def test_a_cancelled_collection_leaves_the_history_as_it_was() -> None:
    def cancelled(text: str) -> str:
        raise CancelledException("stop")

    history = History(long_turn(50))
    live, before = history.messages, history.snapshot()
    keeper = ContextKeeper(load_strategy("summarize"), GCConfig(), 4_000, cancelled)
    with pytest.raises(CancelledException):
        keeper.before_call(history)
    assert history.messages is live
    assert history.snapshot() == before


def test_what_arrives_during_a_summary_is_not_lost() -> None:
    history = History(long_turn(50))
    late = user("one more thing")

    def slow(text: str) -> str:
        if history.messages[-1] is not late:
            history.append(late)
        return "summary"

    keeper = ContextKeeper(load_strategy("summarize"), GCConfig(), 8_000, slow)
    keeper.collect(history)
    assert history.messages[-1] is late
    assert keeper.usage(history).turns == 5
