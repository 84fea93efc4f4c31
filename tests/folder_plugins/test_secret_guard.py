"""The secret guard that comes with the package: credentials do not reach a model, and work goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plugin_folders import call
from support.tools import Lab, calls, results_of, steps

from shared import JaatoClient, PluginRegistry
from shared.bundled import bundled_folder
from shared.errors import PluginError
from shared.folder_plugins.discovery import open_plugin
from shared.hooks import HookBus
from shared.plugins.cli import create_plugin as create_cli
from shared.plugins.file_edit import create_plugin as create_file_edit
from shared.plugins.skills import SkillsPlugin
from shared.providers.script import ScriptProvider
from shared.types import ToolResult

NAME = "secret_guard"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginRegistry:
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEPLOY_TOKEN", "hunter2hunter2")
    registry = PluginRegistry()
    for plugin in (create_cli(), create_file_edit()):
        registry.register_plugin(plugin, expose=True)
    registry.register_plugin(open_plugin(bundled_folder("plugins") / NAME), expose=True)
    return registry


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    (place / ".env").write_text(f"API_KEY={TOKEN}\nexport EMPTY=\nNAME='x'\n")
    (place / "notes.txt").write_text(f"the token is {TOKEN}.\nagain: {TOKEN}\n")
    return place


def run(registry: PluginRegistry, project: Path, tool: str, **args: Any) -> ToolResult:
    return call(registry, tool, args, workspace=project, hooks=HookBus(registry))


def test_a_secret_in_a_result_is_hidden_and_keeps_its_number(registry: PluginRegistry, project: Path) -> None:
    text = run(registry, project, "read_file", path="notes.txt").text
    assert TOKEN not in text
    assert text.count("[hidden: GitHub token #1]") == 2
    other = run(registry, project, "cli", command=f"echo {TOKEN[::1]} sk-ant-api03-{'z9Y8' * 8}").text
    assert "[hidden: GitHub token #1]" in other
    assert "[hidden: API key #2]" in other


@pytest.mark.parametrize(
    "text",
    [
        "AKIA" + "ABCD1234EFGH5678",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEsecret\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEcutoff",
        "xoxb-123456789012-abcdefgh",
        "postgres://ada:s3cr3tpw@db.local/x",
        "Authorization: Bearer abcdef0123456789",
        'db_password: "correct horse battery"',
        "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCY",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3In0.c2lnbmF0dXJl",
        "hunter2hunter2",
    ],
)
def test_shapes_of_secrets(registry: PluginRegistry, project: Path, text: str) -> None:
    (project / "a.txt").write_text(f"before\n{text}\nafter\n")
    result = run(registry, project, "read_file", path="a.txt").text
    assert "[hidden: " in result
    for secret in (
        "ABCD1234",
        "MIIE",
        "123456789012",
        "s3cr3tpw",
        "abcdef0123",
        "battery",
        "wJalr",
        "eyJzdWI",
        "hunter2",
    ):
        assert secret not in result
    assert "before" in result


@pytest.mark.parametrize(
    "text",
    [
        "password = os.environ['DB_PASSWORD']",
        "API_KEY=<your key here>",
        "TOKEN=${TOKEN}",
        "SECRET=xxxxxxxxxxxx",
        "total_tokens: 1234567",
        "max_token = 1234567",
        "login(token=request.session.token2, password=password)",
        "api_key: Optional[str] = None",
        "see https://example.org:8080/path and user@example.org",
        "def token(self): return self._token",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    ],
)
def test_ordinary_text_stays_as_it_is(registry: PluginRegistry, project: Path, text: str) -> None:
    (project / "a.txt").write_text(text)
    assert "[hidden" not in run(registry, project, "read_file", path="a.txt").text


def test_values_behind_telling_keys_of_an_object(registry: PluginRegistry) -> None:
    bus = HookBus(registry)
    hook = next(handler for event, handler in registry.get_plugin(NAME).get_hooks() if event == "after_tool_call")  # type: ignore[union-attr]
    clean = json.loads(hook("t", {}, {"password": "tr0ub4dor&3", "list": [{"note": TOKEN}], "count": 3}))
    assert "tr0ub4dor" not in json.dumps(clean)
    assert clean["list"][0]["note"].startswith("[hidden: GitHub token")
    assert clean["count"] == 3
    assert hook("t", {}, {"user": "ada", "count": 3}) is None
    assert bus.has("before_tool_call")


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("read_file", {"path": ".env"}),
        ("read_file", {"path": "deploy/../.ENV"}),
        ("read_file", {"path": "keys/server.pem"}),
        ("cli", {"command": "cat .env"}),
        ("cli", {"command": "cat '.e''nv'"}),
        ("cli", {"command": "cat<.env"}),
        ("cli", {"command": "base64 ~/.ssh/id_ed25519"}),
        ("cli", {"command": "grep x ~/.aws/credentials"}),
        ("cli", {"command": "cat /proc/self/environ"}),
        ("cli", {"command": "env"}),
        ("cli", {"command": "true; printenv | sort"}),
    ],
)
def test_calls_that_open_credentials_are_refused(
    registry: PluginRegistry, project: Path, tool: str, args: dict[str, Any]
) -> None:
    result = run(registry, project, tool, **args)
    assert result.is_error
    assert result.error_kind == "denied"
    assert "handling-secrets" in result.text


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("cli", {"command": "env X=1 echo fine"}),
        ("cli", {"command": "echo fine > .env.example; cat .env.example"}),
        ("write_file", {"path": "README.md", "content": "Put your key in .env"}),
    ],
)
def test_ordinary_calls_go_ahead(registry: PluginRegistry, project: Path, tool: str, args: dict[str, Any]) -> None:
    assert not run(registry, project, tool, **args).is_error


def test_a_sentence_about_a_file_is_no_path(registry: PluginRegistry, project: Path) -> None:
    lab = Lab()
    registry.register_plugin(lab, expose=True)
    assert not run(registry, project, "later", text="explain how to load .env").is_error
    hook = next(handler for event, handler in registry.get_plugin(NAME).get_hooks() if event == "before_tool_call")  # type: ignore[union-attr]
    assert hook("spawn_subagent", {"task": "explain how to load .env"}) is None
    assert hook("fetch", {"uri": "file:///home/ada/.env"})["block"]
    assert hook("open", {"file_path": "my notes/prod .env"})["block"]


def test_a_mark_is_never_written_over_the_real_value(registry: PluginRegistry, project: Path) -> None:
    mark = "[hidden: GitHub token #1]"
    result = run(registry, project, "write_file", path="notes.txt", content=f"the token is {mark}")
    assert "in the place of the real value" in result.text
    assert TOKEN in (project / "notes.txt").read_text()


def test_names_without_values(registry: PluginRegistry, project: Path) -> None:
    result = run(registry, project, "secret_names", path=".env")
    assert result.result == {"file": ".env", "names": ["API_KEY", "EMPTY", "NAME"], "empty": ["EMPTY"]}
    assert run(registry, project, "secret_names", path="../outside").is_error
    assert "secret_names" in registry.get_auto_approved_tools()


def test_settings_block_allow_and_add_patterns(registry: PluginRegistry, project: Path) -> None:
    settings = {"block": ["vault/*"], "allow": [".env"], "patterns": {"badge": r"BADGE-\d+"}}
    registry.expose_tool(NAME, settings)
    assert run(registry, project, "read_file", path="vault/x").error_kind == "denied"
    text = run(registry, project, "read_file", path=".env").text
    assert "API_KEY=" in text
    assert TOKEN not in text
    assert "[hidden: badge" in run(registry, project, "cli", command="echo BADGE-4711").text
    with pytest.raises(PluginError, match="'broken' is not a regular expression"):
        registry.expose_tool(NAME, {"patterns": {"broken": "("}})
    with pytest.raises(PluginError, match="fits every text"):
        registry.expose_tool(NAME, {"patterns": {"all": "x*"}})


@pytest.fixture
def client(registry: PluginRegistry, project: Path) -> Iterator[JaatoClient]:
    registry.register_plugin(SkillsPlugin(), expose=True)
    with JaatoClient(provider_name="script", workspace=project) as client:
        yield client


def test_in_a_conversation_the_model_reads_marks_and_is_told_of_the_skill(
    client: JaatoClient, registry: PluginRegistry
) -> None:
    script = steps(
        calls(("read_file", {"path": "notes.txt"})),
        calls(("cli", {"command": "cat .env"})),
        calls(("skill", {"name": "handling-secrets"})),
        "done",
    )
    client.register_provider("script", ScriptProvider(script))
    client.connect()
    client.configure_tools(registry, permissions="allow")
    assert client.send_message("look") == "done"
    shown = str(script.seen[-1])  # type: ignore[attr-defined]
    assert TOKEN not in shown
    read, refused, skill = results_of(script.seen[-1])  # type: ignore[attr-defined]
    assert "[hidden: GitHub token #1]" in read
    assert "holds credentials" in refused
    assert "Never write such a mark" in skill
    assert "- handling-secrets: " in client.get_session().system_prompt
