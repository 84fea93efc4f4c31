"""Which tools a child gets: what is disabled, denied, bound to another agent, or too deep is not among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.rights import STATE, Desk, by_task, desk, live, refused, request_of, tools_of, write_profile
from support.subagents import Hold, Play, Stage, answers_in, calling, last_answer, spawning, staged
from support.tools import Lab

from shared.errors import AuthFailed
from shared.providers.script import ScriptProvider
from shared.tools import Tool

LAB = {"add", "crash", "meet", "wait", "stubborn", "essay", "later"}


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_HOME", str(tmp_path_factory.mktemp("home")))


def _registry(stage: Stage) -> Any:
    return stage.client.get_runtime().registry


def _listed(stage: Stage) -> dict[str, Any]:
    return {each["agent_id"]: each for each in stage.call("list_active_subagents")["active_sessions"]}


# -- disabled tools and plugins out of use --------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"profile": "p"}, {"profile": "own"}, {"inline_config": {"plugins": ["lab"]}}])
def test_a_disabled_tool_is_given_to_nobody(given: dict[str, Any]) -> None:
    profiles = {
        "p": {"plugins": ["lab"]},
        "own": {"plugins": ["lab", "desk"], "plugin_configs": {"desk": {"lines": 1}}},
    }
    with staged(None, Lab(), desk(), config={"profiles": profiles}) as stage:
        for name in ("crash", "scribble"):
            _registry(stage).disable_tool(name)
        stage.spawn("now", **given)
        assert "add" in tools_of(stage.play, "now")
        assert not {"crash", "scribble"} & tools_of(stage.play, "now")


def test_a_profile_that_counts_on_a_disabled_tool_is_refused() -> None:
    profiles = {"p": {"plugins": ["lab"], "tools": ["add", "crash"]}}
    with staged(None, Lab(), config={"profiles": profiles}) as stage:
        _registry(stage).disable_tool("crash")
        refused(stage.spawn(profile="p"), "'crash'", "switched off")
        assert not stage.play.child_requests


def test_a_tool_disabled_while_the_child_runs_is_not_run_any_more() -> None:
    hold = Hold(calling(("add", {"a": 1})))
    with staged([hold, "done"], Lab()) as stage:
        agent = stage.launch("late")
        hold.wait_entered()
        _registry(stage).disable_tool("add")
        hold.release()
        assert stage.result(agent)["status"] == "completed"
        assert "switched off" in str(last_answer(request_of(stage.play, "late")))


def test_a_plugin_taken_out_of_use_while_the_child_runs_is_not_called_any_more() -> None:
    hold, lab = Hold(calling(("stubborn", {}))), Lab()
    lab.release.set()
    with staged([hold, "done"], lab) as stage:
        agent = stage.launch("late")
        hold.wait_entered()
        _registry(stage).unexpose_tool("lab")
        hold.release()
        stage.result(agent)
        assert lab.ran == []


@pytest.mark.parametrize("given", [{}, {"profile": "p"}, {"profile": "configured"}])
def test_continue_after_a_tool_was_disabled_narrows_for_good(given: dict[str, Any]) -> None:
    profiles = {
        "p": {"plugins": ["desk"], "tools": ["look", "scribble"]},
        "configured": {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": "low"}}},
    }
    with staged(None, desk(), config={"profiles": profiles}) as stage:
        agent = stage.spawn("work", **given)["agent_id"]
        assert "scribble" in tools_of(stage.play, "work")
        _registry(stage).disable_tool("scribble")
        assert stage.call("continue_subagent", agent_id=agent, message="on")["success"]
        assert tools_of(stage.play, "work") - STATE == {"look"}
        _registry(stage).enable_tool("scribble")
        stage.call("continue_subagent", agent_id=agent, message="on")
        assert tools_of(stage.play, "work") - STATE == {"look"}, "rights never grow again"


def test_shared_state_tools_taken_away_do_not_come_back() -> None:
    with staged(None, Lab()) as stage:
        agent = stage.spawn("work")["agent_id"]
        _registry(stage).disable_tool("set_shared_state")
        stage.call("continue_subagent", agent_id=agent, message="on")
        assert "set_shared_state" not in tools_of(stage.play, "work")
        _registry(stage).enable_tool("set_shared_state")
        stage.call("continue_subagent", agent_id=agent, message="on")
        assert "set_shared_state" not in tools_of(stage.play, "work")


def test_continue_after_the_parents_plugin_was_taken_out_of_use(tmp_path: Path) -> None:
    write_profile(tmp_path, "own", plugins=["desk"], plugin_configs={"desk": {"lines": 3}})
    config = {"auto_discover_profiles": True}
    with staged(None, Lab(), desk(), config=config, workspace=tmp_path) as stage:
        plain = stage.spawn("plain")["agent_id"]
        own = stage.spawn("own", profile="own")["agent_id"]
        assert "look" in tools_of(stage.play, "plain") & tools_of(stage.play, "own")
        _registry(stage).unexpose_tool("desk")
        for task, agent in (("plain", plain), ("own", own)):
            assert stage.call("continue_subagent", agent_id=agent, message="on")["success"]
            assert not {"look", "scribble"} & tools_of(stage.play, task), task


def test_rights_do_not_grow_when_the_first_session_could_not_be_made() -> None:
    fails = [True]

    class Moody(ScriptProvider):
        @property
        def traits(self) -> Any:
            if fails[0]:
                raise AuthFailed("no key yet")
            return ScriptProvider.traits

    play = Play()
    with staged(play, Lab(), desk(), providers={"moody": Moody(play, name="moody")}) as stage:
        registry = _registry(stage)
        registry.disable_tool("crash")
        answer = stage.spawn("later", inline_config={"provider": "moody"})
        assert answer["status"] == "failed"
        assert "no key yet" in answer["error"]
        registry.enable_tool("crash")
        registry.unexpose_tool("desk")
        fails[0] = False
        agent = answer["agent_id"]
        assert stage.call("continue_subagent", agent_id=agent, message="again")["status"] == "completed"
        names = {schema.name for schema in play.child_requests[-1].tools.schemas}
        assert "add" in names
        assert not {"crash", "look", "scribble"} & names


# -- tools by name -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tools": ["add", "later"]}, {"add", "later"}),
        ({"tools": ["*a*"]}, {"add", "crash", "wait", "essay", "later"} | STATE),
        ({"tools": ["e*", "list_shared_state"]}, {"essay", "list_shared_state"}),
        ({"disallowed_tools": ["crash", "*_shared_*"]}, LAB - {"crash"}),
        ({"tools": ["add", "crash"], "disallowed_tools": ["c*"]}, {"add"}),
        ({"tools": ["*"], "disallowed_tools": ["*"]}, set()),
        ({"tools": []}, set()),
        ({"tools": ["[ac]*"]}, {"add", "crash"}),
    ],
)
def test_tools_and_disallowed_tools_with_globs(fields: dict[str, Any], expected: set[str]) -> None:
    with staged(None, Lab(), config={"profiles": {"p": {"plugins": ["lab"], **fields}}}) as stage:
        assert stage.spawn("work", profile="p")["success"]
        assert tools_of(stage.play, "work") == expected


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"plugins": ["labb"]}, ("plugin 'labb'", "Did you mean 'lab'")),
        ({"plugins": ["lab"], "tools": ["ad"]}, ("tool 'ad'", "Did you mean 'add'")),
        ({"plugins": ["lab"], "tools": ["zz*"]}, ("tool 'zz*'",)),
        ({"plugins": ["lab"], "tools": ["look"]}, ("tool 'look'",)),
        ({"plugins": ["lab"], "disallowed_tools": ["crsh"]}, ("disallowed_tools", "Did you mean 'crash'")),
        ({"plugins": ["lab"], "plugin_configs": {"dsk": {}}}, ("plugin_configs", "Did you mean 'desk'")),
        ({"plugins": ["desk"], "plugin_configs": {"desk": {"draw": 1}}}, ("'draw'", "Did you mean 'drawer'")),
        ({"plugins": ["subagent"], "plugin_configs": {"subagent": {"max_depth": 9}}}, ("only the host",)),
        ({"plugins": ["lab", "double"]}, ("'lab'", "'double'", "'add'")),
        ({"plugins": ["lab", "impostor"]}, ("'subagent'", "'impostor'", "'get_shared_state'")),
        ({"plugins": ["broken"]}, ("'broken'", "no such drawer")),
    ],
)
def test_a_profile_that_cannot_be_met_starts_nothing_and_leaves_nothing(
    fields: dict[str, Any], words: tuple[str, ...]
) -> None:
    hidden = [_other("double", "add"), _other("impostor", "get_shared_state"), _other("broken", "x", fails=True)]
    desks = desk()
    with staged(None, Lab(), desks, config={"profiles": {"p": fields}}) as stage:
        for each in hidden:
            _registry(stage).register_plugin(each)
        refused(stage.spawn(profile="p"), "profile 'p'", *words)
        assert live(desks) == [desks]
        assert not any(live(each) for each in hidden)
        assert not stage.play.child_requests
        assert stage.call("list_active_subagents")["count"] == 0


def _other(plugin: str, tool_name: str, *, fails: bool = False) -> Desk:
    """An unexposed plugin with one tool of a given name."""

    class Other(Desk):
        name = plugin
        config_keys = {}  # noqa: RUF012
        made = []  # noqa: RUF012

        def initialize(self, config: dict[str, Any] | None = None) -> None:
            if fails:
                raise RuntimeError("no such drawer")
            super().initialize(config)

        def tools(self) -> list[Tool]:
            def other() -> str:
                """Do it differently."""
                return plugin

            return [Tool.from_function(other, name=tool_name, plugin=plugin)]

    return Other()


def test_denying_a_tool_of_another_plugin_is_no_mistake() -> None:
    fields = {"plugins": ["lab"], "disallowed_tools": ["look", "spawn_subagent", "set_shared_state", "mcp_*"]}
    with staged(None, Lab(), desk(), config={"profiles": {"p": fields}}) as stage:
        assert stage.spawn("work", profile="p")["success"]
        assert tools_of(stage.play, "work") == LAB | STATE - {"set_shared_state"}


# -- tools of one agent ---------------------------------------------------------------------------


def test_a_tool_of_one_agent_is_for_that_profile_only() -> None:
    profiles = {"archivist": {"plugins": ["desk"]}, "clerk": {"plugins": ["desk"]}}
    child = by_task({"clerk": "-", "plain": "-", "archivist": [calling(("shred", {})), "done"]})
    parent = [calling(("shred", {})), "told"]
    with staged(Play(parent, child), desk(), config={"profiles": profiles}) as stage:
        stage.ask()
        assert "may only be called by the agent 'archivist'" in str(last_answer(stage.play.parent_requests[-1]))
        stage.spawn("clerk", profile="clerk")
        stage.spawn("plain")
        assert stage.spawn("archivist", profile="archivist")["status"] == "completed"
        assert not {"shred"} & (tools_of(stage.play, "clerk") | tools_of(stage.play, "plain"))
        assert last_answer(request_of(stage.play, "archivist")) == "shredded"


def test_an_inheriting_profile_has_its_own_tools_too() -> None:
    with staged(None, desk(), config={"profiles": {"archivist": {"plugins": "inherit"}}}) as stage:
        stage.spawn("work", profile="archivist")
        assert "shred" in tools_of(stage.play, "work")


# -- depth and nesting ----------------------------------------------------------------------------

SPAWNER = {"plugins": ["subagent", "lab"]}
NINE = {
    "spawn_subagent",
    "continue_subagent",
    "send_to_subagent",
    "close_subagent",
    "cancel_subagent",
    "get_subagent_result",
    "wait_for_subagents",
    "list_active_subagents",
    "list_subagent_profiles",
}


def test_a_profile_with_subagent_at_the_depth_limit_has_the_state_tools_only() -> None:
    named = {**SPAWNER, "tools": ["spawn_subagent", "add"]}
    sly = [calling(("spawn_subagent", {"task": "deeper"})), "ok"]
    with staged(sly, Lab(), config={"profiles": {"p": SPAWNER, "named": named}}) as stage:
        assert stage.spawn("work", profile="p")["status"] == "completed"
        assert tools_of(stage.play, "work") == LAB | STATE
        assert "unknown tool 'spawn_subagent'" in str(last_answer(request_of(stage.play, "work")))
        stage.spawn("named", profile="named")
        assert tools_of(stage.play, "named") == {"add"}
        assert len(_listed(stage)) == 2


def test_depth_ends_where_the_lowest_limit_above_says() -> None:
    profiles = {"shallow": {**SPAWNER, "max_depth": 2}, "free": SPAWNER, "never": {**SPAWNER, "max_depth": 1}}
    child = by_task(
        {
            "one": [spawning("two", profile="free"), "ok"],
            "two": [spawning("three", profile="free"), "ok"],
            "three": "ok",
            "never": "ok",
        }
    )
    with staged(child, Lab(), config={"profiles": profiles, "max_depth": 5}) as stage:
        assert stage.spawn("one", profile="shallow")["status"] == "completed"
        assert tools_of(stage.play, "one") >= NINE
        assert tools_of(stage.play, "two") == LAB | STATE, "a child must not outdo the limit of the profile above it"
        stage.spawn("never", profile="never")
        assert tools_of(stage.play, "never") == LAB | STATE
        assert len(_listed(stage)) == 3


def test_a_spawn_without_profile_never_nests() -> None:
    with staged(None, Lab(), config={"max_depth": 5}) as stage:
        stage.spawn("work")
        assert tools_of(stage.play, "work") == LAB | STATE


def test_a_grandchild_has_no_more_than_its_bounded_parent() -> None:
    profiles = {"mid": {**SPAWNER, "disallowed_tools": ["crash", "set_shared_state"]}, "heir": {"plugins": "inherit"}}
    child = by_task(
        {
            "mid": [spawning("leaf"), spawning("heir", profile="heir"), "ok"],
            "leaf": "ok",
            "heir": "ok",
        }
    )
    with staged(child, Lab(), desk(), config={"profiles": profiles, "max_depth": 3}) as stage:
        assert stage.spawn("mid", profile="mid")["status"] == "completed"
        assert tools_of(stage.play, "leaf") == (LAB - {"crash"}) | (STATE - {"set_shared_state"})
        assert tools_of(stage.play, "heir") == (LAB - {"crash"}) | (STATE - {"set_shared_state"})


def test_allow_agents_holds_for_profiles_and_inline_children() -> None:
    profiles = {"mid": {**SPAWNER, "allow_agents": ["good-*"]}, "good-one": {}, "bad": {}}
    child = by_task(
        {"mid": [spawning("a", profile="bad"), spawning("b"), spawning("c", profile="good-one"), "ok"], "c": "ok"}
    )
    with staged(child, Lab(), config={"profiles": profiles, "max_depth": 2}) as stage:
        stage.spawn("mid", profile="mid")
        bad, inline, good = answers_in(request_of(stage.play, "mid"))
        refused(bad, "'bad'", "good-*")
        refused(inline, "inline")
        assert good["success"]
