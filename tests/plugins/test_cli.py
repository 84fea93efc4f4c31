from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.plugin_calls import Caller, in_thread

from shared.cancel import CancelToken
from shared.command_environment import command_environment
from shared.errors import ConfigError
from shared.plugins.cli import create_plugin
from shared.toolbox import Toolbox
from shared.types import FunctionCall


@pytest.fixture
def cli(tmp_path: Path) -> Caller:
    return configured(tmp_path)


def configured(folder: Path, **config: object) -> Caller:
    plugin = create_plugin()
    plugin.initialize(config or None)
    return Caller(plugin, folder)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_for_pid(file: Path) -> int:
    """The process number that a command under test writes once it is ready."""
    deadline = time.monotonic() + 30
    gate = threading.Event()
    while time.monotonic() < deadline:
        if file.exists() and (text := file.read_text().strip()):
            return int(text)
        gate.wait(0.01)
    raise AssertionError(f"{file} was never written")


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    gate = threading.Event()
    while is_running(pid) and time.monotonic() < deadline:
        gate.wait(0.01)
    return not is_running(pid)


def test_output_and_exit_code(cli: Caller) -> None:
    assert cli.ok("cli", command="echo out; echo err >&2; exit 3") == {"exit_code": 3, "output": "out\nerr\n"}
    assert "".join(cli.chunks) == "out\nerr\n"


def test_runs_in_the_workspace_or_a_folder_of_it(cli: Caller) -> None:
    (cli.workspace / "sub").mkdir()
    assert cli.ok("cli", command="pwd")["output"].strip() == str(cli.workspace)
    assert cli.ok("cli", command="pwd", cwd="sub")["output"].strip() == str(cli.workspace / "sub")
    assert "outside the workspace" in cli.error("cli", command="pwd", cwd="..")
    assert "'nowhere' does not exist" in cli.error("cli", command="pwd", cwd="nowhere")


def test_configured_workspace_wins(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert configured(tmp_path, workspace=other).ok("cli", command="pwd")["output"].strip() == str(other)


@pytest.mark.parametrize("command", ["", "   ", "echo a\0b"])
def test_refuses_unusable_commands(cli: Caller, command: str) -> None:
    assert "the command" in cli.error("cli", command=command)


def test_a_command_that_looks_like_an_option_is_a_command(cli: Caller) -> None:
    assert cli.ok("cli", command="-l")["exit_code"] == 127


def test_too_long_a_command_is_an_error_sentence(cli: Caller) -> None:
    assert "could not be started" in cli.error("cli", command="echo " + "x" * 3_000_000)


def test_standard_input_is_empty(cli: Caller) -> None:
    assert cli.ok("cli", command="cat; echo done")["output"] == "done\n"


def test_there_is_no_terminal_to_ask_on(cli: Caller) -> None:
    assert cli.ok("cli", command="read x </dev/tty")["exit_code"] != 0


def test_bytes_that_are_no_text_are_replaced(cli: Caller) -> None:
    assert cli.ok("cli", command=r"printf 'a\377b\0c\303'")["output"] == "a\ufffdb\ufffdc\ufffd"


def test_a_character_split_between_chunks_stays_whole(cli: Caller) -> None:
    assert cli.ok("cli", command=r"printf '\303'; sleep 0.05; printf '\251'")["output"] == "é"


def test_death_by_signal_is_named(cli: Caller) -> None:
    assert cli.ok("cli", command="kill -9 $$") == {"exit_code": 137, "output": "", "note": "ended by SIGKILL"}


def test_long_output_keeps_its_end(tmp_path: Path) -> None:
    text = configured(tmp_path, output_chars=1_000).ok("cli", command="seq 100000")["output"]
    assert text.startswith("1\n2\n")
    assert text.endswith("\n99999\n100000\n")
    assert "characters left out" in text
    assert len(text) < 1_100


def test_output_just_within_the_limit_is_whole(tmp_path: Path) -> None:
    cli = configured(tmp_path, output_chars=1_000)
    assert cli.ok("cli", command="printf '%01000d' 7")["output"] == "0" * 999 + "7"
    assert "[... 1 of 1,001 characters left out ...]" in cli.ok("cli", command="printf '%01001d' 7")["output"]


def test_huge_output_costs_little_memory(tmp_path: Path) -> None:
    script = (
        "import resource, sys, json; sys.path[:] = json.loads(sys.argv[1]);"
        "from pathlib import Path; from support.plugin_calls import Caller;"
        "from shared.plugins.cli import create_plugin;"
        "plugin = create_plugin(); plugin.initialize(); caller = Caller(plugin, Path('.'));"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "context = caller.context(output=lambda chunk: None); before = peak();"
        "done = plugin.cli(context, 'head -c 100000000 /dev/zero | tr \"\\\\0\" x');"
        "print(done['exit_code'], peak() - before)"
    )
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps([tests, str(Path(tests).parent), *sys.path])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    code, grown_kilobytes = map(int, done.stdout.split())
    assert code == 0
    assert grown_kilobytes < 30_000


def test_timeout_keeps_the_output_and_kills_the_group(tmp_path: Path) -> None:
    cli = configured(tmp_path, timeout_seconds=3, kill_grace_seconds=0.05)
    result = cli.run("cli", command="sleep 1000 & echo $! >pid; echo begun; wait")
    assert result.is_error
    assert result.result["timed_out"] is True
    assert result.result["output"] == "begun\n"
    assert gone(int((tmp_path / "pid").read_text()))


def test_timeout_of_one_call(cli: Caller) -> None:
    assert cli.run("cli", command="sleep 1000", timeout_seconds=0.1).result["timed_out"] is True
    assert "at most 3600" in cli.error("cli", command="true", timeout_seconds=1e9)
    assert "timeout_seconds" in cli.error("cli", command="true", timeout_seconds=0)


STUBBORN = (
    f'{sys.executable} -c "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); '
    "open('pid', 'w').write(str(os.getpid())); time.sleep(1000)\""
)


@pytest.mark.parametrize(
    "command",
    [
        "echo $$ >pid; exec sleep 1000",
        "(echo $BASHPID >pid; exec sleep 1000) & wait",
        f"{STUBBORN} & wait",
        f"trap '' TERM; {STUBBORN}; sleep 1000",
        "timeout 1000 bash -c 'echo $$ >pid; exec sleep 1000'; true",  # moves to a process group of its own
        f"setsid {STUBBORN} & wait",  # leaves the session
        f"(setsid setsid {STUBBORN} >/dev/null 2>&1 &) ; sleep 1000",  # and has no parent any more
        "echo $$ >pid; kill -STOP $$",
        f"exec >&- 2>&-; {STUBBORN}",  # no output left to watch
        "while :; do (sleep 1000 & echo $! >pid; wait) & sleep 0.01; wait -n; done",
    ],
)
def test_cancel_kills_everything_and_returns(cli: Caller, command: str) -> None:
    token = CancelToken()
    thread, values = in_thread(lambda: cli.run("cli", token, command=command))
    pid = wait_for_pid(cli.workspace / "pid")
    token.cancel()
    thread.join(30)
    assert values[0].is_error
    assert "Cancelled" in values[0].text
    assert gone(pid)


def test_cancelled_before_the_start_runs_nothing(cli: Caller) -> None:
    token = CancelToken()
    token.cancel()
    assert cli.run("cli", token, command="touch made").is_error
    assert not (cli.workspace / "made").exists()


def test_a_background_process_does_not_hold_the_call(cli: Caller) -> None:
    result = cli.ok("cli", command="sleep 1000 & echo $!")
    pid = int(result["output"])
    try:
        assert result["exit_code"] == 0
        assert "background process" in result["note"]
        assert is_running(pid)
    finally:
        os.kill(pid, 9)


def test_a_background_process_that_never_stops_writing_does_not_hold_the_call(cli: Caller) -> None:
    assert cli.ok("cli", command="yes & exit 4")["exit_code"] == 4


def test_late_output_of_a_substitution_is_seen(cli: Caller) -> None:
    assert cli.ok("cli", command="echo hello > >(sleep 0.02; cat)")["output"] == "hello\n"


def test_a_view_that_fails_does_not_leave_the_command_running(cli: Caller) -> None:
    def broken(chunk: str) -> None:
        raise OSError("the view is gone")

    call = FunctionCall("1", "cli", {"command": "echo $$ >pid; echo x; sleep 1000"})
    result = Toolbox(cli.plugin.tools()).run(call, cli.context(output=broken))
    assert "the view is gone" in result.text
    assert gone(int((cli.workspace / "pid").read_text()))


def test_many_calls_leave_no_descriptor_and_no_zombie(cli: Caller) -> None:
    cli.ok("cli", command="true")
    before = len(os.listdir("/proc/self/fd"))
    threads = [in_thread(lambda: [cli.ok("cli", command="echo x") for _ in range(5)]) for _ in range(8)]
    for thread, _ in threads:
        thread.join(60)
    assert all(values and len(values[0]) == 5 for _, values in threads)
    assert len(os.listdir("/proc/self/fd")) == before
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    zombies = [pid for pid in children.read_text().split() if not is_running(int(pid))] if children.exists() else []
    assert zombies == []


def test_credentials_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "first-credential")
    monkeypatch.setenv("GITHUB_TOKEN", "k2")
    monkeypatch.setenv("DATABASE_URL", "postgres://me:hunter2@db/x")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ada")
    cli = configured(tmp_path, env_allow=["GITHUB_TOKEN"], env={"EXTRA_SECRET": "given", "COLOUR": "blue"})
    shown = cli.ok("cli", command="env")["output"].splitlines()
    assert not any("first-credential" in line or "hunter2" in line for line in shown)
    assert {"GITHUB_TOKEN=k2", "EXTRA_SECRET=given", "COLOUR=blue", "GIT_AUTHOR_NAME=Ada"} <= set(shown)


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "apikey",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "PGPASSWORD",
        "MYSQL_PWD",
        "DB_PASS",
        "GITHUB_PAT",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "SSH_AUTH_SOCK",
        "DOCKER_AUTH_CONFIG",
        "SENTRY_DSN",
        "NPM_TOKEN",
        "KEY1",
        "my_secret",
        "SECRETS",
        "TOKENS",
        "SSH_PRIVATE_KEY",
        "SESSION_COOKIE",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert name not in command_environment({name: "x"})


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "PWD",
        "OLDPWD",
        "HOME",
        "KEYBOARD",
        "TOKENIZERS_PARALLELISM",
        "AUTHOR",
        "GIT_AUTHOR_EMAIL",
        "COMPASS",
        "KEYMAP",
        "LANG",
    ],
)
def test_names_of_no_secret(name: str) -> None:
    assert command_environment({name: "x"})[name] == "x"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"timeout": 5}, "Did you mean 'timeout_seconds'?"),
        ({"timeout_seconds": "5"}, "'timeout_seconds': expected number"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"timeout_seconds": True}, "timeout_seconds"),
        ({"output_chars": 1.5}, "'output_chars': expected integer"),
        ({"env": {"A": 1}}, "'env.A': expected string"),
        ({"env_allow": "HOME"}, "'env_allow': expected array"),
        ({"workspace": ""}, "workspace"),
    ],
)
def test_wrong_settings(config: dict[str, object], words: str) -> None:
    plugin = create_plugin()
    with pytest.raises(ConfigError) as caught:
        plugin.initialize(config)
    assert "plugin 'cli'" in str(caught.value)
    assert words in str(caught.value)
    assert plugin.config == dict(plugin.config_keys)


def test_the_prompt_shows_the_whole_command_with_nothing_hidden(cli: Caller) -> None:
    command = "ls\x1b[2K\r # \u202eharmless\nrm x"
    info = create_plugin().format_permission_request("cli", {"command": command, "cwd": "sub"}, "console")
    assert info is not None
    assert info.details == "ls\\x1b[2K\\r # \\u202eharmless\nrm x"
    assert info.summary.endswith("/sub")


def test_the_schema_is_stable(cli: Caller) -> None:
    [schema] = cli.plugin.get_tool_schemas()
    assert schema.name == "cli"
    assert list(schema.parameters["properties"]) == ["command", "timeout_seconds", "cwd"]
    assert schema.parameters["required"] == ["command"]
    assert cli.plugin.get_tool_schemas() == [schema]
    assert cli.plugin.get_auto_approved_tools() == []
    assert "exit code" in (cli.plugin.get_system_instructions() or "")
