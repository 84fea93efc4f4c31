"""What a child takes from the session that calls: plugins and their settings, model, provider, connection and more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import gemini_wire
from support.rights import STATE, by_task, desk, dry, live, refused, request_of, tools_of, write_profile
from support.stress import rapid_switching, run_threads
from support.subagents import Play, Stage, answers_in, calling, is_child, last_answer, spawning, staged, task_of
from support.tools import Lab
from support.wire import Reply as WireReply
from support.wire import Script, WireServer

from shared import JaatoClient, PluginRegistry, ProviderConfig
from shared.errors import ServerFailed
from shared.events import ContextCollected, Event
from shared.governor import RetryPolicy
from shared.plugins.subagent import SubagentPlugin
from shared.providers.base import ModelRequest, ModelSettings, Traits
from shared.providers.script import Reply, ScriptProvider, Step


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("PROJECT_ID", "LOCATION", "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)


# -- model and provider ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["profile", "inline"])
@pytest.mark.parametrize(
    ("own", "default", "model", "provider"),
    [
        (("m1", "other"), ("m2", "third"), ("m1", "own"), ("other", "own")),
        (("m1", None), ("m2", "third"), ("m1", "own"), ("third", "config")),
        ((None, "other"), ("m2", "third"), ("m2", "config"), ("other", "own")),
        ((None, None), ("m2", "third"), ("m2", "config"), ("third", "config")),
        (("m1", None), (None, None), ("m1", "own"), ("script", "caller")),
        ((None, "other"), (None, None), ("script-model", "caller"), ("other", "own")),
        ((None, None), ("m2", None), ("m2", "config"), ("script", "caller")),
        ((None, None), (None, "third"), ("script-model", "caller"), ("third", "config")),
        ((None, None), (None, None), ("script-model", "caller"), ("script", "caller")),
        (("inherit", "inherit"), (None, None), ("script-model", "caller"), ("script", "caller")),
    ],
)
def test_profile_then_config_then_caller_each_on_its_own(
    how: str,
    own: tuple[str | None, str | None],
    default: tuple[str | None, str | None],
    model: tuple[str, str],
    provider: tuple[str, str],
) -> None:
    chosen = {"model": own[0], "provider": own[1]}
    config: dict[str, Any] = {"default_model": default[0], "default_provider": default[1]}
    given: dict[str, Any] = {"inline_config": {key: value for key, value in chosen.items() if value}}
    if how == "profile":
        config["profiles"], given = {"p": chosen}, {"profile": "p"}
    play = Play()
    others = {name: ScriptProvider(play, name=name) for name in ("other", "third")}
    with staged(play, config=config, providers=others) as stage:
        report = dry(stage, **given)
        level = {"own": how}
        assert (report["model"], report["model_from"]) == (model[0], level.get(model[1], model[1]))
        assert (report["provider"], report["provider_from"]) == (provider[0], level.get(provider[1], provider[1]))
        result = stage.spawn("work", **given)
        assert (result["model"], result["provider"]) == (model[0], provider[0])
        assert request_of(play, "work").model == model[0]


def test_an_unknown_provider_is_refused_with_what_there_is() -> None:
    with staged() as stage:
        refused(stage.spawn(inline_config={"provider": "antropic"}), "'antropic'", "Did you mean 'anthropic'")
        assert not stage.play.child_requests


def test_a_grandchild_inherits_from_its_parent_not_from_the_main_session() -> None:
    play = Play(child=by_task({"mid": [spawning("leaf"), "ok"], "leaf": "ok"}))
    profiles = {"boss": {"plugins": ["subagent"], "model": "bosses-model", "provider": "other"}}
    config = {"profiles": profiles, "max_depth": 2}
    with staged(play, config=config, providers={"other": ScriptProvider(play, name="other")}) as stage:
        stage.spawn("mid", profile="boss")
        leaf = answers_in(request_of(play, "mid"))[0]
        assert (leaf["model"], leaf["provider"]) == ("bosses-model", "other")


def test_a_child_follows_the_model_its_parent_has_now() -> None:
    with staged() as stage:
        stage.client.get_session().set_model("another")
        assert stage.spawn()["model"] == "another"


def test_a_provider_is_inherited_by_the_name_it_is_registered_under() -> None:
    """Two services of one kind: the object's own name says nothing about which of them it is."""
    play = Play()
    with staged(None, providers={"east": ScriptProvider(play), "west": ScriptProvider(["wrong one"])}) as stage:
        session = stage.client.get_session()
        session.set_model("m", "east")
        session.refresh_tools()
        assert session.provider_name == "east"
        result = stage.spawn("work")
        assert (result["provider"], result["response"]) == ("east", "the child's answer")


def test_a_profile_file_with_a_model_alone_is_reported(tmp_path: Path) -> None:
    write_profile(tmp_path, "lone", model="gemini-2.5-flash")
    write_profile(tmp_path, "pair", model="gemini-2.5-flash", provider="google_genai")
    with staged(None, config={"auto_discover_profiles": True}, workspace=tmp_path) as stage:
        problems = [text for text in stage.call("list_subagent_profiles")["problems"] if "model-without" in text]
        assert len(problems) == 1
        assert "lone.json" in problems[0]
        assert "without provider" in problems[0]


def test_settings_of_the_model_are_passed_on_where_the_profile_says_so() -> None:
    profiles = {
        "same": {"reasoning_effort": "inherit"},
        "own": {"reasoning_effort": "low", "temperature": 0.5, "max_output_tokens": 99},
        "plain": {},
    }
    with staged(None, config={"profiles": profiles}) as stage:
        runtime = stage.client.get_runtime()
        session = runtime.create_session("m", settings=ModelSettings(temperature=1.0, reasoning_effort="high"))
        runtime.set_main_session(session)
        for name in profiles:
            stage.spawn(name, profile=name)
        found = {name: request_of(stage.play, name).settings for name in profiles}
        assert found["same"] == ModelSettings(reasoning_effort="high")
        assert found["own"] == ModelSettings(temperature=0.5, reasoning_effort="low", max_output_tokens=99)
        assert found["plain"] == ModelSettings()
        session.close()


# -- plugins, their settings, context collection, callbacks ------------------------------------------


def test_without_a_profile_a_child_has_its_callers_plugins_but_subagent() -> None:
    with staged(None, Lab(), desk()) as stage:
        assert dry(stage)["plugins"] == ["lab", "desk"]
        stage.spawn("work")
        assert {"add", "look", "scribble"} | STATE <= tools_of(stage.play, "work")
        assert "spawn_subagent" not in tools_of(stage.play, "work")


def test_a_child_has_the_plugin_settings_of_its_caller_in_an_instance_of_its_own() -> None:
    desks = desk()
    look = [calling(("look", {})), "ok"]
    with staged(look, desks) as stage:
        runtime = stage.client.get_runtime()
        session = runtime.create_session("m", plugin_configs={"desk": {"drawer": "session's"}})
        runtime.set_main_session(session)
        stage.spawn("work")
        assert last_answer(request_of(stage.play, "work")) == "the session's drawer, 10 lines"
        assert [each.config["drawer"] for each in live(desks)] == ["top", "session's", "session's"]
        session.close()
        assert [each.config["drawer"] for each in live(desks)] == ["top"], "the child's went with its parent"


def test_plugin_settings_of_a_profile_lie_over_those_of_the_host() -> None:
    registry, plugin, desks = PluginRegistry(), SubagentPlugin(), desk()
    play = Play(child=[calling(("look", {})), "ok"])
    registry.register_plugin(desks, expose=True, config={"drawer": "host's", "lines": 3})
    registry.register_plugin(plugin)
    profiles = {"p": {"plugins": ["desk"], "plugin_configs": {"desk": {"lines": 7}}}}
    registry.expose_tool("subagent", {"auto_discover_profiles": False, "profiles": profiles})
    with JaatoClient(provider_name="script") as client:
        client.register_provider("script", ScriptProvider(play))
        client.connect()
        client.configure_tools(registry, permissions="allow")
        plugin.get_executors()["spawn_subagent"]({"task": "work", "profile": "p"})
    assert last_answer(request_of(play, "work")) == "the host's drawer, 7 lines"


@pytest.mark.parametrize(("profile", "collected"), [("heir", True), ("own", False)])
def test_a_child_collects_as_its_caller_does_unless_its_profile_says_otherwise(profile: str, collected: bool) -> None:
    profiles = {"heir": {"plugins": ["lab"]}, "own": {"plugins": ["lab"], "gc": {"type": "truncate"}}}
    seen: list[Event] = []
    child = [*(calling(("add", {"a": number})) for number in range(6)), "done"]
    with staged(child, Lab(), config={"profiles": profiles}) as stage:
        runtime = stage.client.get_runtime()
        runtime.bus.subscribe(seen.append, interest=frozenset({ContextCollected}))
        session = runtime.create_session("m", gc={"type": "truncate", "max_turns": 2, "preserve_recent_turns": 1})
        runtime.set_main_session(session)
        agent = stage.spawn("work", profile=profile)["agent_id"]
        for _ in range(4):
            stage.call("continue_subagent", agent_id=agent, message="more")
        runtime.bus.flush()
        assert {event.agent_id for event in seen} == ({agent} if collected else set())
        session.close()


class _Governed(ScriptProvider):
    traits = Traits()


def test_the_retry_callback_hears_of_the_childs_calls() -> None:
    told: list[tuple[str, int]] = []
    failed: list[bool] = []

    def play(request: ModelRequest) -> Step:
        if is_child(request) and not failed:
            failed.append(True)
            return ServerFailed("the service hiccuped")
        return "fine"

    with staged(None, providers={"shaky": _Governed(play, name="shaky")}) as stage:
        stage.client.get_runtime().retry = RetryPolicy(base_delay=0.001)
        stage.plugin.set_retry_callback(lambda message, attempt, most, delay: told.append((message, attempt)))
        assert stage.spawn("work", inline_config={"provider": "shaky"})["response"] == "fine"
        assert len(told) == 1
        assert "hiccuped" in told[0][0]


def test_ui_hooks_hear_of_the_child_under_its_own_id() -> None:
    class Hooks:
        def __init__(self) -> None:
            self.created: list[dict[str, Any]] = []
            self.output: list[tuple[str, str]] = []

        def on_agent_created(self, **facts: Any) -> None:
            self.created.append(facts)

        def on_agent_output(self, **facts: Any) -> None:
            self.output.append((facts["agent_id"], facts["text"]))

    hooks = Hooks()
    with staged("hello from below") as stage:
        stage.plugin.set_ui_hooks(hooks)
        agent = stage.spawn("work", name="helper")["agent_id"]
        stage.client.get_runtime().bus.flush()
    assert [each["agent_id"] for each in hooks.created] == [agent]
    assert "".join(text for who, text in hooks.output if who == agent) == "hello from below"


# -- two parents at once ------------------------------------------------------------------------------


def _echo(name: str) -> Any:
    """A model that says who it is; a parent spawns as often as it was told."""

    def play(request: ModelRequest) -> Step:
        tools = sorted(schema.name for schema in request.tools.schemas if schema.name in ("add", "look"))
        if is_child(request):
            return f"{name}/{request.model}/{','.join(tools)}/{task_of(request)}"
        given = answers_in(request)
        return spawning(f"task {len(given)}") if len(given) < 15 else "done"

    return ScriptProvider(play, name=name)


def test_two_parents_at_once_do_not_mix() -> None:
    """Each has its own model, provider and plugins, on one runtime, with spawns in between each other."""
    names = ("east", "west")
    with staged(None, Lab(), desk(), providers={name: _echo(name) for name in names}) as stage:
        runtime = stage.client.get_runtime()
        parents = [
            runtime.create_session(f"{name}-model", tools=["subagent", plugin], provider_name=name)
            for name, plugin in zip(names, ("lab", "desk"), strict=True)
        ]
        with rapid_switching():
            run_threads(2, lambda index: parents[index].send_message("go"))
        for parent, name, tool in zip(parents, names, ("add", "look"), strict=True):
            results = [result.result for message in parent.get_history() for result in message.results]
            assert len(results) == 15
            expected = [f"{name}/{name}-model/{tool}/task {number}" for number in range(15)]
            assert [each["response"] for each in results] == expected
            assert {(each["model"], each["provider"]) for each in results} == {(f"{name}-model", name)}
            assert parent.account.subtree.calls == 16 + 15
            parent.close()


# -- connection -----------------------------------------------------------------------------------------


def _token() -> Any:
    from google.oauth2.credentials import Credentials

    return Credentials(token="fake-token")  # type: ignore[no-untyped-call]


@pytest.fixture
def vertex() -> Iterator[WireServer]:
    with WireServer(Script(gemini_wire.render, WireReply("from Vertex"), repeat=True)) as server:
        yield server


def _vertex_stage(server: WireServer, config: dict[str, Any], place: tuple[str | None, str | None], **own: Any) -> str:
    """Where a Gemini child calls whose parent is on another provider, which was connected with a place."""
    registry, plugin = PluginRegistry(), SubagentPlugin()
    registry.register_plugin(plugin)
    registry.expose_tool("subagent", {"auto_discover_profiles": False, **config})
    with JaatoClient(provider_name="script") as client:
        client.register_provider("script", ScriptProvider(["unused"]))
        vertex = ProviderConfig(base_url=server.url, use_vertex_ai=True, extra={"credentials": _token()}, **own)
        client.register_provider("google_genai", vertex)
        client.connect(*place, "echo")
        client.configure_tools(registry, permissions="allow")
        choice = {"model": "gemini-2.5-flash", "provider": "google_genai"}
        result = Stage(client, plugin, Play()).spawn("work", inline_config=choice)
    assert result["response"] == "from Vertex", result
    parts = server.requests[-1].path.split("/")
    return "/".join(parts[parts.index("projects") :][1::2][:2])


@pytest.mark.parametrize(
    ("config", "place", "own", "used"),
    [
        ({}, ("parents", "eu"), {}, "parents/eu"),
        ({}, ("parents", None), {}, "parents/global"),
        ({}, ("parents", "eu"), {"project": "own", "location": "us"}, "own/us"),
        ({"project": "subs", "location": "asia"}, ("parents", "eu"), {}, "subs/asia"),
        ({"project": "subs"}, ("parents", "eu"), {}, "subs/eu"),
        ({"project": "subs", "location": "asia"}, (None, None), {"project": "own", "location": "us"}, "subs/asia"),
    ],
)
def test_a_child_on_another_provider_inherits_the_connection(
    vertex: WireServer, config: dict[str, Any], place: tuple[str | None, str | None], own: dict[str, str], used: str
) -> None:
    assert _vertex_stage(vertex, config, place, **own) == used


def test_a_project_from_the_environment_does_not_take_a_child_away_from_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROJECT_ID", "from-outside")
    monkeypatch.setenv("GOOGLE_API_KEY", "a-key")
    server = WireServer(Script(gemini_wire.render, WireReply("by key"), repeat=True))
    with server, staged() as stage:
        stage.client.register_provider("google_genai", ProviderConfig(base_url=server.url))
        choice = {"model": "gemini-2.5-flash", "provider": "google_genai"}
        assert stage.spawn("work", inline_config=choice)["response"] == "by key"
        assert server.requests[0].headers["x-goog-api-key"] == "a-key"
        assert "projects" not in server.requests[0].path


def test_a_child_that_waits_for_a_slow_model_keeps_its_own_choice() -> None:
    """A profile that is replaced while its child runs changes the next child only."""
    with staged(Reply("ok", delay=0.01), config={"profiles": {"p": {"model": "before"}}}) as stage:
        first = stage.launch("work", profile="p")
        stage.plugin.initialize({"auto_discover_profiles": False, "profiles": {"p": {"model": "after"}}})
        assert stage.spawn("other", profile="p")["model"] == "after"
        assert stage.result(first)["model"] == "before"
        assert stage.call("continue_subagent", agent_id=first, message="on")["model"] == "before"
