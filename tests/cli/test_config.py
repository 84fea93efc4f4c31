"""`jaato config`: settings with their origin, where they are looked for, and what is wrong with them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.command import jaato as run_jaato
from support.settings_files import Desk
from support.settings_files import desk as made_desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return made_desk(tmp_path, monkeypatch)


def jaato(desk: Desk, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_jaato(*words, cwd=desk.workspace, JAATO_HOME=str(desk.home), **variables)


def test_show_tells_the_origin_of_each_value(desk: Desk) -> None:
    desk.user("provider: anthropic\n")
    desk.project("\nmax_children: 3\n")
    done = jaato(desk, "config", "show", MODEL_NAME="m")
    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    assert lines == [
        ["provider", f"anthropic  (user {desk.home}/config.yaml:1)"],
        ["model", "m  (environment MODEL_NAME)"],
        ["trace", "false  (environment JAATO_TRACE_LOG)"],
        ["max_children", f"3  (project {desk.project_file}:2)"],
    ]
    everything = jaato(desk, "config", "show", "--all").stdout
    assert "max_depth" in everything
    assert re.search(r"^model +not set$", everything, re.MULTILINE), "what nobody has set can be looked up too"


def test_show_as_json_has_every_setting(desk: Desk) -> None:
    desk.project("max_children: 3\nmax_depth: 9\n")
    report = json.loads(jaato(desk, "config", "show", "--json").stdout)
    rows = {row["name"]: row for row in report["settings"]}
    assert rows["max_children"]["value"] == 3
    assert rows["max_children"]["origin"] == {"kind": "project", "path": str(desk.project_file), "line": 1}
    assert rows["max_depth"]["value"] == 1
    assert rows["max_depth"]["origin"]["kind"] == "default"
    assert [problem["code"] for problem in report["problems"]] == ["untrusted-setting"]


def test_secrets_are_never_printed(desk: Desk) -> None:
    secrets = ["plainword77", "hunter2hunter2", "tok-in-headers", "sekret-env-value", "in-the-env-only", "pw-in-url"]
    desk.user(
        "providers:\n  anthropic: {api_key: plainword77, base_url: 'https://me:pw-in-url@host.example'}\n"
        "plugins:\n  mcp:\n    servers:\n      one:\n        url: https://x.example\n"
        "        headers: {X-Whatever: tok-in-headers}\n        env: {SOME: sekret-env-value}\n"
        "  web_search: {password: hunter2hunter2}\n"
    )
    for words in (("show",), ("show", "--all"), ("show", "--json"), ("check",)):
        done = jaato(desk, "config", *words, OPENAI_API_KEY="in-the-env-only")
        assert done.returncode == 0, done.stderr
        for secret in secrets:
            assert secret not in done.stdout + done.stderr
    assert "[hidden]  (environment OPENAI_API_KEY)" in jaato(desk, "config", "show", OPENAI_API_KEY="k" * 9).stdout


def test_path_lists_the_places(desk: Desk) -> None:
    desk.user("model: m\n")
    rows = json.loads(jaato(desk, "config", "path", "--json", JAATO_CONFIG="/elsewhere.yaml").stdout)
    assert [(row["kind"], row["exists"]) for row in rows] == [("user", True), ("project", False), ("overlay", False)]
    assert str(desk.project_file) in jaato(desk, "config", "path").stdout


def test_check_says_what_is_wrong_and_leaves_with_one(desk: Desk) -> None:
    assert jaato(desk, "config", "check").stdout == "0 files, nothing wrong\n"
    desk.project("model: m\nmodle: x\n")
    done = jaato(desk, "config", "check")
    assert done.returncode == 1
    assert f"{desk.project_file}:2: error: unknown-setting: unknown setting 'modle'. Did you mean " in done.stdout
    done = jaato(desk, "config", "show")
    assert done.returncode == 2
    assert done.stderr.startswith("jaato: ")
    assert "Traceback" not in done.stderr


def test_check_looks_whether_what_is_named_is_there(desk: Desk) -> None:
    desk.user("provider: antropic\nplugins: [tood]\nskill_dirs: [/nowhere/at/all]\n")
    done = jaato(desk, "config", "check")
    assert done.returncode == 0, "a host may bring providers and plugins of its own"
    for line, told in ((1, "Did you mean 'anthropic'"), (2, "Did you mean 'todo'"), (3, "no folder /nowhere/at/all")):
        [found] = [text for text in done.stdout.splitlines() if f"config.yaml:{line}: warning: unknown-name" in text]
        assert told in found
    desk.user("permissions: gone.json\n")
    done = jaato(desk, "config", "check")
    assert done.returncode == 1
    assert "everything is denied" in done.stdout
    doctor = jaato(desk, "doctor", "--offline")
    assert doctor.stdout.count("everything is denied") == 2, "the settings and the policy in force"


def test_run_goes_by_the_settings(desk: Desk) -> None:
    desk.user("provider: script\nplugins: [todo]\npermissions: deny\n")
    done = jaato(desk, "run", "--json", "hello")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["response"] == "You said: hello"
    desk.user("provider: script\nplugins: [tood]\n")
    assert "Did you mean 'todo'" in jaato(desk, "run", "hello").stderr


def test_profiles_are_looked_for_where_the_settings_say(desk: Desk) -> None:
    folder = desk.workspace / "agents-of-mine"
    folder.mkdir()
    (folder / "scribe.yaml").write_text("description: Writes\n")
    desk.user("profiles_dir: agents-of-mine\n")
    assert "scribe" in jaato(desk, "profiles").stdout
