"""The plugin `mcp` against real servers in processes of their own, over stdio."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.mcp_hosts import LEGACY, alive, children, legacy_program, open_files, program
from support.stress import wait_for

from shared.cancel import CancelToken
from shared.errors import CancelledException, ToolError, ToolTimeout
from shared.plugins.mcp import McpPlugin, create_plugin
from shared.toolbox import Toolbox, ToolOutput
from shared.tools import ToolContext
from shared.types import FunctionCall

Begin = Callable[..., McpPlugin]
OURS = "jaato-", "ThreadPoolExecutor"  # threads that stay; those that watched a program end just after it


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Start plugins on given servers, and shut them down at the end."""
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / "no-home"))
    made: list[McpPlugin] = []

    def start(servers: dict[str, Any], **config: Any) -> McpPlugin:
        plugin = create_plugin()
        made.append(plugin)
        plugin.initialize({"workspace": str(tmp_path), "servers": servers, "wait_seconds": 60, **config})
        return plugin

    yield start
    for plugin in made:
        plugin.shutdown()


def call(plugin: McpPlugin, tool: str, *, cancel: CancelToken | None = None, output: Any = None, **args: Any) -> Any:
    """Call a tool as the toolbox does, with a context of our own."""
    found = next(each for each in plugin.tools() if each.name == tool)
    context = ToolContext("main", cancel or CancelToken(), output=output or (lambda text: None))
    answer = found.invoke(args, context)
    assert isinstance(answer, ToolOutput)
    return answer


def state(plugin: McpPlugin, name: str) -> Any:
    return next(status for status in plugin.status() if status.name == name)


def blocked_call(plugin: McpPlugin, pool: ThreadPoolExecutor, cancel: CancelToken | None = None) -> Any:
    """A call that is known to run inside the server."""
    started = threading.Event()
    future = pool.submit(call, plugin, "s__block", cancel=cancel, output=lambda text: started.set())
    assert started.wait(60)
    return future


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(50) as threads:
        yield threads


# -- tools and calls ---------------------------------------------------------------------------------


def test_tools_are_listed_with_the_servers_schema_and_can_be_called(begin: Begin) -> None:
    plugin = begin({"s": program()})
    tool = next(each for each in plugin.tools() if each.name == "s__add")
    assert tool.schema.description == "Add two numbers."
    assert tool.schema.parameters["required"] == ["a", "b"]
    assert call(plugin, "s__add", a=2, b=3) == ToolOutput("5")
    assert plugin.get_executors()["s__add"]({"a": 1, "b": 1}).result == "2"
    assert state(plugin, "s").state == "connected"
    assert state(plugin, "s").tool_count == len(plugin.tools())
    assert plugin.get_auto_approved_tools() == []


def test_a_toolbox_runs_them_and_checks_arguments_first(begin: Begin) -> None:
    toolbox = Toolbox(begin({"s": program()}).tools())
    context = ToolContext("main", CancelToken())
    assert toolbox.run(FunctionCall("1", "s__add", {"a": 2, "b": 3}), context).text == "5"
    refused = toolbox.run(FunctionCall("2", "s__add", {"a": "x"}), context)
    assert refused.is_error
    assert "Nothing was run" in refused.text
    failed = toolbox.run(FunctionCall("3", "s__refuse", {}), context)
    assert failed.is_error
    assert failed.text == "the disk is full"


def test_images_sound_and_links(begin: Begin) -> None:
    plugin = begin({"s": program()})
    image = call(plugin, "s__picture").attachments[0]
    assert image.mime_type == "image/png"
    assert image.data.startswith(b"\x89PNG")
    mixed = call(plugin, "s__mixed")
    assert [each.mime_type for each in mixed.attachments] == ["audio/wav"]
    assert mixed.result["structured_content"] == {"rows": 3}
    assert "file:///readme.md" in mixed.result["text"]
    assert "remember" in mixed.result["text"]


def test_the_program_gets_a_safe_environment_its_own_variables_and_the_workspace(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "hush")
    monkeypatch.setenv("GIVEN", "yes")
    plugin = begin({"s": program(env={"WANTED": "${GIVEN}-${MISSING:-default}"})})
    assert call(plugin, "s__environment", name="SECRET_OF_THE_HOST").result == "(unset)"
    assert call(plugin, "s__environment", name="WANTED").result == "yes-default"
    assert call(plugin, "s__folder").result == str(tmp_path)


def test_fifty_threads_at_once(begin: Begin, pool: ThreadPoolExecutor) -> None:
    plugin = begin({"s": program()})
    answers = list(pool.map(lambda n: call(plugin, "s__add", a=n, b=n).result, range(300)))
    assert answers == [str(2 * n) for n in range(300)]


def test_nothing_a_server_says_reaches_the_terminal() -> None:
    servers = {"s": program(), "old": legacy_program()}
    script = (
        "import json; from shared.plugins.mcp import create_plugin; p = create_plugin(); "
        f"p.initialize({{'workspace': '/', 'wait_seconds': 60, 'servers': json.loads({json.dumps(servers)!r})}}); "
        "e = p.get_executors(); e['s__complain'](text='shout'); e['old__noise'](); "
        "print([s.stderr for s in p.status()]); p.shutdown()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path.cwd(), timeout=100)
    assert done.stderr == ""
    assert done.stdout.strip() == "[('shout',), ()]"


def test_status_shows_the_last_words_of_a_program(begin: Begin, tmp_path: Path) -> None:
    script = "import sys; sys.stderr.write('no such \\x1b[31mdatabase\\n'); sys.exit(2)"
    plugin = begin({"s": {"command": sys.executable, "args": ["-c", script]}})
    assert plugin.tools() == []
    found = state(plugin, "s")
    assert found.state == "failed"
    assert "no such" in found.error
    assert found.stderr == ("no such \x1b[31mdatabase",)
    assert "\x1b" not in plugin.run_command()


# -- cancel and time limits --------------------------------------------------------------------------


def test_cancel_ends_the_call_tells_the_server_and_leaves_the_session(begin: Begin, pool: ThreadPoolExecutor) -> None:
    plugin = begin({"s": program()})
    before = call(plugin, "s__pid").result
    token = CancelToken()
    future = blocked_call(plugin, pool, token)
    token.cancel("enough")
    with pytest.raises(CancelledException, match="enough"):
        future.result(60)
    assert call(plugin, "s__wait_for_cancel").result == "cancelled"
    assert call(plugin, "s__pid").result == before


def test_a_cancelled_token_calls_nothing(begin: Begin) -> None:
    plugin = begin({"s": program()})
    token = CancelToken()
    token.cancel("before")
    with pytest.raises(CancelledException):
        call(plugin, "s__die", cancel=token)
    assert state(plugin, "s").state == "connected"


def test_time_limit(begin: Begin) -> None:
    plugin = begin({"s": program()}, call_timeout_seconds=1.5)
    told: list[str] = []
    while not told:  # on a busy machine the limit may be up before the server has begun, or has answered
        with pytest.raises(ToolTimeout, match=r"tool 'block' took longer than 1\.5 s"):
            call(plugin, "s__block")
        with suppress(ToolTimeout):
            told.append(call(plugin, "s__wait_for_cancel").result)
    assert told == ["cancelled"]


def test_a_time_limit_reads_the_same_whoever_notices_it_first(begin: Begin) -> None:
    plugin = begin({"s": program()}, call_timeout_seconds=1.5)
    told: list[str] = []

    def busy(text: str) -> None:
        while not told:  # the caller is kept from looking at the clock until the SDK has given up
            with suppress(ToolTimeout):
                told.append(call(plugin, "s__wait_for_cancel").result)

    while not told:
        with pytest.raises(ToolTimeout, match=r"tool 'block' took longer than 1\.5 s"):
            call(plugin, "s__block", output=busy)
    assert told == ["cancelled"]


def test_progress_is_shown_from_the_calling_thread(begin: Begin) -> None:
    plugin = begin({"s": program()})
    token = CancelToken()
    seen: list[tuple[str, str]] = []

    def output(text: str) -> None:
        seen.append((text, threading.current_thread().name))
        token.cancel("seen")

    with pytest.raises(CancelledException):
        call(plugin, "s__block", cancel=token, output=output)
    assert seen == [("1/2 started\n", threading.current_thread().name)]


# -- servers that are slow, missing, dead --------------------------------------------------------------


def test_without_servers_nothing_is_imported_started_or_waited_for() -> None:
    script = (
        "import sys, threading; from shared.plugins.mcp import create_plugin; p = create_plugin(); "
        "p.initialize({'workspace': '/', 'wait_seconds': 1000}); "
        "print(p.tools(), p.status(), 'mcp' in sys.modules, threading.active_count())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path.cwd(), timeout=100)
    assert done.stdout.strip() == "[] [] False 1", done.stderr


def test_without_the_package_only_configured_servers_matter() -> None:
    script = (
        "import sys; sys.modules['mcp'] = None; from shared.plugins.mcp import create_plugin; p = create_plugin(); "
        "p.initialize({'workspace': '/'}); p.initialize({'workspace': '/', 'servers': {'git': {'command': 'x'}}})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path.cwd(), timeout=100)
    last = done.stderr.strip().splitlines()[-1]
    assert "MissingDependency" in last
    assert "(git)" in last
    assert "pip install" in last


def test_a_slow_server_delays_neither_start_nor_the_others(begin: Begin, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    plugin = begin({"slow": program(f"--gate={gate}"), "s": program()}, wait_seconds=0)
    ready = threading.Semaphore(0)
    plugin.on_tools_changed.append(ready.release)
    if not plugin.tools():
        assert ready.acquire(timeout=60)
    assert call(plugin, "s__add", a=1, b=1).result == "2"
    assert state(plugin, "slow").state == "connecting"
    assert not any(tool.name.startswith("slow__") for tool in plugin.tools())
    while ready.acquire(blocking=False):
        pass
    gate.write_text("")
    assert ready.acquire(timeout=60)
    assert call(plugin, "slow__add", a=1, b=1).result == "2"


def test_a_server_that_never_answers_is_given_up(begin: Begin) -> None:
    mute = {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]}
    plugin = begin({"mute": mute}, connect_timeout_seconds=0.5)
    before = children()
    assert plugin.tools() == []
    assert "did not answer within 0.5 s" in state(plugin, "mute").error
    plugin.shutdown()
    assert not {pid for pid in children() - before if alive(pid)}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "no-such-command-anywhere"}, "command 'no-such-command-anywhere' was not found"),
        ({"command": "/"}, "cannot start '/'"),
        ({"command": sys.executable, "cwd": "no/such/folder"}, "does not exist: correct 'cwd'"),
        ({"command": "true"}, "the program 'true' ended or closed its output"),
        ({"command": "a\0b"}, "null byte"),
        ({"url": "http://127.0.0.1:9/mcp"}, "cannot reach http://127.0.0.1:9"),
        ({"url": "http://127.0.0.1:9/sse", "type": "sse"}, "cannot reach http://127.0.0.1:9"),
    ],
)
def test_a_server_that_cannot_start_is_reported_and_the_others_work(
    begin: Begin, entry: dict[str, Any], expected: str
) -> None:
    plugin = begin({"bad": entry, "s": program()})
    assert call(plugin, "s__add", a=1, b=1).result == "2"
    assert state(plugin, "bad").state == "failed"
    assert expected in state(plugin, "bad").error
    assert "\n" not in state(plugin, "bad").error


def test_kill_fails_the_call_in_flight_and_the_next_one_reconnects(begin: Begin, pool: ThreadPoolExecutor) -> None:
    plugin = begin({"s": program()})
    first = int(call(plugin, "s__pid").result)
    future = blocked_call(plugin, pool)
    os.kill(first, signal.SIGKILL)
    with pytest.raises(ToolError, match="the connection broke during the call"):
        future.result(60)
    assert state(plugin, "s").state == "failed"
    second = int(call(plugin, "s__pid").result)
    assert second != first
    assert state(plugin, "s").state == "connected"
    assert not alive(first)


def test_many_callers_of_a_dead_server_share_one_new_process(begin: Begin, pool: ThreadPoolExecutor) -> None:
    plugin = begin({"s": program()})
    with pytest.raises(ToolError):
        call(plugin, "s__die")
    pids = set(pool.map(lambda _: call(plugin, "s__pid").result, range(50)))
    assert len(pids) == 1


def test_a_crashing_server_is_not_respawned_in_a_tight_loop(begin: Begin, tmp_path: Path) -> None:
    log, mended = tmp_path / "starts", tmp_path / "mended"
    before = children()
    flaky = tmp_path / "flaky.py"
    flaky.write_text(
        f"import os, sys\nlog = {str(log)!r}\nopen(log, 'a').write('x')\n"
        f"if len(open(log).read()) > 1 and not os.path.exists({str(mended)!r}): sys.exit('broken')\n"
        f"os.execv(sys.executable, {[sys.executable, *program()['args']]!r})\n"
    )
    plugin = begin({"s": {"command": sys.executable, "args": [str(flaky)]}}, call_timeout_seconds=0.3)
    assert plugin.tools()
    (pid,) = children() - before
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: bool(state(plugin, "s").state == "failed"))
    for _ in range(20):
        with pytest.raises(ToolError):
            call(plugin, "s__add", a=1, b=1)
    assert len(log.read_text()) < 10  # most calls found the pause before the next start, not a start of their own
    wait_for(lambda: "broken" in state(plugin, "s").error)
    mended.touch()
    assert plugin.reconnect("s").state == "connected"  # mended, and asked for by a person: at once


def test_changed_tools_are_announced(begin: Begin) -> None:
    plugin = begin({"s": program(), "old": legacy_program()})
    before = {tool.name for tool in plugin.tools()}
    changed = threading.Semaphore(0)
    plugin.on_tools_changed.append(lambda: 1 / 0)  # a broken subscriber does not matter to the others
    plugin.on_tools_changed.append(changed.release)
    call(plugin, "s__grow")
    assert changed.acquire(timeout=60)
    call(plugin, "old__change")
    assert changed.acquire(timeout=60)
    assert {tool.name for tool in plugin.tools()} - before == {"s__extra", "old__fresh"}
    assert call(plugin, "s__extra").result == "late"


def test_an_answer_that_breaks_the_protocol_is_one_line(begin: Begin, tmp_path: Path) -> None:
    server = tmp_path / "bad.py"
    server.write_text(Path(LEGACY).read_text().replace('"inputSchema": {"type": "object"}', '"inputSchema": 7'))
    plugin = begin({"old": {"command": sys.executable, "args": [str(server)]}})
    assert plugin.tools() == []
    assert "breaks the protocol: ListToolsResult tools" in state(plugin, "old").error
    assert "\n" not in state(plugin, "old").error


def test_a_server_of_the_older_protocol(begin: Begin) -> None:
    plugin = begin({"old": legacy_program()})
    names = [tool.name for tool in plugin.tools()]
    assert names[:3] == ["old__echo", "old__change", "old__noise"]
    assert "old__pair" in names  # a schema of an older draft
    assert len([name for name in names if name.startswith("old__get_thing_")]) == 2  # two names that clash
    assert call(plugin, "old__echo", text="hello").result == "hello"
    reasons = state(plugin, "old").left_out
    assert [reason.split(":")[0] for reason in reasons] == ["odd", "distant"]


# -- command and end -----------------------------------------------------------------------------------


def test_the_command(begin: Begin) -> None:
    plugin = begin({"s": program(), "bad": {"command": "no-such-command"}, "off": {"command": "x", "disabled": True}})
    plugin.tools()
    command = plugin.get_executors()["mcp"]
    shown = command({})
    assert "s: connected, " in shown
    assert "bad: failed" in shown
    assert "off: disabled" in shown
    assert "s__add: Add two numbers." in command({"action": "list"})
    before = call(plugin, "s__pid").result
    assert command({"args": ["reconnect", "s"]}).startswith("s: connected")
    assert call(plugin, "s__pid").result != before
    assert "bad: failed" in command({"action": "reconnect", "server": "bad"})
    assert "unknown mcp server 'x'" in command({"action": "reconnect", "server": "x"})
    assert "name a server" in command({"action": "reconnect"})
    assert "Did you mean 'status'?" in command({"action": "statu"})
    assert [each.value for each in plugin.get_command_completions("mcp", ["re"])] == ["reconnect"]
    assert [each.value for each in plugin.get_command_completions("mcp", ["reconnect", ""])] == ["s", "bad"]


def test_shutdown_leaves_nothing_behind_and_the_plugin_starts_again(begin: Begin, pool: ThreadPoolExecutor) -> None:
    stubborn = {
        "command": sys.executable,
        "args": ["-c", "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile 1: time.sleep(60)"],
    }
    plugin = begin({"s": program()})
    plugin.tools()
    plugin.shutdown()  # the event loop and its thread stay: they belong to the process
    before, files, threads = children(), open_files(), set(threading.enumerate())
    for third in (stubborn, program()):
        plugin.initialize({"workspace": "/", "servers": {"s": program(), "t": program(), "u": third}})
        wait_for(lambda: plugin.status()[0].state == "connected" and len(children() - before) == 3)
        assert int(call(plugin, "s__pid").result) in children() - before
        future = blocked_call(plugin, pool)
        plugin.shutdown()
        plugin.shutdown()
        with pytest.raises(ToolError):
            future.result(60)
        assert children() - before == set()
        assert plugin.tools() == []
    assert open_files() == files
    wait_for(lambda: all(each.name.startswith(OURS) for each in set(threading.enumerate()) - threads))


def test_shutdown_while_programs_are_being_started_leaves_none(begin: Begin) -> None:
    begin({"s": program()}).tools()  # the SDK is loaded: from here on, programs are started within milliseconds
    before = children()
    for _ in range(20):
        begin({"s": program(), "t": program()}).shutdown()
        assert children() == before


def test_the_runtimes_workspace_decides_which_file_is_read(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": program()}}))
    plugin = begin({}, workspace=None)
    assert plugin.status() == []
    runtime: Any = SimpleNamespace(workspace=tmp_path, vouched=True)
    plugin.attach(runtime)
    assert call(plugin, "s__folder").result == str(tmp_path)
    before = call(plugin, "s__pid").result
    plugin.attach(runtime)  # the same again: nothing is restarted
    assert call(plugin, "s__pid").result == before


def test_a_call_after_shutdown_says_so(begin: Begin) -> None:
    plugin = begin({"s": program()})
    execute = plugin.get_executors()["s__add"]
    plugin.shutdown()
    with pytest.raises(ToolError, match="has been shut down"):
        execute({"a": 1, "b": 2})


def test_a_host_that_forgets_to_shut_down_leaves_no_program(tmp_path: Path) -> None:
    stubborn = "import signal, sys, time\nopen(sys.argv[1], 'w').write(str(__import__('os').getpid()))\n"
    stubborn += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile 1: time.sleep(60)"
    note = tmp_path / "pid"
    os.mkfifo(note)
    servers = {"t": {"command": sys.executable, "args": ["-c", stubborn, str(note)]}}
    script = (
        "import sys, json; from shared.plugins.mcp import create_plugin; p = create_plugin(); "
        f"p.initialize({{'workspace': '/', 'servers': json.loads({json.dumps(servers)!r})}}); "
        f"print(open({str(note)!r}).read())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path.cwd(), timeout=100)
    assert done.stderr == ""
    assert not alive(int(done.stdout))
