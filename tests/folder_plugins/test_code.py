"""Plugins with Python: register(api), isolated from each other, gone when they are taken out of use."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest
from support.plugin_folders import Places, call, command

from shared.errors import PluginError
from shared.folder_plugins import code as plugin_code
from shared.folder_plugins.discovery import open_plugin
from shared.hooks import HookBus

GOOD = """
from conduit.plugin_sdk import PluginAPI
from .inner import shout

async def greet(name):
    return shout(f"hello {name}")

def register(api: PluginAPI):
    api.register_tool(
        name="greet", description="Greet.", handler=greet, permission="none",
        parameters={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    )
    api.register_tool("double", "Double a number.", handler=double)
    api.register_hook("message_received", lambda content: content + api.config["suffix"])
    api.register_skill("polite", "How to be polite.", "Say please.")
    api.log("warning", f"{api.id} is ready")

def double(n: int) -> int:
    return 2 * n
"""
INNER = "def shout(text): return text.upper()\n"
MANIFEST = {"id": "good", "config_schema": {"suffix": {"type": "string", "default": "!"}}}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places.at(tmp_path, monkeypatch)


def test_register_brings_tools_hooks_skills_settings_and_a_log(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    places.write("good", MANIFEST, init_py=GOOD, inner_py=INNER)
    with caplog.at_level(logging.WARNING):
        registry = places.registry("good")
    assert "good is ready" in caplog.text
    assert call(registry, "greet", {"name": "Ada"}).result == "HELLO ADA"
    assert call(registry, "double", {"n": 4}).result == 8
    assert call(registry, "double", {"n": "x"}).is_error
    assert registry.get_auto_approved_tools() == ["greet"]
    assert HookBus(registry).message_received("hi") == "hi!"
    plugin = registry.get_plugin("good")
    assert [skill.content for skill in plugin.get_skills()] == ["Say please."]  # type: ignore[union-attr]


def test_nothing_runs_before_the_plugin_is_exposed(places: Places) -> None:
    places.write("p", {"id": "p"}, init_py="open('ran', 'w')\ndef register(api): pass")
    registry = places.registry()
    assert "p" in registry.list_available()
    assert not (places.project / "ran").exists()
    registry.expose_tool("p")
    assert (places.project / "ran").exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise RuntimeError('broken')", "broken"),
        ("import no_such_module_at_all", "no_such_module_at_all"),
        ("def register(api", "SyntaxError"),
        ("x = 1", "has no function register"),
        ("import sys\ndef register(api): sys.exit(3)", "SystemExit"),
        ("def register(api): api.register_hook('on_strtup', print)", "Did you mean 'on_startup'"),
        ("def register(api): api.register_tool('t', 'T.')", "needs handler="),
        ("def register(api): api.register_tool('t', 'T.', {'type': 'nope'}, print)", "not a valid JSON Schema"),
        ("def register(api):\n  for _ in 'ab': api.register_tool('t', 'T.', {}, print)", "twice"),
    ],
)
def test_one_that_fails_is_named_and_the_others_load(places: Places, code: str, said: str) -> None:
    places.write("bad", {"id": "bad"}, init_py=code)
    places.write("good", {"name": "good", "tools": [command()]})
    registry = places.registry()
    with pytest.raises(Exception, match="bad") as raised:
        registry.expose_tool("bad")
    assert said in str(raised.value)
    exposed = registry.expose_all()
    assert "good" in exposed
    assert "bad" not in exposed
    assert said in registry.problems["bad"]
    assert not [name for name in sys.modules if name.startswith("_jaato_plugin_bad_")]


def test_register_that_hangs_is_given_up(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_code, "REGISTER_SECONDS", 0.2)
    places.write("slow", {"id": "slow"}, init_py="import time\ndef register(api): time.sleep(20)")
    with pytest.raises(PluginError, match=r"register\(api\) did not return"):
        places.registry("slow")


def test_two_plugins_with_modules_of_one_name_do_not_meet(places: Places) -> None:
    for name in ("one", "two"):
        code = f"from .inner import WHO\ndef register(api): api.register_tool('who_{name}', 'W.', {{}}, lambda: WHO)"
        places.write(name, {"id": name}, init_py=code, inner_py=f"WHO = '{name}'")
    registry = places.registry("one", "two")
    assert [call(registry, f"who_{name}").result for name in ("one", "two")] == ["one", "two"]


def test_tools_and_hooks_leave_with_their_plugin_and_come_back_with_edits(places: Places) -> None:
    code = "def register(api): api.register_hook('message_received', lambda content: content + '{}')"
    folder = places.write("p", {"id": "p", "tools": [command()]}, init_py=code.format("1"))
    registry = places.registry("p")
    bus = HookBus(registry)
    assert bus.message_received("x") == "x1"
    registry.unexpose_tool("p")
    assert bus.message_received("x") == "x"
    assert registry.tools() == []
    (folder / "__init__.py").write_text(code.format("22"))
    registry.expose_tool("p")
    assert bus.message_received("x") == "x22"


def test_a_plugin_is_registered_and_taken_out_at_run_time(places: Places, tmp_path: Path) -> None:
    folder = places.write("late", {"name": "late", "tools": [command("late_tool")]})
    registry = places.registry()
    elsewhere = folder.rename(tmp_path / "elsewhere")
    registry.discover()
    assert "late" not in registry.list_available()
    registry.register_plugin(open_plugin(elsewhere), expose=True)
    assert call(registry, "late_tool", {"a": 1}).result == {"got": {"a": 1}}
    assert registry.fresh_plugin("late").name == "late"
    registry.unexpose_tool("late")
    assert registry.tools() == []
    with pytest.raises(PluginError, match=r"plugin\.json"):
        open_plugin(tmp_path / "nothing")


def test_names_that_are_taken_are_refused(places: Places) -> None:
    places.write("shadow", {"name": "cli", "tools": [command()]})
    places.write("a", {"name": "same", "tools": [command("first")]})
    places.write("b", {"name": "same", "tools": [command("second")]})
    registry = places.registry("same")
    assert "is taken by" in registry.problems["cli"]
    assert "is taken by" in registry.problems["same"]
    assert registry.get_all_tool_names() == ["first"]
    assert registry.expose_tool("cli")
    assert "cli" in registry.get_all_tool_names()
