"""A missing optional package disables its feature with one clear line; everything else works."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Runs in a fresh interpreter in which these packages cannot be imported.
BLOCKED = """
import sys
for name in {names!r}:
    sys.modules[name] = None
"""
OPTIONAL = ("mcp", "ddgs", "prompt_toolkit", "opentelemetry", "llama_cpp")


def run(code: str, *blocked: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED.format(names=blocked) + textwrap.dedent(code)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "JAATO_HOME": str(folder / "home"),
            "JAATO_TRACE_LOG": "",
            "JAATO_SEARCH_URL": "",
            "ANTHROPIC_API_KEY": "k",
            "OPENAI_API_KEY": "k",
            "GOOGLE_API_KEY": "k",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )


def failing(code: str, *blocked: str, folder: Path) -> str:
    """The one line of the error that this code ends with."""
    code = f"""
from shared.errors import JaatoError
try:
{textwrap.indent(textwrap.dedent(code), "    ")}
except JaatoError as error:
    print(type(error).__name__, error)
"""
    done = run(code, *blocked, folder=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_without_any_of_them_a_host_works(tmp_path: Path) -> None:
    code = """
    from shared import JaatoClient, PluginRegistry
    registry = PluginRegistry()
    registry.discover()
    print(sorted(registry.expose_all()), registry.problems)
    with JaatoClient("script") as client:
        client.connect()
        client.configure_tools(registry, permissions="allow")
        print(client.send_message("hello"))
    """
    done = run(code, *OPTIONAL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "You said: hello" in done.stdout
    assert "'subagent'" in done.stdout
    assert done.stdout.splitlines()[0].endswith(" {}"), "what is not installed is no problem until it is needed"


@pytest.mark.parametrize("command", ["plugins", "profiles", "config path", "skills list", "run --provider script hi"])
def test_without_any_of_them_the_commands_work(tmp_path: Path, command: str) -> None:
    code = f"from shared.cli.main import main\nmain({command.split()!r})"
    done = run(code, *OPTIONAL, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_mcp_servers_name_the_extra(tmp_path: Path) -> None:
    code = """
    from shared import PluginRegistry
    registry = PluginRegistry()
    registry.discover()
    registry.expose_tool("mcp", {"servers": {"files": {"command": "true"}}})
    """
    told = failing(code, "mcp", folder=tmp_path)
    assert told.startswith("MissingDependency")
    assert "files" in told
    assert "pip install 'jaato-subagent[mcp]'" in told


def test_web_search_names_the_extra_and_the_other_way(tmp_path: Path) -> None:
    code = """
    from shared.plugins.web_search import create_plugin
    from shared.testing import Reply, scripted_client
    script = [Reply(calls=(("web_search", {"query": "x"}),)), lambda: None]
    def play(request):
        results = request.messages[-1].results
        return results[0].text if results else script[0]
    with scripted_client(play, create_plugin()) as client:
        print(client.send_message("go"))
    """
    done = run(code, "ddgs", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    assert "JAATO_SEARCH_URL" in done.stdout
    assert "pip install 'jaato-subagent[web]'" in done.stdout


@pytest.mark.parametrize(
    ("provider", "package"),
    [("anthropic", "anthropic"), ("openai_compatible", "openai"), ("google_genai", "google.genai")],
)
def test_a_provider_without_its_sdk_says_so_and_the_others_work(tmp_path: Path, provider: str, package: str) -> None:
    code = f"""
    from shared import JaatoClient
    with JaatoClient("script") as client:
        client.connect()
        assert client.send_message("hello") == "You said: hello"
        client.get_session().set_model("m", "{provider}")
        client.send_message("hello")
    """
    told = failing(code, package, folder=tmp_path)
    assert told.startswith("MissingDependency")
    assert provider in told
    assert "pip install" in told


def test_tracing_names_the_extra(tmp_path: Path) -> None:
    code = """
    from shared import JaatoRuntime
    from shared.telemetry import attach_otel
    attach_otel(JaatoRuntime("script"))
    """
    told = failing(code, "opentelemetry", "opentelemetry.context", "opentelemetry.trace", folder=tmp_path)
    assert told.startswith("MissingDependency")
    assert "pip install 'jaato-subagent[otel]'" in told


def test_a_command_whose_package_is_missing_leaves_with_one_line(tmp_path: Path) -> None:
    done = run("from shared.cli.main import main\nmain(['mcp'])", "mcp", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "jaato: jaato mcp needs the extra 'mcp': pip install 'jaato-subagent[mcp]'\n"


def test_the_embedded_model_names_the_extra(tmp_path: Path) -> None:
    done = run(
        "from shared.cli.main import main\nmain('run --provider local --model x hi'.split())",
        "llama_cpp",
        folder=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("jaato: provider 'local' needs the package")
    assert done.stderr.endswith("pip install 'jaato-subagent[local]'\n")


def test_a_chat_without_its_terminal_package_leaves_with_one_line(tmp_path: Path) -> None:
    code = "from shared.cli.main import main\nmain('chat --provider script --model echo'.split())"
    master, slave = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", BLOCKED.format(names=("prompt_toolkit",)) + code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "JAATO_TRACE_LOG": "", "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 2
    assert done.stderr.startswith("jaato: this command needs the package 'prompt_toolkit': pip install ")
    assert len(done.stderr.splitlines()) == 1
