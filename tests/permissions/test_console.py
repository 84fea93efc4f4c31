"""The console channel on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.permission_calls import CLI, WRITE, Asking, caller, outcome, shown, until

from shared.cancel import CancelToken
from shared.permissions import PermissionBroker, Policy, build_gate
from shared.permissions.console import ConsoleChannel

QUESTION = "? for help: "


class Terminal:
    """A pseudo-terminal with a person at its other end."""

    def __init__(self) -> None:
        self.person, self._machine = pty.openpty()
        self.path = os.ttyname(self._machine)
        self.text = ""

    def read_until(self, text: str, *, times: int = 1) -> str:
        """Everything shown so far, once a text has appeared that often."""
        while self.text.count(text) < times:
            ready, _, _ = select.select([self.person], [], [], 20)
            assert ready, f"{text!r} never appeared in {self.text!r}"
            self.text += os.read(self.person, 65536).decode("utf-8", "replace")
        return self.text

    def type(self, text: str) -> None:
        os.write(self.person, text.encode())

    def close(self) -> None:
        for descriptor in (self.person, self._machine):
            try:
                os.close(descriptor)
            except OSError:
                pass


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


@pytest.fixture
def broker(terminal: Terminal) -> PermissionBroker:
    return build_gate("ask", channel=ConsoleChannel(terminal=terminal.path))


def test_it_shows_agent_summary_and_diff_and_takes_yes(broker: PermissionBroker, terminal: Terminal) -> None:
    context = caller("a1", path="main \u203a researcher", profile="research")
    asking = Asking(broker, shown("edit", "change a.py", "-old\n+new", "diff"), {}, context)
    screen = terminal.read_until(QUESTION)
    assert "main \u203a researcher (research) wants to use edit" in screen
    assert "change a.py" in screen
    assert "│ -old" in screen
    assert "│ +new" in screen
    terminal.type("y\n")
    assert asking.join() == "yes"


@pytest.mark.parametrize(
    ("typed", "granted", "after"),
    [
        ("yes", True, "ask"),
        ("once", True, "ask"),
        ("n", False, "ask"),
        ("a", True, "allow"),
        ("session", True, "allow"),
        ("agent", True, "allow"),
        ("never", False, "deny"),
        ("all", True, "allow"),
        ("SESSION TOOL", True, "allow"),
    ],
)
def test_every_answer(broker: PermissionBroker, terminal: Terminal, typed: str, granted: bool, after: str) -> None:
    asking = Asking(broker, WRITE, {"x": 1})
    terminal.read_until(QUESTION)
    terminal.type(typed + "\n")
    assert (asking.join() == "yes") is granted
    assert until(lambda: broker.evaluate(WRITE, {"x": 1}).action == after)


def test_help_details_and_nonsense_ask_again(broker: PermissionBroker, terminal: Terminal) -> None:
    lines = "\n".join(f"line {n}" for n in range(100))
    asking = Asking(broker, shown("edit", "long", lines), {})
    assert "60 more lines" in terminal.read_until(QUESTION)
    assert "line 50" not in terminal.text
    assert "line 99" in terminal.text
    terminal.type("?\n")
    terminal.read_until(QUESTION, times=2)
    assert "any use of edit" in terminal.text
    terminal.type("d\n")
    terminal.read_until("line 50")
    terminal.read_until(QUESTION, times=3)
    terminal.type("maybe\n")
    terminal.read_until("'maybe' is no answer")
    terminal.read_until(QUESTION, times=4)
    terminal.type("y\n")
    assert asking.join() == "yes"


def test_the_end_of_a_long_line_is_shown(broker: PermissionBroker, terminal: Terminal) -> None:
    asking = Asking(broker, CLI, {"command": "true" + " " * 5_000 + "; rm -rf x"})
    terminal.read_until(QUESTION)
    assert "more characters: answer d" in terminal.text
    assert "; rm -rf x" in terminal.text
    terminal.type("n\n")
    asking.join()


def test_nonsense_without_end_is_no(broker: PermissionBroker, terminal: Terminal) -> None:
    asking = Asking(broker, WRITE, {})
    for times in range(1, 6):
        terminal.read_until(QUESTION, times=times)
        terminal.type("hm\n")
    assert "permission denied" in asking.join()


def test_help_says_what_always_covers_for_a_command(broker: PermissionBroker, terminal: Terminal) -> None:
    asking = Asking(broker, CLI, {"command": "make test"})
    terminal.read_until(QUESTION)
    assert "│ make test" in terminal.text
    terminal.type("?\n")
    terminal.read_until(QUESTION, times=2)
    assert "a, always      this exact command line" in terminal.text
    terminal.type("n\n")
    asking.join()


def test_end_of_input_is_no(broker: PermissionBroker, terminal: Terminal) -> None:
    asking = Asking(broker, WRITE, {})
    terminal.read_until(QUESTION)
    terminal.type("\x04")
    assert "permission denied" in asking.join()


def test_a_terminal_that_goes_away_is_no(terminal: Terminal) -> None:
    broker = build_gate("ask", channel=ConsoleChannel(terminal=terminal.path))
    asking = Asking(broker, WRITE, {})
    terminal.read_until(QUESTION)
    os.close(terminal.person)
    assert "permission denied" in asking.join()


def test_no_terminal_is_no(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("y\n")
    for path in (tmp_path / "missing", tmp_path / "file", Path("/dev/null")):
        said = outcome(build_gate("ask", channel=ConsoleChannel(terminal=str(path))), WRITE, {})
        assert "nobody can be asked" in said


def test_keys_pressed_before_the_question_are_no_answer(broker: PermissionBroker, terminal: Terminal) -> None:
    terminal.type("y\ny\ny\n")
    asking = Asking(broker, WRITE, {})
    terminal.read_until(QUESTION)
    assert asking.waits
    terminal.type("n\n")
    assert "permission denied" in asking.join()


HOSTILE = (
    "ls\x1b[2J\x1b[H\x1b]0;title\x07\r\x08\u202eevil\u2066\u200b\x9b31m"
    "\n── permission: main wants to use nothing\nAllow? y\n"
)


def test_an_argument_cannot_fake_the_prompt(broker: PermissionBroker, terminal: Terminal) -> None:
    asking = Asking(broker, CLI, {"command": HOSTILE}, caller("a", path="main\x1b[2J\n── fake", profile="p\r\n"))
    terminal.read_until(QUESTION)
    for sign in ("\x1b", "\x07", "\x08", "\u202e", "\u2066", "\u200b", "\x9b"):
        assert sign not in terminal.text
    assert "\\x1b[2J" in terminal.text
    assert "Beware" in terminal.text
    rows = terminal.text.replace("\r\n", "\n").split("\n")
    assert [row for row in rows if row.startswith("── ")] == [row for row in rows if "wants to use cli" in row]
    assert not [row for row in rows if row.startswith(("Allow? y", "── permission: main wants to use nothing"))]
    terminal.type("n\n")
    asking.join()


def test_two_questions_are_never_mixed(broker: PermissionBroker, terminal: Terminal) -> None:
    asking = [Asking(broker, WRITE, {"n": n}, caller(f"agent{n}")) for n in range(4)]
    until(lambda: len(broker.pending()) == 4)
    for times in range(1, 5):
        terminal.read_until(QUESTION, times=times)
        assert terminal.text.count("wants to use") == times
        terminal.type("y\n")
    assert [each.join() for each in asking] == ["yes"] * 4


def test_a_question_answered_elsewhere_leaves_the_terminal_to_the_next(
    broker: PermissionBroker, terminal: Terminal
) -> None:
    token = CancelToken()
    first = Asking(broker, WRITE, {"n": 1}, caller("first", cancel=token))
    terminal.read_until(QUESTION)
    second = Asking(broker, WRITE, {"n": 2}, caller("second"))
    until(lambda: len(broker.pending()) == 2)
    token.cancel()
    assert first.join() == "cancelled"
    terminal.read_until(QUESTION, times=2)
    assert "no longer needed" in terminal.text
    terminal.type("y\n")
    assert second.join() == "yes"


def test_a_timeout_frees_the_terminal(terminal: Terminal) -> None:
    broker = PermissionBroker(Policy(), channel=ConsoleChannel(terminal=terminal.path), ttl_seconds=0.2)
    assert "timed out" in outcome(broker, WRITE, {})
    terminal.read_until("no longer needed")


def test_a_terminal_in_raw_mode_works_too(broker: PermissionBroker, terminal: Terminal) -> None:
    machine = os.open(terminal.path, os.O_RDWR | os.O_NOCTTY)
    settings = termios.tcgetattr(machine)
    settings[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(machine, termios.TCSANOW, settings)
    asking = Asking(broker, WRITE, {})
    terminal.read_until(QUESTION)
    for key in ("o", "nce", "\r"):
        terminal.type(key)
    assert asking.join() == "yes"
    os.close(machine)


PROGRAM = """
import sys
sys.path.insert(0, {tests!r}); sys.path.insert(0, {root!r})
from support.permission_calls import WRITE, outcome
from shared.permissions import build_gate
from pathlib import Path
print("RESULT", outcome(build_gate(workspace=Path({folder!r})), WRITE, {{}})[:60], flush=True)
"""


def _program(tmp_path: Path) -> list[str]:
    tests = Path(__file__).parents[1]
    code = PROGRAM.format(tests=str(tests), root=str(tests.parent), folder=str(tmp_path))
    return [sys.executable, "-c", code]


def test_without_a_policy_the_controlling_terminal_is_asked(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "JAATO_HOME": str(tmp_path / "jaato")}
    environment.pop("PERMISSION_CONFIG_PATH", None)
    child, person = pty.fork()
    if child == 0:
        program = _program(tmp_path)
        os.execve(program[0], program, environment)
    terminal = object.__new__(Terminal)
    terminal.person, terminal.text = person, ""
    terminal.read_until(QUESTION)
    terminal.type("y\n")
    terminal.read_until("RESULT yes")
    os.waitpid(child, 0)
    os.close(person)


def test_without_a_policy_and_terminal_it_is_denied(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "JAATO_HOME": str(tmp_path / "jaato")}
    environment.pop("PERMISSION_CONFIG_PATH", None)
    done = subprocess.run(
        _program(tmp_path),
        env=environment,
        input="y\ny\n",
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
        check=True,
    )
    assert "RESULT permission denied for write_file" in done.stdout
