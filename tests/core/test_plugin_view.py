"""Each session sees plugins in its own way: settings of its own never touch the live instances."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from shared import JaatoRuntime, Plugin, PluginRegistry, ToolContext, tool
from shared.errors import PluginError
from shared.plugin_view import PluginView
from shared.testing import ScriptProvider


class Place(Plugin):
    """A plugin with settings; every instance is remembered, with what happened to it."""

    name = "place"
    config_keys: ClassVar[dict[str, Any]] = {"root": "/", "depth": 1}
    made: ClassVar[list[Place]] = []

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Any] = []
        Place.made.append(self)

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        super().initialize(config)
        self.log.append(config)
        if self.config["root"] == "nowhere":
            raise FileNotFoundError("nowhere")

    def shutdown(self) -> None:
        self.log.append("shutdown")

    def get_system_instructions(self) -> str | None:
        return f"You are at {self.config['root']}."

    @tool
    def where(self, context: ToolContext) -> str:
        """Where we are."""
        return str(self.config["root"])


class Other(Plugin):
    name = "other"

    @tool
    def hello(self) -> str:
        """Hello."""
        return "hello"


@pytest.fixture
def live() -> Place:
    Place.made.clear()
    return Place()


@pytest.fixture
def registry(live: Place) -> PluginRegistry:
    found = PluginRegistry()
    found.register_plugin(live, expose=True, config={"root": "/live", "depth": 3})
    found.register_plugin(Other())
    return found


def test_without_settings_the_live_instance_is_shared(registry: PluginRegistry, live: Place) -> None:
    view = PluginView(registry)
    assert view.shares_all
    assert view.names == ["place"]
    assert view.plugin("place") is live
    assert view.plugin("other") is None
    assert view.instructions() == ["You are at /live."]
    view.close()
    assert live.log == [{"root": "/live", "depth": 3}]


def test_settings_make_an_instance_of_ones_own_and_leave_the_live_one_alone(
    registry: PluginRegistry, live: Place
) -> None:
    view = PluginView(registry, configs={"place": {"root": "/child"}})
    own = view.plugin("place")
    assert isinstance(own, Place)
    assert own is not live
    assert own.log == [{"root": "/child", "depth": 3}], "what is not said is as in the live one"
    assert not view.shares_all
    assert view.instructions() == ["You are at /child."]
    assert live.log == [{"root": "/live", "depth": 3}]
    assert registry.get_plugin("place") is live
    assert registry.config_of("place") == {"root": "/live", "depth": 3}
    view.close()
    view.close()
    assert own.log[-1] == "shutdown"
    assert own.log.count("shutdown") == 1
    assert "shutdown" not in live.log


def test_a_plugin_that_is_not_exposed_is_made_for_the_view(registry: PluginRegistry) -> None:
    view = PluginView(registry, names=["other", "place", "other"])
    assert view.names == ["other", "place"]
    assert [each.name for each in view.tools()] == ["hello", "where"]
    assert not registry.is_exposed("other")
    assert PluginView(registry, names=[]).tools() == []


def test_unknown_plugins_are_named(registry: PluginRegistry) -> None:
    with pytest.raises(PluginError, match="Did you mean 'place'"):
        PluginView(registry, names=["plaice"])
    with pytest.raises(PluginError, match="unknown plugin 'plaice'"):
        PluginView(registry, configs={"plaice": {}})


def test_one_that_fails_to_start_takes_those_made_before_it_down(registry: PluginRegistry, live: Place) -> None:
    class Second(Place):
        name = "second"

        def tools(self) -> list[Any]:
            return []

    registry.register_plugin(Second())
    with pytest.raises(PluginError, match="plugin 'second' failed to start: FileNotFoundError: nowhere"):
        PluginView(
            registry, names=["place", "second"], configs={"place": {"root": "/a"}, "second": {"root": "nowhere"}}
        )
    first, second = Place.made[-2:]
    assert first.log[-1] == "shutdown"
    assert second.log[-1] == "shutdown"
    assert "shutdown" not in live.log


def test_a_tool_that_was_disabled_is_disabled_in_every_view(registry: PluginRegistry) -> None:
    own, shared = PluginView(registry, configs={"place": {"root": "/a"}}), PluginView(registry)
    registry.disable_tool("where")
    assert own.tools() == shared.tools() == []
    registry.unexpose_tool("place")
    assert PluginView(registry, names=["place"]).tools() == [], "not to be had back through an instance of one's own"


def test_a_plugin_that_was_taken_out_of_use_says_nothing_any_more(registry: PluginRegistry) -> None:
    named, following = PluginView(registry, names=["place"]), PluginView(registry)
    registry.unexpose_tool("place")
    for view in (named, following):
        assert view.tools() == []
        assert view.instructions() == []
        assert view.plugin("place") is None


def test_a_view_of_everything_follows_what_is_exposed(registry: PluginRegistry) -> None:
    view = PluginView(registry)
    registry.expose_tool("other")
    assert [each.name for each in view.tools()] == ["where", "hello"]


def test_sessions_with_settings_of_their_own(registry: PluginRegistry, live: Place) -> None:
    runtime = JaatoRuntime("script")
    runtime.register_provider("script", ScriptProvider(lambda request: request.system))
    runtime.configure_plugins(registry, permissions="allow")
    main = runtime.create_session("echo")
    child = runtime.create_session("echo", plugin_configs={"place": {"root": "/child"}}, parent=main)
    assert "You are at /live." in main.send_message("?")
    assert "You are at /child." in child.send_message("?")
    own = child.view.plugin("place")
    assert isinstance(own, Place)
    child.close()
    assert own.log[-1] == "shutdown"
    assert live.log == [{"root": "/live", "depth": 3}]
    assert "You are at /live." in main.send_message("?")
