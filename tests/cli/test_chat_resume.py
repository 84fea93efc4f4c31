"""Going on with an earlier conversation: after leaving, after a crash, and not with one that somebody leads."""

from __future__ import annotations

from pathlib import Path

from support.chat import calling, chatting, piped, write_policy
from support.terminal import CTRL_D

from shared.store import Reader

CONTINUE = ("--continue",)


def conversations(folder: Path) -> list[str]:
    with Reader(folder / ".jaato" / "state" / "runs.db") as reader:
        return [each.id for each in reader.conversations()]


def test_the_last_conversation_goes_on_where_it_ended(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        screen.line("the password is swordfish")
        screen.wait_for("You said: the password is swordfish")
        screen.type(CTRL_D)
        assert screen.wait_exit() == 0
    with chatting(tmp_path, args=CONTINUE) as screen:
        screen.wait_for("Going on after 2 messages.", "> the password is swordfish")
        screen.line("and more")
        screen.wait_for("You said: and more")
        screen.type(CTRL_D)
        screen.wait_exit()
    with chatting(tmp_path, args=("--resume",)) as screen:
        screen.wait_for("Going on after 4 messages.", "> and more")
    assert len(conversations(tmp_path)) == 1


def test_one_by_its_id_and_behind_a_pipe(tmp_path: Path) -> None:
    piped(tmp_path, "first\n")
    piped(tmp_path, "second\n")
    newest, oldest = conversations(tmp_path)
    assert "Going on" not in piped(tmp_path, "third\n", args=("--provider", "script", "--resume", oldest)).stdout
    with Reader(tmp_path / ".jaato" / "state" / "runs.db") as reader:
        counts = {each.id: each.messages for each in reader.conversations()}
    assert counts == {oldest: 4, newest: 2}
    wrong = piped(tmp_path, "x\n", args=("--provider", "script", "--resume", "conv_nope"))
    assert wrong.returncode == 2
    assert oldest in wrong.stderr


def test_nothing_to_go_on_with(tmp_path: Path) -> None:
    done = piped(tmp_path, "hello\n", args=("--provider", "script", "--continue"))
    assert done.returncode == 2
    assert "no earlier conversation" in done.stderr


def test_after_a_crash_what_was_said_is_there(tmp_path: Path) -> None:
    rules = ("hello", ["Hi."]), ("write", [calling("write_file", path="a", content="b"), "Never."])
    with chatting(tmp_path, *rules, args=("--permissions", write_policy(tmp_path))) as screen:
        screen.line("hello")
        screen.wait_for("Hi.")
        screen.line("write")
        screen.wait_for("Allow?")
        screen.process.kill()
        screen.wait_exit()
    with chatting(tmp_path, ("what now", ["Going on."]), args=CONTINUE) as screen:
        screen.wait_for("> hello", "Hi.", "> write")
        screen.line("what now")
        screen.wait_for("Going on.")
    assert not (tmp_path / "a").exists()


def test_a_conversation_that_another_process_leads_is_left_alone(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        screen.line("mine")
        screen.wait_for("You said: mine")
        done = piped(tmp_path, "hello\n", args=("--provider", "script", "--continue"))
        assert done.returncode == 2
        assert "no earlier conversation" in done.stderr
        screen.line("still mine")
        screen.wait_for("You said: still mine")
