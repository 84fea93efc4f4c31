"""`import shared` is quick and innocent: no SDK, no file, no output; all public names are there."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import shared

ROOT = Path(shared.__file__).parent
SDKS = ("anthropic", "google", "openai", "mcp", "httpx2", "httpx", "jsonschema_rs", "yaml", "rich", "click")

# Runs in a fresh interpreter: from the hook on, every opened file, socket and started process is on record.
WATCHED = """
import json, sys
opened, busy = [], []
def hook(event, args):
    if event == "open":
        opened.append(str(args[0]))
    elif event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "_thread.start_new_thread")):
        busy.append(event)
sys.addaudithook(hook)
import shared
{more}
print(json.dumps({{"opened": opened, "busy": busy, "modules": sorted(sys.modules)}}))
"""


def watched(more: str = "") -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.format(more=more)],
        cwd=ROOT.parent,
        env={**os.environ, "PYTHONWARNINGS": "error", "PYTHONPATH": str(ROOT.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 1, f"the import printed something: {lines[:-1]}"
    found: dict[str, list[str]] = json.loads(lines[0])
    return found


def strangers(opened: list[str]) -> list[str]:
    """Files that are no Python modules of ours, of the standard library or of site-packages."""
    return [path for path in opened if not path.endswith((".py", ".pyc", ".so")) and not Path(path).is_dir()]


def loaded(modules: list[str]) -> set[str]:
    return {name for name in SDKS if name in modules or any(each.startswith(f"{name}.") for each in modules)}


def test_import_shared_loads_no_sdk_opens_no_file_and_prints_nothing() -> None:
    found = watched()
    assert loaded(found["modules"]) == set()
    assert strangers(found["opened"]) == []
    assert found["busy"] == []


def test_even_all_public_names_need_no_sdk_and_open_no_file() -> None:
    found = watched("for name in shared.__all__: getattr(shared, name)")
    assert loaded(found["modules"]) <= {"jsonschema_rs"}
    assert strangers(found["opened"]) == []
    assert found["busy"] == []


@pytest.mark.parametrize(
    "line",
    [
        "from shared import JaatoClient, JaatoRuntime, JaatoSession, PluginRegistry, ProviderConfig, CancelToken",
        "from shared import TokenLedger, Message, Part, Role, FunctionCall, ToolSchema, ToolResult, TokenUsage",
        "from shared import FinishReason",
    ],
)
def test_the_names_that_hosts_import_are_there(line: str) -> None:
    exec(line, {})


def test_the_public_names_are_declared_once_for_people_and_once_for_type_checkers() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    guarded = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname: node.module
        for block in guarded
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(map(str, seen)) == list(shared.__all__)
    for name, module in seen.items():
        assert name is not None
        assert module is not None
        assert getattr(shared, name) is getattr(import_module(module), name)
    assert set(shared.__all__) <= set(dir(shared))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'shared' has no attribute 'JaatoClent'"):
        shared.JaatoClent
    with pytest.raises(ImportError):
        exec("from shared import Nothing", {})


def test_the_jaato_module_has_the_names_that_published_plugins_import() -> None:
    from shared import _jaato

    for name in _jaato.__all__:
        assert getattr(_jaato, name) is not None
    wanted = "JaatoClient PluginRegistry Role FinishReason Message Part ToolSchema FunctionCall ToolResult"
    more = "ProviderResponse TokenUsage Attachment UserCommand CommandParameter"
    assert set(f"{wanted} {more}".split()) <= set(_jaato.__all__)
    assert _jaato.ToolSchema is shared.ToolSchema
