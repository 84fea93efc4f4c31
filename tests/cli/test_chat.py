"""`jaato chat` as a person meets it: a real process on a real pty, with a scripted model."""

from __future__ import annotations

import re
import signal
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.chat import READY, WAIT_FOR_GO, calling, chat_environment, chatting, write_policy
from support.labs import OPENAI, WireLab
from support.terminal import ALT_ENTER, CTRL_C, CTRL_D, TAB, bare_environment, terminal
from support.wire import Answer, Reply, Request

FOREVER = {"text": "never said", "delay": 600}
UP = "\x1b[A"


def test_an_answer_is_laid_out_and_ctrl_d_leaves(tmp_path: Path) -> None:
    answer = "Some *words*.\n\n```python\nprint(1)\n```\n\n- one\n- two"
    with chatting(tmp_path, ("hello", [answer])) as screen:
        screen.line("hello")
        screen.wait_for("> hello", "Some words.", "print(1)", "• one", "• two")
        screen.wait_for("/help ·")
        screen.type(CTRL_D)
        assert screen.wait_exit() == 0
        assert "Some words." in screen.text, "the transcript stays"
        assert "/help ·" not in screen.text, "the prompt does not"


def test_an_answer_is_seen_while_it_is_written_and_kept_when_it_is_stopped(tmp_path: Path) -> None:
    def unfinished(request: Request) -> Answer:
        whole = OPENAI.render(Reply("First block.\n\nThe second is under way"), request)
        return whole.hang(whole.body.rindex(b"data:", 0, whole.body.index(b'"finish_reason": "stop"')))

    with ExitStack() as stack:
        server = WireLab(OPENAI, stack).serve(unfinished)
        options = ("--provider", OPENAI.name, "--model", OPENAI.model, "--base-url", server.url + OPENAI.path)
        with chatting(tmp_path, args=options, OPENAI_API_KEY="k") as screen:
            screen.line("hello")
            screen.wait_for("First block.", "The second is", "working, Ctrl+C stops")
            screen.type(CTRL_C)
            screen.wait_for("First block.", "The second is", "Stopped.", "Ctrl+C again leaves")
            screen.type(CTRL_C)
            assert screen.wait_exit() == 0
            assert screen.text.count("The second is") == 1


def test_several_lines_make_one_message(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        screen.type("first" + ALT_ENTER + "second\\\r")
        screen.line("third")
        screen.wait_printed("You said: first\nsecond\nthird")


def test_history_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        screen.line("remember me")
        screen.wait_for("You said: remember me")
        screen.type(CTRL_D)
        screen.wait_exit()
    file = tmp_path / "home" / "chat_history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with chatting(tmp_path) as screen:
        screen.type(UP)
        screen.wait_for("> remember me")


def test_a_history_file_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "target").write_text("mine")
    (tmp_path / "home" / "chat_history").symlink_to(tmp_path / "target")
    with chatting(tmp_path) as screen:
        screen.line("hello")
        screen.wait_for("You said: hello")
    assert (tmp_path / "target").read_text() == "mine"


def test_commands_are_completed(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        screen.type("/perm")
        screen.wait_for("Show or change what tools may do")
        screen.type(TAB)
        screen.wait_for("> /permissions")
        screen.type(" che")
        screen.wait_for("what would happen to a call")
        screen.type(TAB)
        screen.line(' write_file {"path": "x", "content": "y"}')
        screen.wait_printed("ask: the default policy is 'ask'")


def test_commands_of_the_client_and_of_plugins(tmp_path: Path) -> None:
    with chatting(tmp_path, rows=60) as screen:
        screen.line("/etc/hosts is a file")
        screen.wait_for("You said: /etc/hosts is a file")
        screen.line("/help")
        screen.wait_for("/agents", "/install", "/model", "/permissions", "/profiles", "/quit", "/skills", "/tools")
        screen.line("/tools")
        screen.wait_for("file_edit: read_file, write_file*")
        screen.line("/profiles")
        screen.wait_for("research-assistant")
        screen.line("/agents")
        screen.wait_for("No subagent has worked here since this start.")
        screen.line("/model other")
        screen.wait_for("The model is other of script.")
        screen.line("/agnets")
        screen.wait_for("Did you mean '/agents'")
        screen.line("/quit")
        assert screen.wait_exit() == 0


def test_a_skill_is_a_command_that_the_model_follows(tmp_path: Path) -> None:
    skill = tmp_path / ".jaato" / "skills" / "greet"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: greet\ndescription: Greets people.\n---\nGREETING RULES for $ARGUMENTS\n"
    )
    with chatting(tmp_path, ("GREETING RULES for Bob", ["Hello Bob, by the rules."])) as screen:
        screen.type("/gre")
        screen.wait_for("Greets people.")
        screen.line("et Bob")
        screen.wait_for("Hello Bob, by the rules.")
        assert screen.text.count("> /greet Bob") == 1, "what was typed is shown once"


def test_a_skill_is_installed(tmp_path: Path) -> None:
    skill = tmp_path / "packed" / "wave"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: wave\ndescription: Waves at people.\n---\nWAVING RULES\n")
    with chatting(tmp_path, ("WAVING RULES", ["Waved."])) as screen:
        screen.line("/install packed/wave")
        screen.wait_for("installed 'wave'")
        screen.line("/wave")
        screen.wait_for("Waved.")


def test_what_is_typed_meanwhile_joins_the_turn(tmp_path: Path) -> None:
    rules = ("wait", [{"calls": [WAIT_FOR_GO]}, "not heard"]), ("also this", ["Heard you."])
    with chatting(tmp_path, *rules, args=("--permissions", write_policy(tmp_path))) as screen:
        screen.line("wait")
        screen.wait_for("→ cli")
        screen.line("also this")
        screen.wait_for("joins the turn under way")
        (tmp_path / "go").touch()
        screen.wait_for("Heard you.")
        assert "not heard" not in screen.text


def test_ctrl_c_stops_the_turn_and_twice_leaves(tmp_path: Path) -> None:
    rules = (
        ("delegate", [calling("spawn_subagent", task="slow work", name="turtle", background=True), "Delegated."]),
        ("slow", [FOREVER]),
    )
    with chatting(tmp_path, *rules, args=("--permissions", write_policy(tmp_path))) as screen:
        screen.line("delegate")
        screen.wait_for("Delegated.", "● turtle running")
        screen.line("be slow")
        screen.wait_for("working, Ctrl+C stops")
        screen.type("half a thought")
        screen.wait_for("> half a thought")
        screen.type(CTRL_C)
        screen.wait_for("Stopped.", "go on in the background: turtle", "● turtle running", "> half a thought")
        screen.type(CTRL_C)
        assert screen.wait_exit() == 0
        assert "Stopped with the conversation: turtle" in screen.text


def test_what_waits_when_a_turn_is_stopped_is_the_next_turn(tmp_path: Path) -> None:
    with chatting(tmp_path, ("slow", [FOREVER]), ("instead", ["Then this."])) as screen:
        screen.line("slow")
        screen.wait_for("working, Ctrl+C stops")
        screen.line("this instead")
        screen.wait_for("joins the turn under way")
        screen.type(CTRL_C)
        screen.wait_for("Stopped.", "Then this.", "/help ·", gone=["Ctrl+C again leaves"])


def test_ctrl_c_without_a_turn(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        screen.type("not sent")
        screen.wait_for("> not sent")
        screen.type(CTRL_C)
        screen.wait_for(">", gone=["not sent"])
        screen.type(CTRL_C)
        screen.wait_for("Ctrl+C again leaves")
        screen.line("I stay")
        screen.wait_for("You said: I stay", gone=["Ctrl+C again leaves"])
        screen.type(CTRL_C)
        screen.wait_for("Ctrl+C again leaves")
        screen.type(CTRL_C)
        assert screen.wait_exit() == 0


def test_an_agent_is_cancelled_by_its_name(tmp_path: Path) -> None:
    spawn = calling("spawn_subagent", task="slow work", name="turtle", background=True)
    rules = ("delegate", [spawn, "Delegated."]), ("slow", [FOREVER]), ("cancelled these", ["So I heard."])
    with chatting(tmp_path, *rules, args=("--permissions", write_policy(tmp_path))) as screen:
        screen.line("delegate")
        screen.wait_for("● turtle running")
        screen.line("/agents cancel turtle")
        screen.wait_for("Cancelled:", "turtle cancelled")
        screen.line("/agents")
        screen.wait_for("■ turtle cancelled")
        screen.line("and now?")
        screen.wait_for("So I heard.")


def test_fifty_agents_leave_room_for_the_prompt(tmp_path: Path) -> None:
    spawns = [
        {"name": "spawn_subagent", "args": {"task": f"slow {number}", "name": f"worker-{number}", "background": True}}
        for number in range(50)
    ]
    rules = ("fan out", [{"calls": spawns}, "All fifty are at work."]), ("slow", [FOREVER])
    options = ("--permissions", write_policy(tmp_path), "-c", "subagent.max_children=60")
    with chatting(tmp_path, *rules, args=options, rows=24) as screen:
        screen.line("fan out")
        screen.wait_for("… 42 queued", "agents: 8 running, 42 queued")
        screen.wait_until(lambda: screen.screen.count("● worker-") == 8, "a line for every agent at work")
        screen.wait_printed("All fifty are at work.")
        screen.type("still here")
        screen.wait_for("> still here")
        screen.type(CTRL_C + CTRL_C + CTRL_C)
        assert screen.wait_exit() == 0


@pytest.mark.parametrize("columns", [40, 20])
def test_narrow_windows_and_other_sizes(columns: int, tmp_path: Path) -> None:
    with chatting(tmp_path, columns=columns, rows=16) as screen:
        screen.line("a sentence that is longer than the window is wide, by far")
        screen.wait_until(lambda: "You said: a sentence" in " ".join(screen.text.split()), "the answer")
        screen.resize(100, 30)
        screen.line("wider")
        screen.wait_for("You said: wider")
        screen.resize(columns, 10)
        screen.line("narrow")
        screen.wait_until(lambda: "You said: narrow" in " ".join(screen.text.split()), "the second answer")
        screen.type(CTRL_D)
        assert screen.wait_exit() == 0


def test_no_colours_where_none_are_wanted(tmp_path: Path) -> None:
    with chatting(tmp_path, ("write", [calling("write_file", path="a", content="b\n")]), NO_COLOR="1") as screen:
        screen.line("write")
        screen.wait_for("Allow?", "+b")
        coloured = re.search(rb"\x1b\[[0-9;]*\b(3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m", screen.raw)
        assert coloured is None, coloured


def test_a_model_cannot_reach_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07 \x1b[2J\x1b[31mred \x9b31m \u202eback &#x1b;[5m &#x202e;too\r <b>tag</b> end"
    call = calling("write_file", path="\x1b]0;owned\x07x", content="\x1b[2J")
    with chatting(tmp_path, ("evil", [{"text": hostile, **call}, hostile])) as screen:
        screen.line("evil")
        screen.wait_for("Allow?")
        screen.line("d")
        screen.line("n")
        screen.wait_for("<b>tag</b> end", "denied (n)")
        screen.wait_for("/help ·")
        for sequence in (b"\x1b]0;", b"\x1b[2J", b"\x1b[5m", "\x9b".encode(), "\u202e".encode()):
            assert sequence not in screen.raw


def test_tab_right_after_a_letter_completes(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        screen.type("/he\t")  # in one go: nothing was looked up yet
        screen.wait_for("> /help")
        screen.type("\r")
        screen.wait_for("All commands and keys")


def test_a_message_waits_for_the_command_above_it(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        for number in range(5):
            screen.type(f"/model nowhere.yaml\r/model echo\rhello {number}\r")
            screen.wait_for(f"You said: hello {number}")
        assert "cannot be read" not in screen.text


def test_a_failing_model_call_is_told_and_the_chat_goes_on(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        screen.line("/model nowhere.yaml")
        screen.wait_for("The model is nowhere.yaml")
        screen.line("hello")
        screen.wait_for("nowhere.yaml cannot be read")
        screen.line("/model echo")
        screen.line("hello again")
        screen.wait_for("You said: hello again")


def test_without_a_key_it_says_what_to_set_and_offers_the_demo(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Hello\n")
    with terminal("chat", cwd=tmp_path, env=bare_environment(tmp_path)) as screen:
        screen.wait_for("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "jaato demo", "Watch the demo now?")
        screen.line("n")
        assert screen.wait_exit() == 2
    with terminal("chat", cwd=tmp_path, env=bare_environment(tmp_path)) as screen:
        screen.wait_for("Watch the demo now?")
        screen.line("y")
        screen.wait_until(lambda: "●" in screen.text or "✓" in screen.text, "agents at work")


def test_a_broken_server_list_does_not_stop_the_chat(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{")
    with chatting(tmp_path) as screen:
        screen.wait_printed("plugin 'mcp' is left out", READY)


def test_a_signal_from_outside_is_like_the_key(tmp_path: Path) -> None:
    with chatting(tmp_path, ("slow", [FOREVER])) as screen:
        screen.line("slow")
        screen.wait_for("working")
        screen.process.send_signal(signal.SIGINT)
        screen.wait_for("Stopped.", "Ctrl+C again leaves")
        screen.process.send_signal(signal.SIGINT)
        assert screen.wait_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_ended_from_outside_leaves_the_terminal_in_order(number: signal.Signals, tmp_path: Path) -> None:
    with chatting(tmp_path, ("slow", [FOREVER])) as screen:
        screen.line("slow")
        screen.wait_for("working")
        assert not screen.echoes, "keys are read one by one"
        screen.process.send_signal(number)
        assert screen.wait_exit() == 0
        assert screen.echoes


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    with chatting(tmp_path) as screen:
        screen.type_bytes(b"caf\xe9 ol\xc3\xa9\r")
        screen.wait_for("You said: caf? olé")
        screen.line("again")
        screen.wait_for("You said: again")
    assert "caf? olé" in (tmp_path / "home" / "chat_history").read_text()


def test_help_stays_quick_because_the_terminal_library_is_imported_late(tmp_path: Path) -> None:
    code = "import sys; from shared.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print([name for name in sys.modules if name.startswith(('prompt_toolkit', 'rich'))])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=chat_environment(tmp_path), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.endswith("[]\n"), done.stdout
