"""Permission questions in `jaato chat`: who asks for what, one at a time, and never in the way of what is typed."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.chat import WAIT_FOR_GO, calling, chatting, write_policy
from support.terminal import CTRL_C, CTRL_T

from shared.cancel import CancelToken
from shared.cli.chat.approvals import ChatChannel
from shared.permissions.channel import ChannelFailed
from shared.permissions.request import Decision, PermissionRequest
from shared.plugin import PermissionDisplayInfo


def spawning(*names: str, **more: str) -> dict[str, Any]:
    """A reply that starts children in the background, each with a task of its name."""
    args = [{"task": f"task of {name}", "name": name, "background": True, **more} for name in names]
    return {"calls": [{"name": "spawn_subagent", "args": each} for each in args]}


def test_an_edit_is_shown_as_a_diff_before_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("old line\nkept\n")
    edit = calling("edit_file", path="notes.txt", old_text="old line", new_text="new line")
    with chatting(tmp_path, ("edit", [edit, "Edited."])) as screen:
        screen.line("edit")
        screen.wait_for("? main wants to use edit_file", "│ -old line", "│ +new line", "Allow?")
        assert (tmp_path / "notes.txt").read_text() == "old line\nkept\n"
        screen.line("perhaps")
        screen.wait_for("'perhaps' is no answer")
        screen.line("?")
        screen.wait_for("the same call again by any agent")
        screen.line("y")
        screen.wait_for("Edited.", "allowed (y)", gone=["Allow?"])
        assert (tmp_path / "notes.txt").read_text() == "new line\nkept\n"


def test_a_command_is_shown_and_denied_for_the_session(tmp_path: Path) -> None:
    run = calling("cli", command="touch made && echo done")
    with chatting(tmp_path, ("first", [run, "Not the first time."]), ("second", [run, "Nor the second."])) as screen:
        screen.line("first")
        screen.wait_for("touch made && echo done", "Allow?")
        screen.line("never")
        screen.wait_for("Not the first time.")
        screen.line("second")
        screen.wait_for("Nor the second.")
        assert screen.text.count("denied (never)") == 1, "asked once"
        assert not (tmp_path / "made").exists()


def test_long_details_can_be_seen_in_full(tmp_path: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(100))
    with chatting(tmp_path, ("write", [calling("write_file", path="long", content=content), "Written."])) as screen:
        screen.line("write")
        screen.wait_for("more lines: answer d to see them", "+line 0", "+line 99", "Allow?")
        assert "+line 50" not in screen.text
        screen.line("d")
        screen.wait_printed("│ +line 50")
        screen.line("y")
        screen.wait_for("Written.")
        assert (tmp_path / "long").read_text() == content


def test_a_window_without_room_for_a_question_has_it_printed(tmp_path: Path) -> None:
    write = calling("write_file", path="a", content="first\nsecond\nthird\n")
    with chatting(tmp_path, ("write", [write, "Written."]), columns=40, rows=7) as screen:
        screen.line("write")
        screen.wait_for("Allow?")
        screen.wait_printed("│ +first", "│ +second", "│ +third")
        screen.line("y")
        screen.wait_for("Written.")


def test_a_child_asks_while_a_message_is_typed(tmp_path: Path) -> None:
    rules = (
        ("task of scribe", [{"calls": [WAIT_FOR_GO]}, calling("write_file", path="a", content="b"), "Done."]),
        ("delegate", [spawning("scribe", profile="test-writer"), "Delegated."]),
        ("have finished", ["Got your message, and the news."]),
    )
    with chatting(tmp_path, *rules, args=("--permissions", write_policy(tmp_path))) as screen:
        screen.line("delegate")
        screen.wait_for("Delegated.", "scribe running cli")
        screen.type("my mess")
        screen.wait_for("> my mess")
        (tmp_path / "go").touch()
        screen.wait_for(
            "? main › scribe (test-writer) wants to use write_file", "Ctrl+T to answer", "> my mess", "asks for"
        )
        screen.type("age")
        screen.wait_for("> my message")
        screen.type(CTRL_T)
        screen.wait_for("Allow?")
        screen.line("y")
        screen.wait_for("allowed (y) main › scribe: write_file", "> my message", gone=["Ctrl+T to answer"])
        screen.wait_for("✓ scribe completed")
        screen.line("")
        screen.wait_for("> my message", "Got your message, and the news.")
        assert (tmp_path / "a").read_text() == "b"


def test_two_questions_are_asked_one_after_the_other(tmp_path: Path) -> None:
    writes = {name: calling("write_file", path=name, content=name) for name in ("left", "right")}
    rules = (
        *((f"task of {name}", [{"calls": [WAIT_FOR_GO]}, write, "Done."]) for name, write in writes.items()),
        ("delegate", [spawning("left", "right"), "Delegated."]),
    )
    with chatting(tmp_path, *rules, args=("--permissions", write_policy(tmp_path))) as screen:
        screen.line("delegate")
        screen.wait_for("left running cli", "right running cli")
        (tmp_path / "go").touch()
        screen.wait_for("1 more waiting", "Allow?")
        first, second = ("left", "right") if "? main › left" in screen.screen else ("right", "left")
        assert f"? main › {second}" not in screen.screen
        screen.line("y")
        screen.wait_for(f"? main › {second}", gone=["more waiting", f"? main › {first}"])
        screen.line("n")
        screen.wait_for(f"denied (n) main › {second}", gone=["Allow?"])
        screen.wait_until(lambda: "left completed" in screen.text or "left denied" in screen.text, "the end of left")
        screen.wait_until(lambda: "right completed" in screen.text or "right denied" in screen.text, "of right")
    assert (tmp_path / first).exists()
    assert not (tmp_path / second).exists()


def test_a_question_that_times_out_goes_away_and_the_next_is_not_answered_by_mistake(tmp_path: Path) -> None:
    channel = {"type": "console", "timeout": 3}
    rules = (
        ("write", [calling("write_file", path="a", content="b"), calling("write_file", path="c", content="d"), "End."]),
    )
    with chatting(tmp_path, *rules, args=("--permissions", write_policy(tmp_path, channel=channel))) as screen:
        screen.line("write")
        screen.wait_for("Create a", "Allow?")
        screen.wait_for("nobody answered in time", "Create c", "Ctrl+T to answer", gone=["Allow?", "Create a"])
        screen.type("y")
        screen.wait_for("> y")
        screen.wait_for("End.", "> y", gone=["Ctrl+T to answer"])
        assert not list(tmp_path.glob("[ac]"))


def test_ctrl_c_takes_the_question_of_the_turn_back(tmp_path: Path) -> None:
    with chatting(tmp_path, ("write", [calling("write_file", path="a", content="b")])) as screen:
        screen.line("write")
        screen.wait_for("Allow?")
        screen.type(CTRL_C)
        screen.wait_for("Stopped.", gone=["Allow?"])
        assert not (tmp_path / "a").exists()


def _request(name: str, summary: str = "call it") -> PermissionRequest:
    now = time.time()
    return PermissionRequest(name, "main", "main", "tool", {}, PermissionDisplayInfo(summary, ""), now, now + 60)


class Asking:
    """Somebody who asks through a channel in a thread, and what came of it."""

    def __init__(self, channel: ChatChannel, name: str) -> None:
        self.ended = CancelToken()
        self.outcome: Decision | Exception | None = None
        shown = threading.Event()
        channel.on_change(shown.set)
        self._thread = threading.Thread(target=self._ask, args=(channel, name), daemon=True)
        self._thread.start()
        assert shown.wait(20)

    def _ask(self, channel: ChatChannel, name: str) -> None:
        try:
            self.outcome = channel.ask(_request(name), self.ended)
        except ChannelFailed as error:
            self.outcome = error

    def result(self) -> Decision | Exception | None:
        self._thread.join(20)
        return self.outcome


def test_an_answer_is_for_the_question_that_was_shown() -> None:
    channel = ChatChannel()
    first = Asking(channel, "first")
    shown = channel.question
    assert shown is not None
    first.ended.cancel("withdrawn")
    assert isinstance(first.result(), ChannelFailed)
    second = Asking(channel, "second")
    assert not channel.answer(shown, Decision(True)), "the first does not wait any more"
    now = channel.question
    assert now is not None
    assert channel.answer(now, Decision(False))
    assert second.result() == Decision(False)
    assert not channel.answer(now, Decision(True)), "answered once"


def test_a_closed_channel_answers_nothing() -> None:
    channel = ChatChannel()
    asking = Asking(channel, "open")
    channel.close()
    assert isinstance(asking.result(), ChannelFailed)
    assert not channel.available()
    with pytest.raises(ChannelFailed):
        channel.ask(_request("late"), CancelToken())
    assert channel.question is None
