"""Pooling: with `reuse: true` a later spawn goes on where an idle agent of that profile left off."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.permission_calls import until
from support.plugin_folders import Places
from support.subagents import Hold, Play, Stage, is_child, last_answer, spawning, staged, user_texts
from support.tools import Lab, calls

from shared import JaatoClient, PluginRegistry
from shared.errors import ProviderError
from shared.plugins.subagent import SubagentPlugin, SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import ScriptProvider
from shared.subagents.pool import key_of


def heard(request: ModelRequest) -> str:
    """What the child heard so far."""
    return " | ".join(text.split("<task>")[-1].replace("</task>", "").strip() for text in user_texts(request))


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged(heard, Lab()) as stage:
        stage.plugin.add_profile(SubagentProfile("keeper", plugins=["lab"], reuse=True))
        stage.plugin.add_profile(SubagentProfile("fresh", plugins=["lab"]))
        yield stage


def test_a_later_spawn_goes_on_with_the_history(stage: Stage) -> None:
    first = stage.spawn("one", profile="keeper")
    second = stage.spawn("two", profile="keeper")
    assert second["agent_id"] == first["agent_id"]
    assert (first["response"], second["response"]) == ("one", "one | two")
    assert second["success"]
    assert second["turns_used"] == 1
    assert stage.call("list_active_subagents")["count"] == 1


def test_without_reuse_each_spawn_begins_anew(stage: Stage) -> None:
    first, second = (stage.spawn(task, profile="fresh") for task in ("one", "two"))
    assert first["agent_id"] != second["agent_id"]
    assert second["response"] == "two"


def test_the_same_task_again_is_done_again(stage: Stage) -> None:
    first, second = (stage.spawn("one", profile="keeper") for _ in range(2))
    assert second["agent_id"] == first["agent_id"]
    assert second["response"] == "one | one"


def test_context_comes_along(stage: Stage) -> None:
    stage.spawn("one", profile="keeper")
    stage.spawn("two", profile="keeper", context="remember this")
    assert "remember this" in user_texts(stage.play.child_requests[-1])[-1]


def test_parallel_spawns_both_work_and_both_stay_in_the_pool() -> None:
    hold = Hold("held")
    with staged(lambda request: hold(request) if "hold" in heard(request) else heard(request)) as stage:
        stage.plugin.add_profile(SubagentProfile("keeper", reuse=True))
        busy = stage.launch("hold", profile="keeper")
        hold.wait_entered()
        other = stage.spawn("two", profile="keeper")
        assert other["agent_id"] != busy
        assert other["response"] == "two"
        third = stage.spawn("three", profile="keeper")
        assert (third["agent_id"], third["response"]) == (other["agent_id"], "two | three")
        hold.release()
        assert stage.result(busy)["response"] == "held"
        assert stage.call("list_active_subagents")["count"] == 2


def test_a_result_that_nobody_has_read_is_not_replaced(stage: Stage) -> None:
    first = stage.launch("one", profile="keeper")
    assert until(lambda: stage.call("list_active_subagents")["active_sessions"][0]["status"] == "waiting")
    second = stage.spawn("two", profile="keeper")
    assert second["agent_id"] != first
    assert stage.result(first)["response"] == "one"
    third = stage.spawn("three", profile="keeper")
    assert (third["agent_id"], third["response"]) == (first, "one | three")


def test_of_equal_spawns_at_once_one_works() -> None:
    hold = Hold("held")
    with staged(lambda request: hold(request) if "hold" in heard(request) else heard(request)) as stage:
        stage.plugin.add_profile(SubagentProfile("keeper", reuse=True))
        start, ids = threading.Barrier(4), list[str]()

        def launch() -> None:
            start.wait(20)
            ids.append(stage.launch("hold", profile="keeper"))

        pooled = stage.spawn("one", profile="keeper")["agent_id"]
        threads = [threading.Thread(target=launch) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert ids == [pooled] * 4
        hold.release()
        stage.result(pooled)


def test_of_many_spawns_at_once_no_two_share_a_session(stage: Stage) -> None:
    stage.spawn("first", profile="keeper")
    start = threading.Barrier(8)
    answers: list[Any] = []

    def spawn(number: int) -> None:
        start.wait(20)
        answers.append(stage.spawn(f"task {number}", profile="keeper"))

    threads = [threading.Thread(target=spawn, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [answer["status"] for answer in answers] == ["completed"] * 8
    tasks = sorted(answer["response"].split(" | ")[-1] for answer in answers)
    assert tasks == [f"task {number}" for number in range(8)]


def test_an_equal_task_that_is_under_way_is_not_begun_twice() -> None:
    hold = Hold("held")
    with staged(lambda request: hold(request) if "hold" in heard(request) else heard(request)) as stage:
        stage.plugin.add_profile(SubagentProfile("keeper", reuse=True))
        pooled = stage.spawn("one", profile="keeper")["agent_id"]
        assert stage.launch("hold", profile="keeper") == pooled
        hold.wait_entered()
        assert stage.launch("hold", profile="keeper") == pooled
        other = stage.spawn("one", profile="keeper")
        assert other["agent_id"] != pooled, "the task of its first run says nothing about what it does now"
        assert other["response"] == "one"
        hold.release()
        stage.result(pooled)


@pytest.mark.parametrize("end", ["fail", "cancel", "close"])
def test_one_that_failed_or_was_stopped_or_closed_is_not_used_again(end: str) -> None:
    hold = Hold("held")

    def child(request: ModelRequest) -> Any:
        if "fail" in heard(request):
            return ProviderError("broken")
        return hold(request) if "cancel" in heard(request) else heard(request)

    with staged(child) as stage:
        stage.plugin.add_profile(SubagentProfile("keeper", reuse=True))
        agent_id = stage.launch(end, profile="keeper")
        if end == "cancel":
            hold.wait_entered()
            stage.call("cancel_subagent", agent_id=agent_id)
        stage.result(agent_id)
        if end == "close":
            stage.call("close_subagent", agent_id=agent_id)
        hold.release()
        again = stage.spawn("after", profile="keeper")
        assert again["agent_id"] != agent_id
        assert again["response"] == "after"


def test_one_that_handed_over_early_goes_on() -> None:
    steps = [calls(("add", {"a": 1})), "what I have", "the rest"]
    with staged(steps, Lab()) as stage:
        stage.plugin.add_profile(SubagentProfile("keeper", plugins=["lab"], reuse=True, max_turns=2))
        first = stage.spawn("one", profile="keeper")
        assert first["status"] == "partial"
        assert stage.spawn("go on", profile="keeper")["agent_id"] == first["agent_id"]


def test_a_changed_profile_or_other_settings_begin_anew(stage: Stage) -> None:
    first = stage.spawn("one", profile="keeper")["agent_id"]
    assert stage.spawn("two", profile="keeper", inline_config={"max_turns": 3})["agent_id"] != first
    assert stage.spawn("three", profile="keeper", name="special")["agent_id"] != first
    stage.plugin.add_profile(SubagentProfile("keeper", plugins=["lab"], reuse=True, system_instructions="Be new."))
    fourth = stage.spawn("four", profile="keeper")
    assert fourth["agent_id"] != first
    assert fourth["response"] == "four"
    assert "Be new." in stage.play.child_requests[-1].system


def test_rights_are_decided_again(stage: Stage) -> None:
    first = stage.spawn("one", profile="keeper")["agent_id"]
    registry = stage.client.get_runtime().registry
    assert registry is not None
    registry.disable_tool("add")
    second = stage.spawn("two", profile="keeper")
    assert second["agent_id"] == first
    assert "add" not in [schema.name for schema in stage.play.child_requests[-1].tools.schemas]
    registry.enable_tool("add")
    third = stage.spawn("three", profile="keeper")
    assert third["agent_id"] != first, "rights never grow: what it lost it does not get back"
    assert "add" in [schema.name for schema in stage.play.child_requests[-1].tools.schemas]


def test_an_agent_that_may_not_be_spawned_any_more_is_refused(stage: Stage) -> None:
    stage.spawn("one", profile="keeper")
    registry = stage.client.get_runtime().registry
    assert registry is not None
    registry.unexpose_tool("lab")
    stage.plugin.add_profile(SubagentProfile("keeper", plugins=["lab"], tools=["no_such_tool"], reuse=True))
    assert stage.spawn("two", profile="keeper")["success"] is False


def test_pools_of_different_parents_are_apart() -> None:
    def child(request: ModelRequest) -> Any:
        if "manage" in heard(request):
            return (
                spawning("inner", profile="keeper")
                if not request.messages[-1].results
                else str(last_answer(request)["response"])
            )
        return heard(request)

    with staged(Play("x", child), config={"max_depth": 2}) as stage:
        stage.plugin.add_profile(SubagentProfile("keeper", reuse=True))
        stage.plugin.add_profile(SubagentProfile("boss", plugins=["subagent"]))
        stage.spawn("mine", profile="keeper")
        assert stage.spawn("manage", profile="boss")["response"] == "inner"
        assert stage.spawn("again", profile="keeper")["response"] == "mine | again"


def test_limits_hold_for_pooled_ones_too() -> None:
    hold = Hold("held")
    with staged(
        lambda request: hold(request) if "hold" in heard(request) else "x", config={"max_children": 1}
    ) as stage:
        stage.plugin.add_profile(SubagentProfile("keeper", reuse=True))
        stage.spawn("one", profile="keeper")
        busy = stage.launch("hold")
        hold.wait_entered()
        assert "max_children" in stage.spawn("two", profile="keeper")["error"]
        hold.release()
        stage.result(busy)


def test_agents_of_plugins_are_pooled_by_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places.at(tmp_path, monkeypatch)
    for plugin in ("a", "b"):
        agent = {"name": f"helper-{plugin}", "system_prompt_file": "helper.md", "reuse": True, "tools": []}
        places.write(plugin, {"name": plugin, "agents": [agent]}, helper_md="You help.")
    registry = PluginRegistry()
    registry.discover()
    subagents = SubagentPlugin()
    registry.register_plugin(subagents, expose=True)
    for plugin in ("a", "b"):
        registry.expose_tool(plugin)
    with JaatoClient(provider_name="script", workspace=places.project) as client:
        client.register_provider("script", ScriptProvider(lambda request: heard(request) if is_child(request) else "x"))
        client.connect()
        client.configure_tools(registry, permissions="allow")
        spawn = subagents.get_executors()["spawn_subagent"]
        first = spawn({"task": "one", "profile": "helper-a"})
        assert first["success"], first
        assert spawn({"task": "two", "profile": "helper-a"})["response"] == "one | two"
        assert spawn({"task": "three", "profile": "helper-b"})["response"] == "three"
        main = client.get_session()
        plan = subagents.engine.planner.plan(main, profile="helper-a", inline=None)
        assert key_of(plan) == "plugin-a-helper-a"


def test_keys(stage: Stage) -> None:
    planner, main = stage.plugin.engine.planner, stage.client.get_session()
    assert key_of(planner.plan(main, profile="keeper", inline=None)) == "agent-keeper"
    assert key_of(planner.plan(main, profile="fresh", inline=None)) is None
    assert key_of(planner.plan(main, profile=None, inline=None)) is None


def test_reuse_must_be_true_or_false() -> None:
    with pytest.raises(Exception, match="'reuse' must be true or false"):
        SubagentProfile("x", reuse="yes")  # type: ignore[arg-type]
