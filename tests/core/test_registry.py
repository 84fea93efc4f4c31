"""The registry: what is exposed, in what order, and how it stays whole when plugins misbehave."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from support.stress import rapid_switching, run_threads

from shared import CommandCompletion, JaatoRuntime, Plugin, PluginRegistry, UserCommand, tool
from shared.errors import ConfigError, PluginError
from shared.testing import Reply, ScriptProvider


class Recorder(Plugin):
    """Records what happens to it; knows at any time whether it is usable."""

    name = "recorder"
    config_keys: ClassVar[dict[str, Any]] = {"mode": "normal"}
    instructions = "Record."

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.alive = False

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        super().initialize(config)
        self.log.append(f"initialize {config}")
        if self.config["mode"] == "crash":
            raise RuntimeError("cannot start like this")
        self.alive = True

    def shutdown(self) -> None:
        self.log.append("shutdown")
        self.alive = False

    @tool(auto_approved=True)
    def look(self) -> str:
        """Look."""
        return self.config["mode"] if self.alive else "dead"

    @tool
    def write(self, text: str) -> str:
        """Write."""
        return text

    def get_user_commands(self) -> list[UserCommand]:
        return [UserCommand("records", "Show the records")]

    def get_command_completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]:
        return [CommandCompletion(f"{command} {' '.join(args)}")]


class Clashing(Plugin):
    name = "clashing"

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def shutdown(self) -> None:
        self.log.append("shutdown")

    @tool
    def other(self) -> str:
        """Other."""
        return "other"

    @tool
    def look(self) -> str:
        """Look too."""
        return "mine"


class Picky(Plugin):
    name = "picky"

    def get_model_requirements(self) -> list[str]:
        return ["gemini-*"]


def exposed(*plugins: Plugin) -> PluginRegistry:
    registry = PluginRegistry()
    for plugin in plugins:
        registry.register_plugin(plugin, expose=True)
    return registry


def state(registry: PluginRegistry) -> tuple[Any, ...]:
    return (
        registry.list_available(),
        registry.list_exposed(),
        registry.get_all_tool_names(),
        registry.list_disabled_tools(),
        registry.get_system_instructions(),
    )


# -- exposure ----------------------------------------------------------------------------------------


def test_built_ins_are_discovered_and_listed_in_order() -> None:
    registry = PluginRegistry()
    assert registry.list_available() == []
    found = registry.discover()
    assert found == registry.list_available() == registry.discover()
    assert {"cli", "file_edit", "mcp", "references", "todo", "web_search"} <= set(found)
    assert registry.list_exposed() == []
    with pytest.raises(PluginError, match="unknown plugin kind 'gc'"):
        registry.discover("gc")


def test_unknown_plugins_are_answered_with_the_known_ones() -> None:
    registry = PluginRegistry()
    with pytest.raises(PluginError, match=r"unknown plugin 'cli'.*Call discover\(\) first"):
        registry.expose_tool("cli")
    registry.discover()
    with pytest.raises(PluginError, match="Did you mean 'todo'"):
        registry.expose_tool("tood")
    with pytest.raises(PluginError, match="unknown plugin 'nope'"):
        registry.expose_all({"nope": {}})
    registry.unexpose_tool("nope")
    assert registry.get_plugin("nope") is None


def test_expose_and_unexpose() -> None:
    plugin = Recorder()
    registry = exposed(plugin)
    assert registry.is_exposed("recorder")
    assert registry.get_plugin("recorder") is plugin
    assert registry.get_plugin_for_tool("write") is plugin
    assert [schema.name for schema in registry.get_exposed_tool_schemas()] == ["look", "write"]
    assert registry.get_exposed_executors()["look"]({}) == "normal"
    assert registry.get_auto_approved_tools() == ["look"]
    assert registry.get_system_instructions() == "Record."
    assert plugin.log == ["initialize None"]
    registry.unexpose_tool("recorder")
    registry.unexpose_tool("recorder")
    assert plugin.log == ["initialize None", "shutdown"]
    assert registry.list_exposed() == []
    assert registry.list_available() == ["recorder"]
    assert registry.get_plugin_for_tool("write") is None
    assert registry.get_system_instructions() is None


def test_exposed_again_with_other_settings_it_is_initialised_anew() -> None:
    plugin = Recorder()
    registry = exposed(plugin)
    version = registry.version
    assert registry.expose_tool("recorder")
    assert registry.expose_tool("recorder", {})
    assert registry.version == version, "nothing changed"
    assert registry.expose_tool("recorder", {"mode": "quiet"})
    assert registry.expose_tool("recorder", {"mode": "quiet"})
    assert plugin.log == ["initialize None", "shutdown", "initialize {'mode': 'quiet'}"]
    assert registry.config_of("recorder") == {"mode": "quiet"}
    assert registry.version > version


@pytest.mark.parametrize(
    ("config", "error", "text"),
    [
        ({"mode": "crash"}, PluginError, "plugin 'recorder' failed to start: RuntimeError: cannot start like this"),
        ({"mood": "x"}, ConfigError, "Did you mean 'mode'"),
    ],
)
def test_a_failed_change_of_settings_is_rolled_back(config: dict[str, Any], error: type[Exception], text: str) -> None:
    plugin = Recorder()
    registry = PluginRegistry()
    registry.register_plugin(plugin, expose=True, config={"mode": "good"})
    before = state(registry)
    with pytest.raises(error, match=text):
        registry.expose_tool("recorder", config)
    assert state(registry) == before
    assert plugin.alive
    assert registry.get_exposed_executors()["look"]({}) == "good"


def test_a_failed_first_exposure_leaves_it_shut_down() -> None:
    plugin = Recorder()
    registry = PluginRegistry()
    registry.register_plugin(plugin)
    with pytest.raises(PluginError, match="cannot start"):
        registry.expose_tool("recorder", {"mode": "crash"})
    assert plugin.log[-1] == "shutdown"
    assert registry.list_exposed() == []
    assert registry.expose_tool("recorder")


def test_a_clash_of_tool_names_names_both_and_changes_nothing() -> None:
    registry, clashing = exposed(Recorder()), Clashing()
    before = state(registry)
    with pytest.raises(PluginError, match=r"tool 'look' of plugin 'clashing' is offered by plugin 'recorder' already"):
        registry.register_plugin(clashing, expose=True)
    assert state(registry) == before
    assert clashing.log == ["shutdown"]
    registry.register_plugin(clashing)
    with pytest.raises(PluginError, match="'recorder'"):
        registry.expose_tool("clashing")
    registry.unexpose_tool("recorder")
    assert registry.expose_tool("clashing")


def test_a_plugin_in_use_is_not_replaced() -> None:
    registry = exposed(Recorder())
    with pytest.raises(PluginError, match="exposed already"):
        registry.register_plugin(Recorder())


def test_an_object_that_is_no_plugin_is_refused_with_what_it_lacks() -> None:
    with pytest.raises(PluginError, match="lacks get_executors"):
        PluginRegistry().register_plugin(type("Half", (), {"name": "half", "get_tool_schemas": list})())


def test_a_plugin_for_other_models_is_skipped_with_the_reason() -> None:
    registry = PluginRegistry("claude-sonnet-4")
    registry.register_plugin(Picky())
    assert registry.expose_tool("picky") is False
    assert registry.list_skipped_plugins() == {"picky": "needs a model like gemini-*; this one is claude-sonnet-4"}
    registry.set_model_name("gemini-2.5-pro")
    assert registry.get_model_name() == "gemini-2.5-pro"
    assert registry.expose_tool("picky")
    assert registry.list_skipped_plugins() == {}


def test_expose_all_takes_settings_by_name() -> None:
    registry, recorder = PluginRegistry("claude"), Recorder()
    for plugin in (recorder, Picky()):
        registry.register_plugin(plugin)
    assert registry.expose_all({"recorder": {"mode": "loud"}}) == ["recorder"]
    assert recorder.config["mode"] == "loud"
    registry.unexpose_all()
    assert registry.list_exposed() == []
    assert recorder.log[-1] == "shutdown"


def test_one_that_fails_to_shut_down_does_not_keep_the_others_alive() -> None:
    class Stubborn(Recorder):
        name = "stubborn"

        def shutdown(self) -> None:
            raise OSError("stuck")

        def tools(self) -> list[Any]:
            return []

    recorder = Recorder()
    registry = exposed(Stubborn(), recorder)
    registry.unexpose_all()
    assert registry.list_exposed() == []
    assert not recorder.alive


def test_a_plugin_whose_class_needs_arguments_cannot_be_made_anew_and_says_so() -> None:
    class Needy(Plugin):
        name = "needy"

        def __init__(self, engine: str) -> None:
            super().__init__()

    registry = PluginRegistry()
    registry.register_plugin(Needy("v8"))
    with pytest.raises(PluginError, match=r"plugin 'needy' cannot be made: TypeError: .*engine"):
        registry.fresh_plugin("needy")


# -- single tools and commands -----------------------------------------------------------------------


def test_tools_are_switched_off_and_on() -> None:
    registry = exposed(Recorder())
    version = registry.version
    assert registry.disable_tool("look")
    assert registry.version > version
    assert not registry.disable_tool("nothing")
    assert not registry.is_tool_enabled("look")
    assert registry.is_tool_enabled("write")
    assert registry.list_disabled_tools() == ["look"]
    assert [schema.name for schema in registry.get_enabled_tool_schemas()] == ["write"]
    assert registry.get_auto_approved_tools() == []
    assert registry.get_tool_status() == [
        {"name": "look", "description": "Look.", "enabled": False, "plugin": "recorder"},
        {"name": "write", "description": "Write.", "enabled": True, "plugin": "recorder"},
    ]
    assert registry.enable_tool("look")
    assert registry.disable_all_tools() == 2
    assert registry.disable_all_tools() == 0
    assert registry.enable_all_tools() == 2


def test_user_commands_and_their_completions() -> None:
    plugin = Recorder()
    registry = exposed(plugin, Picky())
    assert [command.name for command in registry.get_exposed_user_commands()] == ["records"]
    assert registry.get_plugin_for_command("records") is plugin
    assert registry.get_command_completions("records", ["a"]) == [CommandCompletion("records a")]
    assert registry.get_command_completions("unknown", []) == []


class Changing(Plugin):
    name = "changing"
    names: Sequence[str] = ("one",)

    def tools(self) -> list[Any]:
        from shared.tools import Tool

        return [Tool.from_function(lambda: "", name=name, description=name, plugin=self.name) for name in self.names]


def test_tools_that_come_and_go_are_taken_up_on_refresh() -> None:
    plugin = Changing()
    registry = exposed(plugin, Recorder())
    plugin.names = ("one", "two")
    version = registry.version
    registry.refresh()
    assert registry.version > version
    assert registry.get_all_tool_names() == ["one", "two", "look", "write"]
    plugin.names = ("look",)
    registry.refresh()
    assert registry.get_all_tool_names() == ["one", "two", "look", "write"], "a clash keeps what there was"
    assert "'look'" in registry.problems["changing"]


# -- threads and sessions ----------------------------------------------------------------------------


def test_a_slow_start_keeps_nobody_from_using_the_registry() -> None:
    entered, release = threading.Event(), threading.Event()

    class Slow(Plugin):
        name = "slow"

        def initialize(self, config: dict[str, Any] | None = None) -> None:
            entered.set()
            assert release.wait(60)

    registry = exposed(Recorder())
    registry.register_plugin(Slow())
    starter = threading.Thread(target=registry.expose_tool, args=("slow",), daemon=True)
    starter.start()
    assert entered.wait(60)
    done = threading.Event()

    def use() -> None:
        registry.disable_tool("look")
        registry.unexpose_tool("recorder")
        registry.register_plugin(Picky(), expose=True)
        done.set()

    threading.Thread(target=use, daemon=True).start()
    assert done.wait(30), "a plugin that starts slowly holds up the others"
    release.set()
    starter.join(60)
    assert registry.list_exposed() == ["picky", "slow"]


def test_a_plugin_may_use_the_registry_while_it_starts_even_from_a_thread() -> None:
    registry = exposed(Recorder())

    class Curious(Plugin):
        name = "curious"

        def initialize(self, config: dict[str, Any] | None = None) -> None:
            helper = threading.Thread(target=lambda: (registry.disable_tool("look"), registry.get_plugin("recorder")))
            helper.start()
            helper.join(30)
            assert not helper.is_alive()

    registry.register_plugin(Curious(), expose=True)
    assert registry.list_disabled_tools() == ["look"]


def test_what_is_exposed_is_alive_however_many_threads_expose_and_unexpose() -> None:
    plugin = Recorder()
    registry = PluginRegistry()
    registry.register_plugin(plugin)
    with rapid_switching():
        for _ in range(60):

            def work(index: int) -> None:
                if index % 2:
                    registry.expose_tool("recorder", {"mode": f"m{index}"})
                else:
                    registry.unexpose_tool("recorder")

            run_threads(6, work)
            assert plugin.alive == registry.is_exposed("recorder")


def session_of(registry: PluginRegistry, script: Callable[..., Any]) -> Any:
    runtime = JaatoRuntime("script")
    runtime.register_provider("script", ScriptProvider(script))
    runtime.configure_plugins(registry, permissions="allow")
    return runtime.create_session("echo")


def offers(request: Any) -> str:
    return " ".join(schema.name for schema in request.tools.schemas)


def test_a_disabled_tool_is_gone_at_the_next_turn() -> None:
    registry = exposed(Recorder())
    session = session_of(registry, offers)
    assert session.send_message("?") == "look write"
    registry.disable_tool("look")
    assert session.send_message("?") == "write"
    registry.enable_tool("look")
    assert session.send_message("?") == "look write"


def test_a_plugin_exposed_or_withdrawn_later_is_taken_up_at_the_next_turn() -> None:
    registry = exposed(Recorder())
    session = session_of(registry, offers)
    registry.register_plugin(Changing(), expose=True)
    assert session.send_message("?") == "look write one"
    registry.unexpose_tool("recorder")
    assert session.send_message("?") == "one"
    assert "Record." not in session.system_prompt


def test_sessions_run_on_while_plugins_come_and_go() -> None:
    registry = exposed(Recorder())
    registry.register_plugin(Changing())

    def script(request: Any) -> Any:
        if request.messages[-1].results:
            return request.messages[-1].results[0].text
        return Reply(calls=(("write", {"text": "ok"}),))

    runtime = JaatoRuntime("script")
    runtime.register_provider("script", ScriptProvider(script))
    runtime.configure_plugins(registry, permissions="allow")

    def work(index: int) -> None:
        if index < 2:
            for _ in range(60):
                registry.expose_tool("changing")
                registry.disable_tool("look")
                registry.unexpose_tool("changing")
                registry.enable_tool("look")
        else:
            session = runtime.create_session("echo")
            for _ in range(15):
                assert session.send_message("go") == "ok"

    with rapid_switching(1e-5):
        run_threads(6, work)
