"""`jaato doctor`: what works, what does not, and how to mend it."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

from support.anthropic_wire import error, render
from support.command import ROOT, jaato
from support.wire import Reply, Script, WireServer


def findings(folder: Path, *options: str, **variables: str) -> list[dict[str, Any]]:
    done = jaato("doctor", "--json", *options, cwd=folder, OLLAMA_HOST="127.0.0.1:9", **variables)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert done.returncode == (1 if any(each["state"] == "problem" for each in found) else 0)
    return found


def said(found: list[dict[str, Any]], area: str, state: str) -> str:
    chosen = [each for each in found if (each["area"], each["state"]) == (area, state)]
    return "\n".join(f"{each['text']} → {each['fix']}" for each in chosen)


def test_without_any_key_it_says_what_to_set(tmp_path: Path) -> None:
    found = findings(tmp_path)
    notes = said(found, "models", "note")
    for variable in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"):
        assert f"export {variable}" in notes
    assert "jaato demo" in said(found, "models", "problem")


def test_a_key_that_works(tmp_path: Path) -> None:
    with WireServer(Script(render, Reply("unused"))) as server:
        found = findings(tmp_path, ANTHROPIC_API_KEY="key", ANTHROPIC_BASE_URL=server.url, MODEL_NAME="m")
    assert "anthropic: the key works, 2 models" in said(found, "models", "ok")
    assert said(found, "models", "problem") == ""


def test_a_key_that_is_refused(tmp_path: Path) -> None:
    refusal = error("authentication_error", "invalid key", 401)
    with WireServer(lambda request: refusal) as server:
        found = findings(tmp_path, ANTHROPIC_API_KEY="sk-secret-secret", ANTHROPIC_BASE_URL=server.url)
    assert "anthropic: the key is refused → export ANTHROPIC_API_KEY" in said(found, "models", "problem")
    assert "sk-secret" not in json.dumps(found)


def test_offline_nobody_is_asked(tmp_path: Path) -> None:
    with WireServer(lambda request: error("api_error", "must not be asked", 500)) as server:
        found = findings(tmp_path, "--offline", ANTHROPIC_API_KEY="key", ANTHROPIC_BASE_URL=server.url)
        assert server.requests == []
    assert "a key is set (not tried)" in said(found, "models", "ok")


def test_broken_files_are_named_with_the_command_that_explains_them(tmp_path: Path) -> None:
    folder = tmp_path / ".jaato"
    (folder / "profiles").mkdir(parents=True)
    (folder / "profiles" / "bad.yaml").write_text("nmae: x\n")
    (folder / "config.yaml").write_text("modle: x\n")
    (folder / "permissions.json").write_text("{")
    found = findings(tmp_path)
    assert "Did you mean 'name'? → jaato profiles lint" in said(found, "profiles", "problem")
    assert "Did you mean 'model'? → jaato config check" in said(found, "settings", "problem")
    assert "everything is denied" in said(found, "permissions", "problem")
    assert "jaato trust" in said(found, "trust", "note")


def test_mcp_servers_are_tried(tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": [str(ROOT / "tests" / "support" / "mcp_server.py"), "stdio"]}
    (tmp_path / "mine").mkdir()
    servers = {"good": server, "bad": {"command": "no-such-program"}}
    (tmp_path / "mine" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    found = findings(tmp_path, JAATO_HOME=str(tmp_path / "mine"))
    assert "good: connected" in said(found, "mcp servers", "ok")
    assert "bad: failed" in said(found, "mcp servers", "problem")


def test_a_store_that_is_no_database(tmp_path: Path) -> None:
    store = tmp_path / ".jaato" / "state" / "runs.db"
    store.parent.mkdir(parents=True)
    store.write_bytes(b"not a database at all, and long enough to be read" * 100)
    assert str(store) in said(findings(tmp_path), "store", "problem")


def test_a_store_that_works(tmp_path: Path) -> None:
    done = jaato("demo", cwd=tmp_path, JAATO_STORE=str(tmp_path / "runs.db"))
    assert done.returncode == 0
    if (tmp_path / "runs.db").exists():
        sqlite3.connect(tmp_path / "runs.db").close()
        assert "agents" in said(findings(tmp_path, JAATO_STORE=str(tmp_path / "runs.db")), "store", "ok")
