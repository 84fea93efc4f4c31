"""The debug trace: for the owner's eyes only, rotated, without secrets."""

from __future__ import annotations

import logging
import os
import stat
import threading
from pathlib import Path

import pytest
from support.stress import run_threads, times

from shared.bus import EventBus
from shared.events import AgentOutput, ModelCallEnded, ToolStarted
from shared.settings import load_settings
from shared.trace import TraceFile, attach_trace, format_line, redact
from shared.types import TokenUsage


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    TraceFile(path).write("one")
    assert mode(path) == 0o600
    assert path.read_text() == "one\n"


def test_a_file_that_was_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    path.write_text("before\n")
    path.chmod(0o644)
    TraceFile(path).write("after")
    assert mode(path) == 0o600
    assert path.read_text() == "before\nafter\n"


def refused(path: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Write twice; returns the warnings."""
    file = TraceFile(path)
    with caplog.at_level(logging.WARNING):
        file.write("secret one")
        file.write("secret two")
    return [record.getMessage() for record in caplog.records]


def test_links_are_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    target, link, hard = tmp_path / "target", tmp_path / "link.log", tmp_path / "hard.log"
    target.write_text("precious")
    link.symlink_to(target)
    assert len(refused(link, caplog)) == 1
    caplog.clear()
    os.link(target, hard)
    assert len(refused(hard, caplog)) == 1
    assert target.read_text() == "precious"


def test_a_pipe_in_its_place_does_not_block(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "trace.log"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: TraceFile(path).write("secret"), daemon=True)
    writer.start()
    writer.join(30)
    assert not writer.is_alive()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_not_written_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "trace.log"
    path.write_text("theirs")
    os.chown(path, 12345, -1)
    warnings = refused(path, caplog)
    assert len(warnings) == 1
    assert "belongs to somebody else; set JAATO_TRACE_LOG to another path" in warnings[0]
    assert path.read_text() == "theirs"


def test_an_unwritable_path_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    warnings = refused(tmp_path / "no" / "such" / "folder" / "trace.log", caplog)
    assert len(warnings) == 1
    assert "cannot be written" in warnings[0]
    caplog.clear()
    assert len(refused(tmp_path, caplog)) == 1, "a folder is no file"


def test_it_is_rotated_before_it_grows_too_large(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    file = TraceFile(path, max_bytes=100)
    for number in range(30):
        file.write(f"line {number:03d}")
    old = tmp_path / "trace.log.1"
    assert path.stat().st_size <= 100
    assert old.stat().st_size <= 100
    assert mode(path) == mode(old) == 0o600
    kept = (old.read_text() + path.read_text()).splitlines()
    assert kept[-1] == "line 029"
    assert kept == [f"line {number:03d}" for number in range(30 - len(kept), 30)]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["trace.log", "trace.log.1"]


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    file = TraceFile(path)
    run_threads(8, lambda index: times(50, lambda: file.write(f"{index}:" + "x" * 200)))
    lines = path.read_text().splitlines()
    assert len(lines) == 400
    assert all(len(line) == 202 for line in lines)


def test_one_event_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    TraceFile(path).write(format_line(ToolStarted("main", "cli", {"command": "a\nb"}, "c\r\n[forged] line \ud800")))
    lines = path.read_text().splitlines()
    assert len(lines) == 1
    assert "[ToolStarted@main]" in lines[0]


def test_lines_are_short_and_say_what_happened() -> None:
    line = format_line(
        ModelCallEnded("a", "anthropic", "claude", usage=TokenUsage.of(10, 5), duration_seconds=1.23456789)
    )
    assert "[ModelCallEnded@a] provider=anthropic model=claude purpose=turn usage=10+5 duration_seconds=1.23457" in line
    assert len(format_line(ToolStarted("a", "t", {"text": "x" * 10_000}))) < 1_000


SECRETS = [
    "sk-ant-api03-abcdefghij-1234567890AA",
    "sk-proj-abcdefghij1234567890",
    "sk_live_abcdefghij1234567890",
    "AIzaSyA-1234567890_abcdefghijklmnopqrs",
    "ya29.a0AfH6SMBabcdefghijkl",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijklmnop",
    "xoxb-123456789012-abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "glpat-abcdefghijklmnopqrst",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
]
WRAPPED = {
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC": "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
}
SURROUNDINGS = [
    "{}",
    "export X={} && run",
    "{{'header': '{}'}}",
    '{{"a": ["{}"]}}',
    "see {}, then go",
    "https://h/p?x={}&y=1",
]


@pytest.mark.parametrize("surrounding", SURROUNDINGS)
@pytest.mark.parametrize("secret", SECRETS)
def test_shapes_of_secrets_are_hidden_wherever_they_stand(secret: str, surrounding: str) -> None:
    text = surrounding.format(WRAPPED.get(secret, "{}").format(secret))
    assert secret not in redact(text)
    assert "[redacted]" in redact(text)


NAMED = [
    ("api_key={}", "abc"),
    ("API-KEY: {}", "s3cr3t"),
    ('{{"apiKey": "{}"}}', "a b c"),
    ("{{'password': '{}'}}", "with space"),
    ("password={}", "12345678"),
    ("PGPASSWORD={} psql", "pw"),
    ("MYSQL_PWD={}", "pw1"),
    ('{{"body": "{{\\"client_secret\\": \\"{}\\"}}"}}', "inner one"),
    ("Authorization: Bearer {}", "abcd.efgh"),
    ("authorization: Basic {}", "YTpi"),
    ("{{'Authorization': 'Token {}'}}", "abcdef"),
    ("Cookie: session={}; path=/", "deadbeef"),
    ("curl --token {} https://h", "abcdef"),
    ("mysql --password {}", "hunter2"),
    ("https://user:{}@host/path", "p4ss"),
    ("redis://:{}@host", "p4ss"),
    ("postgres://admin:{}@db:5432/x", "we!rd"),
    ("https://h/?access_token={}&x=1", "abc123"),
    ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG"),
    ("passphrase: '{}'", "correct horse battery"),
]


@pytest.mark.parametrize(("text", "secret"), NAMED)
def test_what_follows_a_telling_name_is_hidden(text: str, secret: str) -> None:
    assert secret in text.format(secret)
    assert secret not in redact(text.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "total_tokens=123 max_token: 500",
        "the key idea is to press a key",
        "task-management and risk-assessment",
        "write to user@example.com",
        "basic ideas about tokens",
        "token=None key: null",
        "see https://example.com/path:8080/x",
        "keyboard: qwerty",
    ],
)
def test_plain_text_stays_readable(text: str) -> None:
    assert redact(text) == text


def test_secrets_in_events_do_not_reach_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.log"
    monkeypatch.setenv("JAATO_TRACE_LOG", str(path))
    bus = EventBus()
    attach_trace(bus, load_settings().trace)
    bus.emit(ToolStarted("main", "cli", {"command": "curl -H 'X-Api-Key: abcdef0123456789'"}, "c1"))
    bus.emit(AgentOutput("main", text="what the model says is not traced"))
    assert bus.flush(60, everyone=True)
    text = path.read_text()
    assert "abcdef0123456789" not in text
    assert "not traced" not in text
    assert "[ToolStarted@main] tool_name=cli" in text


def test_an_empty_setting_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_TRACE_LOG", "")
    bus = EventBus()
    attach_trace(bus, load_settings().trace)
    assert not bus.wants(ToolStarted)
