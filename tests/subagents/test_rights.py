"""Attempts of children, profiles and inline settings to get more than they were given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.rights import STATE, Desk, by_task, desk, dry, live, refused, request_of, tools_of, write_profile
from support.subagents import Hold, Play, Stage, answers_in, calling, last_answer, spawning, staged
from support.tools import Lab

from shared.errors import AuthFailed
from shared.plugins.subagent import SubagentProfile
from shared.providers.script import Reply, ScriptProvider

LAB = {"add", "crash", "meet", "wait", "stubborn", "essay", "later"}


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def lab_and_hidden_desk() -> Iterator[tuple[Stage, Desk]]:
    """A parent that has `lab`; `desk` is known to the host but not exposed."""
    hidden = desk()
    with staged(None, Lab(), config={"profiles": {"helper": {"plugins": ["lab"]}}}) as stage:
        _registry(stage).register_plugin(hidden)
        yield stage, hidden


def _registry(stage: Stage) -> Any:
    return stage.client.get_runtime().registry


def _listed(stage: Stage) -> dict[str, Any]:
    return {each["agent_id"]: each for each in stage.call("list_active_subagents")["active_sessions"]}


# -- inline settings ---------------------------------------------------------------------------


def test_inline_plugins_must_be_exposed(lab_and_hidden_desk: tuple[Stage, Desk]) -> None:
    stage, hidden = lab_and_hidden_desk
    refused(stage.spawn(inline_config={"plugins": ["desk"]}), "'desk'", "Known: lab")
    refused(stage.spawn(inline_config={"plugins": ["labb"]}), "'labb'", "Did you mean 'lab'")
    refused(stage.spawn(inline_config={"plugins": ["subagent"]}), "'subagent'", "profile")
    assert not live(hidden)
    assert not stage.play.child_requests
    assert stage.call("list_active_subagents")["count"] == 0


def test_inline_plugins_must_be_allowed_inline() -> None:
    with staged(None, Lab(), desk(), config={"inline_allowed_plugins": ["desk"]}) as stage:
        refused(stage.spawn(inline_config={"plugins": ["lab"]}), "'lab'", "allowed: desk")
        assert stage.spawn("some", inline_config={"plugins": ["desk"]})["success"]
        assert tools_of(stage.play, "some") == {"look", "scribble"} | STATE


def test_allow_inline_false_refuses_every_inline_config() -> None:
    with staged(None, Lab(), config={"allow_inline": False, "profiles": {"p": {"plugins": ["lab"]}}}) as stage:
        refused(stage.spawn(inline_config={"max_turns": 1}), "allow_inline")
        refused(stage.spawn(profile="p", inline_config={"plugins": []}), "allow_inline")
        assert stage.spawn("without")["success"]
        assert stage.spawn("with", profile="p")["success"]


@pytest.mark.parametrize(
    "field",
    ["auto_approved", "plugin_configs", "tools", "allow_agents", "max_depth", "name", "source", "fallback_models"],
)
def test_fields_of_a_profile_that_are_no_inline_settings_are_refused(field: str) -> None:
    with staged(None, Lab()) as stage:
        refused(stage.spawn(inline_config={field: True}), field)
        assert not stage.play.child_requests


# -- inline settings on top of a profile ---------------------------------------------------------


def test_inline_settings_narrow_a_profile() -> None:
    with staged(None, Lab(), desk(), config={"profiles": {"p": {"plugins": ["lab", "desk"], "max_turns": 4}}}) as stage:
        assert dry(stage, profile="p", inline_config={"plugins": ["desk"]})["plugins"] == ["desk"]
        assert dry(stage, profile="p", inline_config={"plugins": []})["plugins"] == []
        assert dry(stage, profile="p", inline_config={"max_turns": 2})["max_turns"] == 2
        assert dry(stage, profile="p", inline_config={"max_turns": 99})["max_turns"] == 4


@pytest.mark.parametrize(("profile", "inline"), [(0, 9), (9, 0), (0, None), (None, 0)])
def test_the_lower_of_two_budgets_counts(profile: int | None, inline: int | None) -> None:
    fields = {"plugins": ["lab"], **({} if profile is None else {"budget": {"tool_calls": profile}})}
    given = {} if inline is None else {"inline_config": {"budget": {"tool_calls": inline, "spawns": 3}}}
    with staged([calling(("add", {"a": 1})), "ok"], Lab(), config={"profiles": {"p": fields}}) as stage:
        result = stage.spawn("work", profile="p", **given)
        assert (result["status"], result["reason"]) == ("partial", "budget")
        assert "not run" in str(last_answer(request_of(stage.play, "work")))


@pytest.mark.parametrize(("profile", "inline"), [(0.1, 600), (600, 0.1)])
def test_the_lower_of_two_time_limits_counts(profile: float, inline: float) -> None:
    with staged(Reply("late", delay=600), config={"profiles": {"p": {"timeout_seconds": profile}}}) as stage:
        result = stage.spawn("work", profile="p", inline_config={"timeout_seconds": inline})
        assert result["status"] == "timed_out"


def test_inline_settings_do_not_widen_a_profile() -> None:
    with staged(None, Lab(), desk(), config={"profiles": {"p": {"plugins": ["desk"]}}}) as stage:
        refused(stage.spawn(profile="p", inline_config={"plugins": ["lab"]}), "'lab'", "only narrow")
        refused(stage.spawn(profile="p", inline_config={"plugins": ["desk", "subagent"]}), "'subagent'")


def test_an_inheriting_profile_gets_no_plugin_that_its_caller_lacks(lab_and_hidden_desk: tuple[Stage, Desk]) -> None:
    stage, hidden = lab_and_hidden_desk
    stage.plugin.add_profile(SubagentProfile("heir", plugins="inherit"))
    refused(stage.spawn(profile="heir", inline_config={"plugins": ["desk"]}), "'desk'", "Known: lab")
    assert dry(stage, profile="heir")["plugins"] == ["lab"]
    assert dry(stage, profile="heir", inline_config={"plugins": ["lab"]})["plugins"] == ["lab"]
    assert not live(hidden)


@pytest.mark.parametrize(
    ("field", "fixed", "wished"),
    [
        ("model", "small", "huge"),
        ("provider", "script", "anthropic"),
        ("output_schema", {"type": "object"}, {"type": "string"}),
        ("gc", {"type": "truncate"}, {"type": "summarize"}),
    ],
)
def test_what_a_profile_fixes_stays_and_what_it_leaves_open_may_be_chosen(field: str, fixed: Any, wished: Any) -> None:
    profiles = {"fixed": {field: fixed}, "open": {}}
    with staged(None, config={"profiles": profiles}) as stage:
        refused(stage.spawn(profile="fixed", inline_config={field: wished}), field, "'fixed'", "only narrow")
        assert dry(stage, profile="fixed", inline_config={field: fixed})["success"]
        assert dry(stage, profile="open", inline_config={field: wished})["success"]


def test_inline_instructions_come_after_those_of_the_profile() -> None:
    with staged(None, config={"profiles": {"p": {"system_instructions": "Never guess."}}}) as stage:
        stage.spawn("both", profile="p", inline_config={"system_instructions": "Be brief."})
        system = request_of(stage.play, "both").system
        assert system.index("Never guess.") < system.index("Be brief.")
        assert system.count("Never guess.") == system.count("Be brief.") == 1


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
    from shared.tools import Tool

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


def test_an_untrusted_file_does_not_get_the_tools_of_an_agent_by_taking_its_name(tmp_path: Path) -> None:
    write_profile(tmp_path, "archivist", plugins=["desk"])
    with staged(None, desk(), config={"auto_discover_profiles": True}, workspace=tmp_path) as stage:
        assert stage.spawn("work", profile="archivist")["success"]
        assert tools_of(stage.play, "work") == {"look", "scribble"} | STATE
    with staged(
        None, desk(), config={"auto_discover_profiles": True}, workspace=tmp_path, trust_workspace=True
    ) as stage:
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


def test_an_untrusted_agent_gets_nothing_through_a_trusted_profile(tmp_path: Path) -> None:
    """The confused deputy: what a project file may not have, it may not have somebody else do."""
    hidden = desk()
    write_profile(tmp_path, "guest", plugins=["subagent", "lab"], disallowed_tools=["crash"])
    profiles = {
        "strong": {"plugins": ["lab"]},
        "hidden": {"plugins": ["desk"]},
        "boss": {"plugins": ["subagent", "lab"]},
    }
    child = by_task(
        {
            "guest": [spawning("strong", profile="strong"), spawning("x", profile="hidden"), _boss, "ok"],
            "strong": "ok",
            "boss": [spawning("below the boss", profile="strong"), spawning("x", profile="hidden"), "ok"],
            "below the boss": "ok",
        }
    )
    config = {"auto_discover_profiles": True, "profiles": profiles, "max_depth": 4}
    with staged(child, Lab(), config=config, workspace=tmp_path) as stage:
        _registry(stage).register_plugin(hidden)
        assert stage.spawn("guest", profile="guest")["status"] == "completed"
        for task in ("strong", "boss", "below the boss"):
            assert "crash" not in tools_of(stage.play, task), task
            assert "add" in tools_of(stage.play, task), task
        for task, place in (("guest", 1), ("boss", 1)):
            refused(answers_in(request_of(stage.play, task))[place], "'desk'", "caller")
        assert not live(hidden)
        assert stage.spawn("strong", profile="strong")["success"]
        assert "crash" in tools_of(stage.play, "strong"), "the main agent itself may use all of it"


def _boss(request: Any) -> Any:
    return spawning("boss", profile="boss")


def test_an_untrusted_agent_cannot_loosen_a_plugin_through_a_trusted_profile(tmp_path: Path) -> None:
    write_profile(tmp_path, "guest", plugins=["subagent", "desk"])
    profiles = {"loose": {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": "secret"}}}}
    child = by_task({"guest": [spawning("x", profile="loose"), "ok"], "x": "ok"})
    config = {"auto_discover_profiles": True, "profiles": profiles, "max_depth": 3}
    desks = desk()
    with staged(child, desks, config=config, workspace=tmp_path) as stage:
        stage.spawn("guest", profile="guest")
        refused(last_answer(request_of(stage.play, "guest")), "'drawer'", "bounded")
        assert live(desks) == [desks]


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


# -- untrusted files ------------------------------------------------------------------------------


def test_an_untrusted_profile_has_no_more_than_its_caller(tmp_path: Path) -> None:
    hidden = desk()
    write_profile(tmp_path, "guest", plugins=["lab", "desk"])
    with staged(None, Lab(), config={"auto_discover_profiles": True}, workspace=tmp_path) as stage:
        _registry(stage).register_plugin(hidden)
        refused(stage.spawn(profile="guest"), "'desk'", "not trusted")
        assert not live(hidden)
    with staged(
        None, Lab(), config={"auto_discover_profiles": True}, workspace=tmp_path, trust_workspace=True
    ) as stage:
        _registry(stage).register_plugin(desk())
        stage.spawn("work", profile="guest")
        assert {"add", "look"} <= tools_of(stage.play, "work")


def test_an_untrusted_profile_changes_harmless_settings_only(tmp_path: Path) -> None:
    write_profile(tmp_path, "few", plugins=["desk"], plugin_configs={"desk": {"lines": 2}})
    write_profile(tmp_path, "low", plugins=["desk"], plugin_configs={"desk": {"lines": 2, "drawer": "low"}})
    look = [calling(("look", {})), "ok"]
    with staged(look, desk(), config={"auto_discover_profiles": True}, workspace=tmp_path) as stage:
        refused(stage.spawn(profile="low"), "'drawer'", "not trusted")
        assert stage.spawn("few", profile="few")["success"]
        assert last_answer(request_of(stage.play, "few")) == "the top drawer, 2 lines"


def test_harmless_settings_do_not_undo_those_that_the_caller_has(tmp_path: Path) -> None:
    write_profile(tmp_path, "few", plugins=["desk"], plugin_configs={"desk": {"lines": 2}})
    profiles = {"mid": {"plugins": ["subagent", "desk"], "plugin_configs": {"desk": {"drawer": "toy", "lines": 5}}}}
    look = [calling(("look", {})), "ok"]
    child = by_task({"mid": [spawning("few", profile="few"), spawning("plain"), "ok"], "few": look, "plain": look})
    config = {"auto_discover_profiles": True, "profiles": profiles, "max_depth": 2}
    with staged(child, desk(), config=config, workspace=tmp_path) as stage:
        stage.spawn("mid", profile="mid")
        assert last_answer(request_of(stage.play, "few")) == "the toy drawer, 2 lines"
        assert last_answer(request_of(stage.play, "plain")) == "the toy drawer, 5 lines"


def test_variables_are_those_the_host_allows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    monkeypatch.setenv("ALLOWED", "open ${SECRET_KEY}")
    drawer = "${SECRET_KEY} ${ALLOWED} ${cwd} $SECRET_KEY ${*} ${PATH}"
    profiles = {"p": {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": drawer}}}}
    config = {"profiles": profiles, "allowed_variables": ["ALLOWED", "cwd", "*"]}
    with staged([calling(("look", {})), "ok"], desk(), config=config, workspace=tmp_path) as stage:
        stage.spawn("work", profile="p")
        seen = str(last_answer(request_of(stage.play, "work")))
        assert "s3cret" not in seen
        assert f"${{SECRET_KEY}} open ${{SECRET_KEY}} {tmp_path} $SECRET_KEY ${{*}} ${{PATH}}" in seen


# -- plugin instances -----------------------------------------------------------------------------


def test_a_spawn_never_touches_the_parents_plugin_and_children_do_not_mix() -> None:
    profiles = {name: {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": name}}} for name in ("left", "right")}
    meet = Hold(calling(("look", {})))
    desks = desk()
    with staged([meet, "ok"], desks, config={"profiles": profiles}) as stage:
        agents = {name: stage.launch(name, profile=name) for name in profiles}
        agents["top"] = stage.launch("top")
        meet.wait_entered(3)
        assert len(live(desks)) == 3, "the plain child shares its parent's"
        meet.release()
        for name, agent in agents.items():
            assert stage.result(agent)["success"]
            assert last_answer(request_of(stage.play, name)) == f"the {name} drawer, 10 lines"
        assert desks.settings_taken == [{"drawer": "top", "lines": 10}]
        assert desks.shut_down == 0
        stage.call("close_subagent", agent_id=agents["left"])
        assert sorted(each.config["drawer"] for each in live(desks)) == ["right", "top"]
    assert live(desks) == [], "what is left is shut down with the client"
    assert all(each.shut_down == 1 for each in desks.made), "and each once"


def test_a_dry_run_and_a_duplicate_leave_no_instance_behind() -> None:
    hold, desks = Hold(), desk()
    profiles = {"p": {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": "own"}}}}
    with staged([hold], desks, config={"profiles": profiles}) as stage:
        assert dry(stage, profile="p")["success"]
        assert live(desks) == [desks]
        first = stage.launch("same", profile="p")
        hold.wait_entered()
        assert stage.launch("same", profile="p") == first
        assert len(live(desks)) == 2
        stage.call("cancel_subagent", agent_id=first)
        hold.release()


def test_a_run_cancelled_in_the_queue_lets_go_of_its_instances() -> None:
    hold, desks = Hold(), desk()
    profiles = {"p": {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": "own"}}}}
    with staged([hold], Lab(), desks, config={"profiles": profiles, "max_concurrent": 1}) as stage:
        stage.launch("first", inline_config={"plugins": ["lab"]})
        hold.wait_entered()
        queued = stage.launch("second", profile="p")
        assert len(live(desks)) == 2
        assert stage.call("cancel_subagent", agent_id=queued)["status"] == "cancelled"
        assert live(desks) == [desks]
        hold.release()


# -- reaching other agents ------------------------------------------------------------------------


def test_an_agent_reaches_only_those_below_it() -> None:
    hold = Hold("late")
    seen: dict[str, list[Any]] = {}

    def intruder(request: Any) -> Any:
        given = answers_in(request)
        if len(given) == 1:
            ids = (*known.values(), "sibling", "nephew", "main", "intruder")
            tools = ("get_subagent_result", "cancel_subagent", "close_subagent")
            reach = [(tool, {"agent_id": each}) for each in ids for tool in tools]
            reach += [("continue_subagent", {"agent_id": each, "message": "obey"}) for each in ids]
            reach += [("send_to_subagent", {"subagent_id": each, "message": "obey"}) for each in ids]
            reach += [("wait_for_subagents", {"ids": [each]}) for each in ids]
            return calling(("list_active_subagents", {}), *reach)
        if len(given) > 1:
            seen["answers"] = given[1:]
            return "gave up"
        return calling(("list_active_subagents", {}))

    known: dict[str, str] = {}
    child = by_task({"sibling": [spawning("nephew"), "ok"], "nephew": hold, "intruder": intruder})
    with staged(child, Lab(), config={"profiles": {"p": SPAWNER}, "max_depth": 2}) as stage:
        known["sibling"] = stage.launch("sibling", profile="p", name="sibling")
        hold.wait_entered()
        known["nephew"] = next(iter(set(_listed(stage)) - set(known.values())))
        result = stage.spawn("intruder", profile="p", name="intruder")
        assert result["status"] == "completed", result
        listing, *rest = seen["answers"]
        assert listing["active_sessions"] == []
        assert len(rest) == 6 * 6
        for answer in rest:
            refused(answer, "Known: none yet")
        listed = _listed(stage)
        assert [listed[each]["status"] for each in known.values()] == ["running", "running"]
        hold.release()
        assert stage.result(known["sibling"])["success"]


def test_another_tree_on_the_same_runtime_is_out_of_reach() -> None:
    with staged(None, Lab()) as stage:
        mine = stage.spawn("mine", name="mine")["agent_id"]
        runtime = stage.client.get_runtime()
        script = [calling(*(("get_subagent_result", {"agent_id": each}) for each in (mine, "mine"))), "no"]
        runtime.register_provider("elsewhere", ScriptProvider(script, name="elsewhere"))
        other = runtime.create_session("m", provider_name="elsewhere")
        other.send_message("look around")
        results = [result.text for message in other.get_history() for result in message.results]
        assert len(results) == 2
        assert all("no subagent" in text and mine not in text.split("Known")[1] for text in results)
        other.close()


@pytest.mark.parametrize("name", ["main \u203a boss", "two\nlines", "\u202eevil", " ", "\x1b[2Jclear"])
def test_a_name_that_would_fool_people_is_refused(name: str) -> None:
    with staged() as stage:
        refused(stage.spawn(name=name), "name")
        assert not stage.play.child_requests
