"""The parts of the chat that need no terminal: cleaning, blocks, rendering, stray output, resuming."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from shared import Message, Role
from shared.cli.chat.answer import Answer
from shared.cli.chat.blocks import BlockStream
from shared.cli.chat.conversations import Conversation, begin
from shared.cli.chat.presenting import presented
from shared.cli.chat.rendering import Renderer
from shared.cli.chat.setup import guide
from shared.cli.chat.stray_output import captured
from shared.cli.host import HostOptions, usual_plugins
from shared.cli.plain_text import plain, plain_line
from shared.errors import ConfigError
from shared.providers.detect import LocalServer
from shared.session import JaatoSession
from shared.settings import load_settings
from shared.testing import scripted_client


@given(st.text(st.characters(), max_size=200))
def test_nothing_that_steers_a_terminal_passes(text: str) -> None:
    shown = plain(text)
    assert not any(ord(char) < 32 and char != "\n" for char in shown)
    assert not any(127 <= ord(char) < 160 for char in shown)
    shown.encode()
    assert "\n" not in plain_line(text)


def test_what_people_write_passes() -> None:
    text = "Grüße, 名前, 👩‍🚀 ❤️, שלום\nand a second line"
    assert plain(text) == text


SAMPLES = (
    "One paragraph.",
    "One.\n\nTwo.\n\n\nThree.\n",
    "Code:\n\n```python\na = 1\n\nb = 2\n```\nafter\n",
    "~~~\n```\n\n~~~\n\nend",
    "````\n```\n\n````\nend",
    "```\nnever closed\n\nstill code",
)


@pytest.mark.parametrize("text", SAMPLES)
def test_blocks_do_not_depend_on_how_the_text_was_cut(text: str) -> None:
    whole = BlockStream()
    expected = [*whole.feed(text), *whole.finish()]
    for size in (1, 2, 3, 7):
        stream = BlockStream()
        found: list[str] = []
        for start in range(0, len(text), size):
            found += stream.feed(text[start : start + size])
        assert [*found, *stream.finish()] == expected
        assert stream.tail == ""


def test_code_stays_in_one_block() -> None:
    stream = BlockStream()
    assert stream.feed("Look:\n\n```\na\n") == ["Look:"]
    assert stream.tail == "```\na\n"
    assert stream.feed("\nb\n```\n") == ["```\na\n\nb\n```"]


def rendered(markup: str, width: int = 60) -> str:
    return Renderer(Console(force_terminal=False)).text([Answer(markup)], width)


def test_an_answer_keeps_tags_line_breaks_and_addresses() -> None:
    assert rendered("a\nb <i>c</i>") == "a\nb <i>c</i>\n"
    assert "http://example.org" in rendered("[click](http://example.org)")
    assert "\x1b" not in rendered("&#27;[31m &#x1b;]0;x&#7; &#x9b;")
    assert "\u202e" not in rendered("&#x202e;x")


def test_a_server_on_this_machine_is_named(tmp_path: Path) -> None:
    server = LocalServer("ollama", "http://127.0.0.1:11434/v1", ("qwen3\x1b[2J", "other"))
    text = guide(HostOptions(), load_settings(tmp_path), [server])
    assert "ollama runs on this machine" in text
    alone = guide(HostOptions(), load_settings(tmp_path))
    assert max(map(len, alone.splitlines())) <= 80, "it fits into a terminal"
    command = "jaato chat --provider openai_compatible --model qwen3[2J --base-url http://127.0.0.1:11434/v1"
    assert command in text


def test_the_usual_plugins_follow_the_settings(tmp_path: Path) -> None:
    usual = usual_plugins(load_settings(tmp_path))
    assert {"cli", "file_edit", "todo", "references", "subagent", "skills"} <= set(usual)
    assert "mcp" not in usual
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {}}')
    (tmp_path / ".jaato").mkdir()
    (tmp_path / ".jaato" / "config.yaml").write_text("plugins:\n  todo: false\n  cli: {timeout_seconds: 5}\n")
    usual = usual_plugins(load_settings(tmp_path, trust_workspace=True))
    assert "mcp" in usual
    assert "todo" not in usual
    assert usual["cli"] == {"timeout_seconds": 5}


MARKS = "*_`#>-+|[]()!<&;:~\\\n \tab1.=\"'"


@given(st.text(MARKS, max_size=300), st.sampled_from([1, 5, 40]))
def test_whatever_a_model_writes_can_be_shown(markup: str, width: int) -> None:
    text = rendered(markup, width)
    assert "\x1b" not in text
    assert text.endswith("\n")


@pytest.mark.parametrize("markup", ["> " * 40 + "deep", "- " * 40 + "deep", "long " * 10_000 + "deep"])
def test_what_cannot_be_laid_out_is_shown_as_it_is(markup: str) -> None:
    assert "deep" in rendered(markup)


def test_colours_follow_the_terminal() -> None:
    coloured = Renderer(Console(force_terminal=True, color_system="standard", no_color=False))
    assert "\x1b[" in coloured.text([Answer("**bold**")], 40)
    assert "\x1b[" not in rendered("**bold**")


def test_what_others_print_becomes_lines() -> None:
    lines: list[str] = []
    with captured(lines.append):
        sys.stdout.write("half ")
        sys.stderr.write("a line\n\nand another\nrest")
    assert lines == ["half a line", "and another"]


def test_results_of_commands_are_presented() -> None:
    result = {
        "success": True,
        "profiles": [{"name": "a", "description": "b\x1bc", "plugins": ["x", "y"]}],
        "problems": [],
    }
    assert [line.plain for line in presented(result)] == ["a  bc", "  plugins: x, y"]
    assert [line.plain for line in presented("text\n")] == ["text"]
    assert [line.plain for line in presented({"success": True})] == ["Nothing to show."]


class Kept:
    """Conversations in memory."""

    def __init__(self, **histories: Sequence[Message]) -> None:
        self._histories = histories
        self.kept: list[JaatoSession] = []

    def keep(self, session: JaatoSession) -> None:
        self.kept.append(session)

    def newest(self) -> Sequence[Conversation]:
        return [Conversation(name) for name in reversed(self._histories)]

    def resume(self, session: JaatoSession, conversation_id: str) -> None:
        session.reset_session(self._histories[conversation_id])


def said(*texts: str) -> list[Message]:
    roles = [Role.USER, Role.MODEL] * len(texts)
    return [Message.from_text(role, text) for role, text in zip(roles, texts, strict=False)]


@pytest.mark.parametrize(("wanted", "expected"), [("last", "second"), ("one", "first")])
def test_a_conversation_is_gone_on_with(wanted: str, expected: str) -> None:
    kept = Kept(one=said("first", "an answer"), two=said("second", "an answer"))
    with scripted_client(["third"]) as client:
        shown = begin(client.get_session(), kept, wanted)
        assert any(expected in str(thing) for thing in shown)
        client.send_message("more")
        assert [message.text for message in client.get_history()] == [expected, "an answer", "more", "third"]
        assert kept.kept == []


def test_a_new_conversation_is_kept() -> None:
    kept = Kept()
    with scripted_client(["x"]) as client:
        assert begin(client.get_session(), kept, None) == []
        assert kept.kept == [client.get_session()]
        assert begin(client.get_session(), None, None) == []


@pytest.mark.parametrize(
    ("kept", "wanted", "message"),
    [
        (None, "last", "no earlier conversation"),
        (Kept(), "last", "start one with jaato chat"),
        (Kept(one=said("a", "b")), "on", "Did you mean 'one'"),
    ],
)
def test_what_cannot_be_gone_on_with_says_so(kept: Kept | None, wanted: str, message: str) -> None:
    with scripted_client(["x"]) as client, pytest.raises(ConfigError, match=message):
        begin(client.get_session(), kept, wanted)
