from __future__ import annotations

from hypothesis import given
from support.histories import histories, round_of, says, user

from shared.gc.notes import Note, gap, is_notice
from shared.gc.rounds import Layout, split_rounds
from shared.types import Message, Role


def test_a_round_is_users_model_and_results() -> None:
    history = [user("a"), user("b"), *round_of("1", "2"), says("done"), user("c"), *round_of("3"), user("d")]
    spans = [(part.start, part.body, part.end) for part in split_rounds(history)]
    assert spans == [(0, 2, 4), (4, 4, 5), (5, 6, 8)]


def test_an_empty_history_has_no_rounds() -> None:
    assert split_rounds([]) == []
    assert Layout([]).fixed == set()


@given(histories())
def test_rounds_cover_everything_but_unanswered_users_in_order(history: list[Message]) -> None:
    rounds = split_rounds(history)
    covered = [index for part in rounds for index in part.indices]
    assert covered == list(range(len(covered)))
    assert all(message.role is Role.USER for message in history[len(covered) :])
    assert len(rounds) == sum(message.role is Role.MODEL for message in history)
    for part in rounds:
        calls = {call.id for index in part.indices for call in history[index].function_calls}
        answered = {result.call_id for index in part.indices for result in history[index].results}
        assert calls == answered


def test_the_task_is_the_first_the_opening_and_the_last_user_message() -> None:
    history = [
        user("first"),
        *round_of("r"),
        says("answer"),
        user("opens the turn"),
        *round_of("r"),
        user("steering 1"),
        *round_of("r"),
        user("steering 2"),
        *round_of("r"),
    ]
    assert [history[i].text for i in sorted(Layout(history).task)] == ["first", "opens the turn", "steering 2"]


def test_the_opening_message_is_known_after_the_end_of_the_former_turn_was_removed() -> None:
    note = Note(7).message()
    assert note is not None
    history = [user("first"), note, user("opens the turn"), *round_of("r"), user("steering"), *round_of("r")]
    assert [history[i].text for i in sorted(Layout(history).task)] == ["first", "opens the turn", "steering"]


def test_a_pinned_call_keeps_its_results_and_a_pinned_result_its_call() -> None:
    history = [user("t"), *round_of("1", pinned=Role.MODEL), *round_of("2"), *round_of("3", pinned=Role.TOOL)]
    assert Layout(history).fixed == {0, 1, 2, 5, 6}


def test_a_note_is_read_back_and_nothing_else_is_taken_for_one() -> None:
    for note in (Note(3), Note(12, "what\nwas </context-note> done")):
        message = note.message()
        assert message is not None
        assert Note.read(message) == note
    quiet = Note(4, "kept").message(announce=False)
    assert quiet is not None
    assert Note.read(quiet) == Note(4, "kept")
    assert Note(4).message(announce=False) is None
    assert is_notice(gap())
    for text in ("", "hello", "<context-note", '<context-note rounds="x">', '<context-note rounds="1"> what is this?'):
        assert not is_notice(user(text))
    assert not is_notice(says("<context-note/>"))
