from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from support.histories import long_turn, round_of, says, user

from shared.errors import ConfigError
from shared.gc.base import GCConfig, GCTriggerReason
from shared.gc.keeper import ContextKeeper
from shared.gc.loader import load_strategy
from shared.gc.notes import Note
from shared.history import History, problems
from shared.types import Attachment, Message, Part, Role, Signature


@dataclass
class Scribe:
    """A summarizer that remembers what it was given and answers with numbered summaries."""

    answers: list[Any] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> Any:
        self.prompts.append(text)
        answer = self.answers[len(self.prompts) - 1] if self.answers else f"summary {len(self.prompts)}"
        if isinstance(answer, Exception):
            raise answer
        return answer


def note_of(history: History) -> Note:
    found = [note for message in history.messages if (note := Note.read(message)) is not None]
    assert len(found) == 1
    return found[0]


def keeper(scribe: Any, name: str = "summarize", limit: int = 100_000, **settings: Any) -> ContextKeeper:
    return ContextKeeper(load_strategy(name), GCConfig(**settings), limit, scribe)


def numbered(rounds: int) -> list[Message]:
    return [
        user("The task"),
        *(m for n in range(rounds) for m in round_of(f"[result {n}]" + "." * 300, text=f"[step {n}]")),
    ]


def test_old_rounds_become_a_summary_that_names_them() -> None:
    scribe, history = Scribe(), History(numbered(20))
    result = keeper(scribe).collect(history)
    assert result.items_collected == 15
    assert result.details["rounds_summarized"] == 15
    assert note_of(history) == Note(15, "summary 1")
    assert "The task" in scribe.prompts[0]
    assert "[step 0]" in scribe.prompts[0]
    assert "[result 14]" in scribe.prompts[0]
    assert "[step 15]" not in scribe.prompts[0]
    assert problems(history.messages) == []


def test_thoughts_and_images_are_not_summarised() -> None:
    image = Attachment("image/png", b"\x89PNG", "secret.png")
    history = History(
        [
            user("The task"),
            Message(Role.MODEL, (Part.from_thought("private thought", Signature("a", "sig")), Part(text="public"))),
            Message(Role.USER, (Part(text="see this"), Part(inline_data=image))),
            says("x" * 900),
            *numbered(6),
        ]
    )
    scribe = Scribe()
    keeper(scribe).collect(history)
    prompt = scribe.prompts[0]
    assert "public" in prompt
    assert "see this" in prompt
    assert "private" not in prompt
    assert "PNG" not in prompt
    assert "secret" not in prompt


def test_a_later_summary_takes_the_former_in() -> None:
    scribe = Scribe(["The key is under the mat.", "Second."])
    history, collector = History(numbered(20)), keeper(scribe)
    collector.collect(history)
    for message in numbered(10)[1:]:
        history.append(message)
    collector.collect(history)
    assert "The key is under the mat." in scribe.prompts[1]
    assert "[step 14]" not in scribe.prompts[1]  # what was summarised is not read again
    assert note_of(history) == Note(25, "Second.")


def test_long_records_are_summarised_in_pieces_that_fit_the_window() -> None:
    limit = 6_000
    scribe, history = Scribe(), History(numbered(300))
    result = keeper(scribe, limit=limit).before_call(history)
    assert result is not None
    assert len(scribe.prompts) > 5
    assert all(len(prompt) / 3 <= limit / 2 for prompt in scribe.prompts)
    assert "summary 1" in scribe.prompts[1]
    for number in range(295):
        assert any(f"[result {number}]" in prompt for prompt in scribe.prompts)
    assert note_of(history).summary == f"summary {len(scribe.prompts)}"


def test_an_endless_summary_is_clipped() -> None:
    history = History(numbered(300))
    collector = keeper(Scribe(["word " * 50_000] * 50), limit=6_000)
    collector.before_call(history)
    assert collector.usage(history).percent_used < 60
    assert note_of(history).summary.startswith("word word")


def test_a_summary_longer_than_what_it_replaces_does_not_make_the_history_grow() -> None:
    history = History([user("t"), *(m for _ in range(8) for m in round_of("ok"))])
    before = history.tokens
    keeper(Scribe(["long " * 5_000] * 5)).collect(history)
    assert history.tokens <= before


FAILURES = [RuntimeError("service down"), "", "   ", None, 7]


@pytest.mark.parametrize("name", ["summarize", "hybrid"])
@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_a_failing_summarizer_means_truncating_and_saying_so(name: str, failure: Any) -> None:
    history = History(numbered(200))
    collector = keeper(Scribe([failure] * 9), name, limit=20_000)
    result = collector.before_call(history)
    assert result is not None
    assert result.success
    assert result.plugin_name == name
    assert result.details["fallback"] == "truncate"
    assert result.details["summary_error"]
    assert "not summarised" in (result.notification or "")
    assert collector.usage(history).percent_used <= 80
    assert problems(history.messages) == []
    assert note_of(history).summary == ""


def test_a_failure_keeps_the_former_summary_and_what_was_done_of_the_new_one() -> None:
    history, collector = History(numbered(20)), keeper(Scribe(["First.", RuntimeError("down")]))
    collector.collect(history)
    for message in numbered(10)[1:]:
        history.append(message)
    collector.collect(history)
    assert note_of(history) == Note(25, "First.")
    history = History(numbered(300))
    keeper(Scribe(["half done", *[RuntimeError("down")] * 20]), limit=6_000).before_call(history)
    assert note_of(history).summary == "half done"


def test_without_a_summarizer_it_truncates() -> None:
    history = History(numbered(20))
    result = keeper(None).collect(history)
    assert result.details["fallback"] == "truncate"
    assert "no summarizer" in result.details["summary_error"]


def test_hybrid_summarises_the_middle_and_drops_what_is_older() -> None:
    scribe, history = Scribe(), History(numbered(20))
    result = keeper(scribe, "hybrid", summarize_middle_turns=4, preserve_recent_turns=3).collect(history)
    assert result.items_collected == 17
    assert result.details["rounds_summarized"] == 4
    assert "[step 12]" not in scribe.prompts[0]
    assert "[step 13]" in scribe.prompts[0]
    assert "[step 16]" in scribe.prompts[0]
    assert "[step 17]" not in scribe.prompts[0]
    assert "[step 17]" in (history.messages[2].text or "")


def test_hybrid_without_a_middle_summarises_all_old_rounds() -> None:
    scribe = Scribe()
    result = keeper(scribe, "hybrid").collect(History(numbered(20)))
    assert result.details["rounds_summarized"] == 15
    assert "[step 0]" in scribe.prompts[0]


def test_hybrid_with_an_empty_middle_asks_for_no_summary() -> None:
    scribe, history = Scribe(), History(numbered(20))
    result = keeper(scribe, "hybrid", summarize_middle_turns=0).collect(history)
    assert result.items_collected == 15
    assert scribe.prompts == []
    assert note_of(history) == Note(15)


def test_a_summary_is_there_without_notices_too() -> None:
    history = History(numbered(20))
    keeper(Scribe(), notify_on_gc=False).collect(history)
    assert note_of(history) == Note(15, "summary 1")
    assert "were removed" not in (history.messages[1].text or "")


def test_truncate_carries_a_summary_on() -> None:
    history = History(numbered(20))
    keeper(Scribe(["Remember this."])).collect(history)
    for message in numbered(10)[1:]:
        history.append(message)
    keeper(None, "truncate").collect(history)
    assert note_of(history) == Note(25, "Remember this.")


def test_pinned_messages_and_the_task_are_not_summarised() -> None:
    pinned = says("pinned answer", pinned=True)
    history = History([user("The task"), pinned, *numbered(20)[1:]])
    scribe = Scribe()
    keeper(scribe).collect(history)
    assert pinned in history.messages
    assert "pinned answer" not in scribe.prompts[0]


def test_summary_settings_are_checked() -> None:
    for settings, expected in (
        ({"modle": "m"}, "Did you mean 'model'"),
        ({"model": ""}, "a model name"),
        ({"max_summary_tokens": 3}, "at least 50"),
    ):
        with pytest.raises(ConfigError, match=expected):
            keeper(None, plugin_config=settings)
    with pytest.raises(ConfigError, match="unknown plugin_config key 'model'"):
        keeper(None, "truncate", plugin_config={"model": "m"})
    with pytest.raises(ConfigError, match="summarizer must be a function"):
        keeper("text")


def test_the_size_of_a_summary_can_be_set() -> None:
    history = History(numbered(50))
    keeper(Scribe(["w" * 9_000]), plugin_config={"max_summary_tokens": 100}).collect(history)
    assert len(note_of(history).summary) == 300


def test_the_turn_limit_summarises_too() -> None:
    scribe, history = Scribe(), History(long_turn(12))
    result = keeper(scribe, max_turns=10).before_call(history)
    assert result is not None
    assert result.trigger_reason is GCTriggerReason.TURN_LIMIT
    assert result.items_collected == 7
    assert len(scribe.prompts) == 1
