"""Tools that are programs: JSON in, answer out, stopped whole when time is up or the call is cancelled."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support.plugin_folders import Places, call, command

from shared.cancel import CancelToken
from shared.errors import ConfigError


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places.at(tmp_path, monkeypatch)


def run(places: Places, tool: dict[str, Any], args: dict[str, Any] | None = None, **options: Any) -> Any:
    places.write("p", {"name": "p", "tools": [tool]})
    return call(places.registry("p"), tool["name"], args, **options)


def test_arguments_come_on_stdin_and_the_answer_is_json(places: Places) -> None:
    result = run(places, command(), {"text": "ä", "n": [1, None]})
    assert not result.is_error
    assert result.result == {"got": {"text": "ä", "n": [1, None]}}


def test_an_answer_that_is_no_json_is_text_and_warnings_on_stderr_do_not_spoil_it(places: Places) -> None:
    result = run(places, command(code="import sys; print('warning!', file=sys.stderr); print('plain {text')"))
    assert result.result == "plain {text"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('the reason', file=sys.stderr); sys.exit(3)", "the reason"),
        ('print(\'{"success": false, "error": "no such thing"}\')', "no such thing"),
        ('import sys; print(\'{"why": "because"}\'); sys.exit(1)', "because"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
    ],
)
def test_failures_are_errors_with_their_reason(places: Places, code: str, said: str) -> None:
    result = run(places, command(code=code))
    assert result.is_error
    assert said in json.dumps(result.result)


def test_a_program_that_is_not_there_is_named(places: Places) -> None:
    result = run(places, {**command(), "command": "no-such-program-here"})
    assert result.is_error
    assert "'no-such-program-here' is not installed" in str(result.result)


def test_arguments_are_checked_before_anything_runs(places: Places) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    result = run(places, command(schema=schema, code="open('ran', 'w')"), {"n": "x"})
    assert result.is_error
    assert "Nothing was run" in str(result.result)
    assert not (places.home / "plugins" / "p" / "ran").exists()


def test_a_program_runs_in_its_plugin_and_knows_the_workspace_but_no_secrets(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "s3cret")
    code = "import os, json; print(json.dumps([os.getcwd(), os.environ['JAATO_WORKSPACE'], dict(os.environ)]))"
    cwd, workspace, env = run(places, command(code=code), workspace=places.project).result
    assert Path(cwd) == places.home / "plugins" / "p"
    assert Path(workspace) == places.project
    assert "s3cret" not in json.dumps(env)


def test_templates_in_arguments_are_filled_and_cannot_become_options(places: Places) -> None:
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    tool = command()
    tool["args"] = ["-c", code, "${args.path}", "--n=${args.n}", "${plugin_dir}", "${unknown}", "${args.missing}"]
    result = run(places, tool, {"path": "a; rm -rf $HOME", "n": 3})
    folder = str(places.home / "plugins" / "p")
    assert result.result == ["a; rm -rf $HOME", "--n=3", folder, "${unknown}", ""]
    refused = run(places, tool, {"path": "--delete-all", "n": 3})
    assert refused.is_error
    assert "begins with '-'" in str(refused.result)


def test_inserted_text_is_not_filled_again(places: Places) -> None:
    tool = command()
    tool["args"] = ["-c", "import sys; print(sys.argv[1])", "x${args.a}"]
    assert run(places, tool, {"a": "${plugin_dir}"}).result == "x${plugin_dir}"


def test_settings_come_from_the_host_then_the_environment_then_the_default(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "limit": {"type": "integer", "env": "P_LIMIT", "default": 3},
        "key": {"type": "string", "env": "P_KEY", "required": True},
        "other_env": {"type": "string"},
    }
    code = "import os; print(os.environ['JAATO_PLUGIN_CONFIG'])"
    places.write("p", {"name": "p", "config_schema": settings, "tools": [command(code=code)]})
    registry = places.registry()
    with pytest.raises(ConfigError, match=r"setting 'key' is required.*P_KEY"):
        registry.expose_tool("p")
    with pytest.raises(ConfigError, match=r"unknown setting 'kee'\. Did you mean 'key'"):
        registry.expose_tool("p", {"kee": "x"})
    with pytest.raises(ConfigError, match=r"setting 'limit'.*expected integer"):
        registry.expose_tool("p", {"key": "k", "limit": "many"})
    monkeypatch.setenv("P_KEY", "from outside")
    monkeypatch.setenv("MINE", "named")
    registry.expose_tool("p", {"other_env": "MINE"})
    assert call(registry, "echo").result == {
        "limit": 3,
        "key": "from outside",
        "other_env": "MINE",
        "other": "named",
    }
    monkeypatch.setenv("P_LIMIT", "lots")
    with pytest.raises(ConfigError, match="P_LIMIT must hold a JSON integer"):
        registry.expose_tool("p", {"key": "x"})


GROUP = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(os.environ["JAATO_WORKSPACE"] + "/pids.tmp", "w").write(f"{os.getpid()} {child.pid}")
os.rename(os.environ["JAATO_WORKSPACE"] + "/pids.tmp", os.environ["JAATO_WORKSPACE"] + "/pids")
time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_cancel_kills_the_whole_group(places: Places) -> None:
    places.write("p", {"name": "p", "tools": [command(code=GROUP)]})
    registry, token, results = places.registry("p"), CancelToken(), list[Any]()
    thread = threading.Thread(
        target=lambda: results.append(call(registry, "echo", cancel=token, workspace=places.project))
    )
    thread.start()
    beat = threading.Event()
    while not (places.project / "pids").exists():
        assert thread.is_alive()
        beat.wait(0.01)
    token.cancel("enough")
    thread.join(20)
    assert results[0].error_kind == "cancelled"
    pids = [int(each) for each in (places.project / "pids").read_text().split()]
    assert not [pid for pid in pids if is_alive(pid)]


def test_time_that_is_up_kills_the_whole_group(places: Places) -> None:
    for seconds in (2, 10, 40):  # it may be stopped before it has come so far as to start the other
        result = run(places, command(code=GROUP, timeout_seconds=seconds), workspace=places.project)
        assert result.is_error
        assert f"longer than {seconds} s" in str(result.result)
        if (places.project / "pids").exists():
            break
    pids = [int(each) for each in (places.project / "pids").read_text().split()]
    assert not [pid for pid in pids if is_alive(pid)]


def test_endless_output_is_stopped(places: Places) -> None:
    result = run(places, command(code="import sys\nwhile True: sys.stdout.write('x' * 65536)", timeout_seconds=50))
    assert result.is_error
    assert "printed more than" in str(result.result)


def test_a_program_cannot_be_one_outside_its_plugin_by_a_relative_path(places: Places) -> None:
    result = run(places, {**command(), "command": "../../../bin/sh"})
    assert result.is_error
    assert "outside of its plugin" in str(result.result)


def test_a_program_of_the_plugin_runs_by_its_path(places: Places) -> None:
    folder = places.write("p", {"name": "p", "tools": [{"name": "own", "command": "bin/own"}]})
    (folder / "bin").mkdir()
    (folder / "bin" / "own").write_text("#!/bin/sh\necho '[1, 2]'\n")
    os.chmod(folder / "bin" / "own", 0o755)
    assert call(places.registry("p"), "own").result == [1, 2]


@pytest.mark.parametrize("field", [{"required_agent": "helper"}, {"visible_to": ["helper", "other"]}])
def test_a_bound_tool_runs_for_its_agent_only(places: Places, field: dict[str, Any]) -> None:
    places.write("p", {"name": "p", "tools": [command(**field)]})
    registry = places.registry("p")
    denied = call(registry, "echo", profile="stranger")
    assert denied.error_kind == "denied"
    assert "'helper'" in str(denied.result)


def test_nobody_may_call_a_tool_that_is_visible_to_nobody(places: Places) -> None:
    assert run(places, command(visible_to=[])).error_kind == "denied"
