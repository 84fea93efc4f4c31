"""Which servers are configured, and what a broken file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ConfigError
from shared.plugins.mcp import McpPlugin, create_plugin
from shared.plugins.mcp.config import Disabled, read_servers
from shared.plugins.mcp.config_trust import project_trust
from shared.plugins.mcp.spec import ServerSpec
from shared.runtime import JaatoRuntime
from shared.trust import TrustStore, survey


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def plugin() -> Any:
    made = create_plugin()
    yield made
    made.shutdown()


def begin(plugin: McpPlugin, workspace: Path, text: str | None = None, **config: Any) -> dict[str, Any]:
    if text is not None:
        (workspace / ".mcp.json").write_text(text)
    plugin.initialize({"workspace": str(workspace), "trust_project": True, **config})
    return {status.name: status for status in plugin.status()}


BROKEN_FILES = [
    ('{"mcpServers": {\n  "a": {"command": "x",}\n}}', ":2: not valid JSON"),
    ("", ":1: not valid JSON"),
    ("[]", ":1: expected an object"),
    ('{\n"servers": {}}', ":2: unknown key 'servers'. Did you mean 'mcpServers'?"),
    ('{\n\n"mcpServers": []}', ":3: mcpServers: expected an object of server name to settings, got list"),
    ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "the name 'a' stands twice"),
    ("[" * 100_000, "nested too deeply"),
]


@pytest.mark.parametrize(("text", "expected"), BROKEN_FILES)
def test_a_broken_file_is_one_sentence_with_file_and_line(
    plugin: McpPlugin, workspace: Path, text: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        begin(plugin, workspace, text)
    assert expected in str(caught.value)
    assert str(workspace / ".mcp.json") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_utf8_or_no_file_at_all(plugin: McpPlugin, workspace: Path) -> None:
    (workspace / ".mcp.json").write_bytes(b'{"mcpServers": {"\xff": {}}}')
    with pytest.raises(ConfigError, match="not UTF-8"):
        begin(plugin, workspace)
    (workspace / ".mcp.json").unlink()
    (workspace / ".mcp.json").mkdir()
    with pytest.raises(ConfigError, match="expected a JSON file"):
        begin(plugin, workspace)


def test_a_byte_order_mark_is_no_error(plugin: McpPlugin, workspace: Path) -> None:
    (workspace / ".mcp.json").write_bytes(b'\xef\xbb\xbf{"mcpServers": {"a": {"command": "x", "disabled": true}}}')
    assert begin(plugin, workspace)["a"].state == "disabled"


BAD_ENTRIES: list[tuple[Any, str]] = [
    ("text", "mcpServers.bad: expected an object with 'command' or 'url', got a text"),
    ({}, "mcpServers.bad: expected either 'command' (a program) or 'url'"),
    ({"command": "x", "url": "http://a"}, "give one of them"),
    ({"comand": "x"}, "mcpServers.bad.comand: unknown key 'comand'. Did you mean 'command'?"),
    ({"command": ["x"]}, "mcpServers.bad.command: expected a text, got a list"),
    ({"command": " "}, "mcpServers.bad.command: expected a text"),
    ({"command": "x", "args": "-y"}, "mcpServers.bad.args: expected a list of texts"),
    ({"command": "x", "args": [1]}, "mcpServers.bad.args: expected a list of texts"),
    ({"command": "x", "env": {"PORT": 1}}, "mcpServers.bad.env.PORT: expected a text, got the number 1"),
    ({"command": "x", "env": []}, "mcpServers.bad.env: expected an object of texts, got a list"),
    ({"command": "x", "headers": {}}, "mcpServers.bad.headers: does not belong to a server of type stdio"),
    ({"url": "http://a", "args": []}, "mcpServers.bad.args: does not belong to a server of type http"),
    ({"url": "ftp://a"}, "mcpServers.bad.url: expected an address such as https://host"),
    ({"url": "http://a:99999/mcp"}, "mcpServers.bad.url: expected an address such as https://host"),
    ({"url": "http://a", "headers": {"X": "1\r\nY: 2"}}, "mcpServers.bad.headers.X: expected printable ASCII"),
    ({"url": "http:///mcp"}, "mcpServers.bad.url: expected an address such as https://host"),
    ({"url": "http://a", "type": "carrier-pigeon"}, "mcpServers.bad.type: expected one of stdio, http"),
    ({"url": "http://a", "type": ["http"]}, "mcpServers.bad.type: expected one of stdio, http"),
    ({"command": "x", "type": "http"}, "mcpServers.bad.command: does not belong to a server of type http"),
    ({"command": "x", "disabled": "yes"}, "mcpServers.bad.disabled: expected true or false, got a text"),
    ({"command": "x", "env": {"K": "${NO_SUCH_VARIABLE}"}}, "environment variable 'NO_SUCH_VARIABLE' is not set"),
]


@pytest.mark.parametrize(("entry", "expected"), BAD_ENTRIES)
def test_a_bad_entry_is_reported_and_the_others_are_read(
    plugin: McpPlugin, workspace: Path, entry: Any, expected: str
) -> None:
    good = {"command": "x", "disabled": True}
    text = json.dumps({"mcpServers": {"first": good, "bad": entry, "last": good}}, indent=1)
    found = begin(plugin, workspace, text)
    assert list(found) == ["first", "bad", "last"]
    assert found["bad"].state == "failed"
    assert expected in found["bad"].error
    assert f"{workspace / '.mcp.json'}:" in found["bad"].error
    assert {found["first"].state, found["last"].state} == {"disabled"}


def test_the_line_is_that_of_the_field(plugin: McpPlugin, workspace: Path) -> None:
    text = '{"mcpServers": {\n "a": {"command": "x", "args": ["args"], "disabled": true},\n "b": {\n'
    text += '  "command": "x",\n  "env": {"k}": "{",\n   "args": "${NOT_SET_EITHER}"}}\n}}'
    assert f"{workspace / '.mcp.json'}:6: mcpServers.b.env.args: " in begin(plugin, workspace, text)["b"].error


def test_inline_beats_project_beats_user(plugin: McpPlugin, workspace: Path) -> None:
    def servers(*names: str) -> dict[str, Any]:
        return {name: {"command": "x", "disabled": True} for name in names}

    (workspace.parent / "home" / "mcp.json").write_text(json.dumps({"mcpServers": servers("a", "b", "c")}))
    found = begin(plugin, workspace, json.dumps({"mcpServers": servers("a", "b")}), servers=servers("a"))
    sources = {name: Path(status.source).name for name, status in found.items()}
    assert sources == {"a": "settings", "b": ".mcp.json", "c": "mcp.json"}


def test_config_path_replaces_both_files(plugin: McpPlugin, workspace: Path) -> None:
    (workspace / "other.json").write_text('{"mcpServers": {"o": {"command": "x", "disabled": true}}}')
    found = begin(plugin, workspace, "not even JSON", config_path="other.json")
    assert list(found) == ["o"]
    with pytest.raises(ConfigError, match="does not exist"):
        begin(plugin, workspace, config_path="missing.json")
    assert [status.name for status in plugin.status()] == ["o"]  # a refused change leaves all as it was
    assert plugin.config["config_path"] == "other.json"


def test_servers_of_an_untrusted_project_are_not_started(plugin: McpPlugin, workspace: Path) -> None:
    text = json.dumps({"mcpServers": {"evil": {"command": "touch", "args": [str(workspace / "owned")]}}})
    found = begin(plugin, workspace, text, trust_project=False)
    assert found["evil"].state == "disabled"
    assert "trust_project" in found["evil"].error
    assert plugin.tools() == []
    assert not (workspace / "owned").exists()


def servers(workspace: Path, *names: str) -> str:
    made = {name: {"command": "touch", "args": [str(workspace / name)]} for name in names}
    return json.dumps({"mcpServers": made})


def test_by_default_the_workspace_must_be_trusted(
    plugin: McpPlugin, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = begin(plugin, workspace, servers(workspace, "a"), trust_project=None)
    assert found["a"].state == "disabled"
    assert "`jaato trust`" in found["a"].error
    assert "mcp server 'a' is not started" in caplog.text
    TrustStore().trust(survey(workspace))
    assert begin(plugin, workspace, trust_project=None)["a"].state != "disabled"


def test_a_changed_file_is_trusted_no_more(plugin: McpPlugin, workspace: Path) -> None:
    (workspace / ".mcp.json").write_text(servers(workspace, "a"))
    TrustStore().trust(survey(workspace))
    found = begin(plugin, workspace, servers(workspace, "a", "b"), trust_project=None)
    assert {each.state for each in found.values()} == {"disabled"}
    assert ".mcp.json has changed" in found["b"].error


def test_a_file_that_is_swapped_after_the_check_is_noticed(workspace: Path) -> None:
    (workspace / ".mcp.json").write_text(servers(workspace, "a"))
    TrustStore().trust(survey(workspace))
    trust = project_trust(workspace, ".mcp.json", setting=None, vouched=None)
    assert isinstance(read_servers(workspace=workspace, trust=trust)["a"], ServerSpec)
    (workspace / ".mcp.json").write_text(servers(workspace, "a", "evil"))
    assert {type(each) for each in read_servers(workspace=workspace, trust=trust).values()} == {Disabled}


def test_a_link_in_its_place_is_not_trusted(plugin: McpPlugin, workspace: Path) -> None:
    (workspace / "elsewhere.json").write_text(servers(workspace, "a"))
    TrustStore().trust(survey(workspace))
    (workspace / ".mcp.json").symlink_to(workspace / "elsewhere.json")
    assert begin(plugin, workspace, trust_project=None)["a"].state == "disabled"


@pytest.mark.parametrize("vouched", [True, False])
def test_host_code_says_whether_the_workspace_is_trusted(plugin: McpPlugin, workspace: Path, vouched: bool) -> None:
    (workspace / ".mcp.json").write_text(servers(workspace, "a"))
    TrustStore().trust(survey(workspace))
    runtime = JaatoRuntime("script", workspace=workspace, trust_workspace=vouched)
    plugin.attach(runtime)
    plugin.initialize()
    assert [status.state == "disabled" for status in plugin.status()] == [not vouched]
    plugin.initialize({"trust_project": not vouched})
    assert [status.state == "disabled" for status in plugin.status()] == [vouched]


def test_an_untrusted_project_hides_no_server_of_the_user(plugin: McpPlugin, workspace: Path) -> None:
    (workspace.parent / "home" / "mcp.json").write_text(servers(workspace, "a"))
    found = begin(plugin, workspace, servers(workspace, "a", "b"), trust_project=None)
    assert Path(found["a"].source).name == "mcp.json"
    assert found["a"].state != "disabled"
    assert found["b"].state == "disabled"


def test_disabled_by_setting_and_a_typo_there_is_reported(plugin: McpPlugin, workspace: Path) -> None:
    found = begin(plugin, workspace, '{"mcpServers": {"git": {"command": "x"}}}', disabled=["git", "gti"])
    assert found["git"].state == "disabled"
    assert "Did you mean 'git'?" in found["gti"].error


BAD_SETTINGS: list[tuple[str, Any]] = [
    ("wait_seconds", "2"),
    ("wait_seconds", -1),
    ("call_timeout_seconds", 0),
    ("servers", []),
    ("disabled", "git"),
    ("trust_project", "yes"),
    ("config_path", 3),
    ("conect_timeout_seconds", 3),
]


@pytest.mark.parametrize(("key", "value"), BAD_SETTINGS)
def test_a_wrong_setting_is_named(plugin: McpPlugin, workspace: Path, key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key):
        begin(plugin, workspace, **{key: value})
